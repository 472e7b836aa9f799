"""Exceptions of packed functions keep their class through compiled code, and none ends the process."""

import subprocess
import sys

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.compiler.build import Mode
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

TEXT = """
relax.func @inner(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %0 = relax.call_packed "test.exceptions.raise"(%x) : !relax.tensor<[4], f32>
  relax.return %0
}
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %0 = relax.call @inner(%x) impure
  %1 = relax.add %0, %0
  relax.return %1
}
"""


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, ValueError, OSError])
def test_exceptions_keep_their_class(mode: Mode, kind: type[BaseException]):
    """Ctrl-C, too, which ends a program unless it says otherwise."""

    def fail(_: object) -> object:
        raise kind("stop")

    tvm_ffi.register_global_func("test.exceptions.raise", fail, override=True)
    machine = VirtualMachine(build(parse_module(TEXT), mode=mode))
    with pytest.raises(kind, match="stop") as caught:
        machine["main"](np.ones(4, np.float32))
    assert type(caught.value) is kind


NO_TEXT = f"""
import sys
import numpy as np, tvm_ffi
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")

def fail(x):
    raise failures.pop()

def unreadable(x):
    exec(compile("def f(): raise ValueError('readable')", "a file \\udcff", "exec"), globals())
    f()

def nested(x):
    try:
        fails(x)
    except RuntimeError:
        raise IndexError("\\ud800")

tvm_ffi.register_global_func("test.exceptions.raise", fail)
fails = tvm_ffi.convert(fail)
text = '''{TEXT}'''
main = VirtualMachine(build(parse_module(text), mode=sys.argv[1]))["main"]

def call():
    try:
        main(np.ones(4, np.float32))
    except BaseException as error:
        print(type(error).__name__, error)

interrupts = [KeyboardInterrupt("\\ud800"), SystemExit("\\udc80")]
for failure in (ValueError("a name \\udcff"), Silent(), *interrupts, ValueError("\u00e9")):
    failures = [failure]
    call()
for function in (unreadable, nested):
    failures = [ValueError("\\udcff")]
    tvm_ffi.register_global_func("test.exceptions.raise", function, override=True)
    main = VirtualMachine(build(parse_module(text), mode=sys.argv[1]))["main"]
    call()
"""

UNTOLD = "a packed function has raised an exception that has no text in UTF-8"


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_an_exception_without_text_is_one_that_says_so(mode: Mode):
    command = [sys.executable, "-c", NO_TEXT, mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"RuntimeError {UNTOLD}",
        f"RuntimeError {UNTOLD}",
        f"KeyboardInterrupt {UNTOLD}",
        f"SystemExit {UNTOLD}",
        "ValueError é",
        f"RuntimeError {UNTOLD}",
        f"RuntimeError {UNTOLD}",
    ]
