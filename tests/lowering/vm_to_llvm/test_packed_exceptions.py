"""Exceptions of packed functions keep their class in every mode, and none ends the process."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.compiler.build import Mode
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
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


MODES = ["native", "bytecode", "interpret"]


def _main(mode: str) -> Callable[..., Any]:
    module = parse_module(TEXT)
    if mode == "interpret":
        return lambda x: run(module, "main", [x])
    return VirtualMachine(build(module, mode=cast("Mode", mode)))["main"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, ValueError, OSError])
def test_exceptions_keep_their_class(mode: str, kind: type[BaseException]):
    """Ctrl-C, too, which ends a program unless it says otherwise."""

    def fail(_: object) -> object:
        raise kind("stop")

    tvm_ffi.register_global_func("test.exceptions.raise", fail, override=True)
    main = _main(mode)
    with pytest.raises(kind, match="stop") as caught:
        main(np.ones(4, np.float32))
    assert type(caught.value) is kind


NO_TEXT = f"""
import sys
import numpy as np, tvm_ffi
from lowering.parsing import parse_module

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

def main_of(mode):
    module = parse_module('''{TEXT}''')
    if mode == "interpret":
        from relax_dialect.interpreter import run
        return lambda x: run(module, "main", [x])
    from lowering import build
    from vm_dialect import VirtualMachine
    return VirtualMachine(build(module, mode=mode))["main"]

tvm_ffi.register_global_func("test.exceptions.raise", fail)
fails = tvm_ffi.convert(fail)

def call():
    try:
        main(np.ones(4, np.float32))
    except BaseException as error:
        print(type(error).__name__, error)

main = main_of(sys.argv[1])
interrupts = [KeyboardInterrupt("\\ud800"), SystemExit("\\udc80")]
for failure in (ValueError("a name \\udcff"), Silent(), *interrupts, ValueError("\u00e9")):
    failures = [failure]
    call()
for function in (unreadable, nested):
    failures = [ValueError("\\udcff")]
    tvm_ffi.register_global_func("test.exceptions.raise", function, override=True)
    main = main_of(sys.argv[1])
    call()
"""

UNTOLD = "a packed function has raised an exception that has no text in UTF-8"


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
def test_an_exception_without_text_is_one_that_says_so(mode: str):
    done = _run("-c", NO_TEXT, mode)
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


KERNEL = """
import numpy as np, tvm_ffi
from tir_dialect.interpreter import run_prim_func
from lowering.parsing import parse_module

def fail(x):
    raise ValueError("a name \\udcff")

tvm_ffi.register_global_func("test.exceptions.raise", fail)
module = parse_module('''
tir.prim_func @f(%X: !tir.buffer<[4], f32>) {
  tir.call_packed "test.exceptions.raise"(%X)
}''')
try:
    run_prim_func(module.body.first_block.first_op, [np.ones(4, np.float32)])
except RuntimeError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_kernel_in_the_interpreter():
    done = _run("-c", KERNEL)
    assert (done.returncode, done.stdout) == (0, f"{UNTOLD}\n"), done.stderr


@pytest.mark.slow
def test_the_tool_says_so(tmp_path: Path):
    (tmp_path / "main.mlir").write_text(TEXT)
    load = "import tvm_ffi\ndef fail(x): raise ValueError('\\udcff')\n"
    load += "tvm_ffi.register_global_func('test.exceptions.raise', fail)\n"
    (tmp_path / "load.py").write_text(load)
    program = ["-m", "xdsl_relax.cli.relax_run", str(tmp_path / "main.mlir"), "--entry", "main", "--random", "f32[4]"]
    done = _run(*program, "--load", str(tmp_path / "load.py"), "--mode", "interpret")
    assert done.returncode == 1
    assert UNTOLD in done.stderr


@pytest.mark.slow
def test_what_tvm_ffi_lacks():
    """Without `register_error_types` the process ends. If it does not, what `vm_dialect.errors` adds may go."""
    script = """
import tvm_ffi
@tvm_ffi.register_global_func("fail")
def fail():
    raise ValueError("\\udcff")
try:
    tvm_ffi.get_global_func("fail")()
except Exception:
    pass
"""
    assert _run("-c", script).returncode < 0
