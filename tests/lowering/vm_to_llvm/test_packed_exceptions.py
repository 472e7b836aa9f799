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
import numpy as np, tvm_ffi
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")

failures = [ValueError("a name \\udcff"), Silent()]
def fail(x):
    raise failures.pop()
tvm_ffi.register_global_func("test.exceptions.raise", fail)
main = VirtualMachine(build(parse_module('''{TEXT}''')))["main"]
for _ in range(2):
    try:
        main(np.ones(4, np.float32))
    except RuntimeError as error:
        print(error)
"""


def test_an_exception_without_text_is_one_that_says_so():
    done = subprocess.run([sys.executable, "-c", NO_TEXT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a packed function has raised an exception that has no text in UTF-8") == 2
