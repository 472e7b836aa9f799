import os
import stat
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from tests.vm_dialect.programs import factorial, sum_loop
from vm_dialect import ExecBuilder, Executable, VirtualMachine
from vm_dialect.executable import FunctionInfo, FunctionKind, Metadata
from vm_dialect.executable.model import VOID, Call, Constant, Goto, If, Operand, OperandKind, Ret
from vm_dialect.tensors import to_numpy


def test_what_is_saved_is_loaded(everything: Executable, tmp_path: Path):
    path = tmp_path / "m.rvm"
    everything.save(path)
    loaded = Executable.load(path)
    assert loaded == everything
    assert hash(loaded) == hash(everything)
    assert loaded.as_text() == everything.as_text()
    assert path.read_bytes() == everything.to_bytes() == loaded.to_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.rvm"]
    weight = next(constant.value for constant in loaded.constants if isinstance(constant.value, tvm_ffi.Tensor))
    np.testing.assert_array_equal(to_numpy(weight), np.arange(6, dtype=np.float32).reshape(2, 3))
    assert weight.data_ptr() % 64 == 0


def test_saving_replaces_the_file_or_leaves_it(everything: Executable, tmp_path: Path):
    path = tmp_path / "m.rvm"
    path.write_text("old")
    everything.save(path)
    assert Executable.load(path) == everything
    with pytest.raises(FileNotFoundError):
        everything.save(tmp_path / "missing" / "m.rvm")


def test_files_have_the_usual_permissions(everything: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The umask, which all threads have in common, is left alone; and no name is too long for a temporary one."""
    umask = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            everything.save(path := tmp_path / ("m" * 251 + ".rvm"))
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_python_source_rebuilds_it(everything: Executable):
    namespace: dict[str, object] = {}
    exec(everything.as_python(), namespace)
    rebuilt = namespace["executable"]
    assert rebuilt == everything
    assert isinstance(rebuilt, Executable)
    assert rebuilt.as_python() == everything.as_python()


def test_equality_sees_every_part(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("f", [ib.r(0), 1, "s"], ib.r(1))
        ib.emit_ret(ib.r(1))
    executable = ib.get()
    functions, constants, code = executable.functions, executable.constants, executable.code
    assert executable == Executable(functions, constants, code)
    for other in (
        Executable((*functions, FunctionInfo(FunctionKind.PACKED, "g")), constants, code),
        Executable(functions, (Constant("t"),), code),
        Executable(functions, (Constant("s", "name"),), code),
        Executable(functions, constants, (code[0], Ret(VOID))),
        Executable(functions, constants, code, metadata=Metadata(target="x86-64")),
        Executable(functions, constants, code, locations={0: "node"}),
    ):
        assert executable != other
    assert executable != "executable"


def test_text(ib: ExecBuilder):
    sum_loop(ib)
    with ib.function("f", 1, public=False):
        ib.emit_call("test.vm.add", [ib.f("main"), 0.5, ib.void_arg(), ib.vm_state()])
        ib.emit_ret()
    assert (
        ib.get().as_text()
        == """\
@main(n):  # 4 registers
     0  call  vm.builtin.copy     in: i0      dst: %1
     1  call  vm.builtin.copy     in: i0      dst: %2
     2  call  vm.builtin.int_lt   in: %1, %0  dst: %3
     3  if    %3                  else 7
     4  call  vm.builtin.int_add  in: %2, %1  dst: %2  # node sum
     5  call  vm.builtin.int_add  in: %1, i1  dst: %1
     6  goto  2
     7  ret   %2

private @f(arg0):  # 1 registers
     8  call  test.vm.add  in: f[main], c[0], void, vm  dst: void
     9  ret   void

constants:
  c[0]  float 0.5
"""
    )


def test_stats(everything: Executable):
    assert (
        everything.stats()
        == """\
Relax VM executable statistics: mode bytecode, target x86-64-v3 cores=2
  Globals (#4): [fact, main, constants, fast]
  Packed functions (#1): [test.vm.identity]
  Builtins (#7): [vm.builtin.int_le, vm.builtin.int_sub, vm.builtin.int_mul, vm.builtin.copy, vm.builtin.int_lt, \
vm.builtin.int_add, vm.builtin.make_tuple]
  Kernels (#1): [exp]
  Constants (#9): [tensor f32[2, 3], shape [2, 3], string 'text ☃', int 1152921504606846976, float -0.0, float nan, \
bool True, dtype bf16, tensor @empty ui8[0, 4]]
  Instructions: 18
  Native objects (#1): [x86-64-v3 15 bytes]"""
    )


def test_entries(everything: Executable):
    assert everything.entries == ("fact", "main")
    assert everything.has_function("main")
    for name in ("constants", "exp", "test.vm.identity", "nothing"):
        assert not everything.has_function(name)


REGISTER = Operand(OperandKind.REGISTER, 0)
MAIN = FunctionInfo(FunctionKind.BYTECODE, "main", ("x",), start=0, end=2, frame_size=2)
PACKED = FunctionInfo(FunctionKind.PACKED, "f")
GOOD = (Call(1, 1, (REGISTER,)), Ret(REGISTER))


def operand(kind: OperandKind, value: int) -> Operand:
    return Operand(kind, value)


@pytest.mark.parametrize(
    ("functions", "code", "message"),
    [
        (
            [MAIN, PACKED],
            [Call(2, 1, ()), GOOD[1]],
            "destination 2 is out of range, there are 2 registers",
        ),
        ([MAIN, PACKED], [Call(1, 2, ()), GOOD[1]], "instruction 0: function 2 is out of range, there are 2"),
        ([MAIN, PACKED], [GOOD[0], Ret(operand(OperandKind.REGISTER, 9))], "register 9 is out of range, there are 2"),
        ([MAIN, PACKED], [GOOD[0], Ret(operand(OperandKind.CONSTANT, 0))], "constant 0 is out of range, there are 0"),
        ([MAIN, PACKED], [GOOD[0], Ret(operand(OperandKind.FUNCTION, -1))], "function -1 is out of range"),
        ([MAIN, PACKED], [Call(1, 0, ()), GOOD[1]], "call of main expected 1 arguments, got 0"),
        ([MAIN, PACKED], [Goto(2), GOOD[1]], "instruction 0: jump by 2 leaves the function"),
        ([MAIN, PACKED], [If(REGISTER, -1), GOOD[1]], "instruction 0: jump by -1 leaves the function"),
        ([MAIN, PACKED], [GOOD[1], GOOD[0]], "the last instruction expected ret or goto"),
        ([MAIN, PACKED], [*GOOD, GOOD[1]], "instructions 2 to 3 belong to no function"),
        ([MAIN, PACKED], [GOOD[1]], "function main: instructions 0 to 2 do not follow on 0 within 1"),
        ([MAIN, MAIN], GOOD, "two functions are called 'main'"),
        ([MAIN, FunctionInfo(FunctionKind.PACKED, "")], GOOD, "a function has no name"),
        ([MAIN, FunctionInfo(FunctionKind.PACKED, "vm.builtin.x")], GOOD, "is not a function of the run-time library"),
        ([MAIN, FunctionInfo(FunctionKind.KERNEL, "vm.builtin.copy")], GOOD, "not a function of the run-time library"),
        (
            [MAIN, FunctionInfo(FunctionKind.PACKED, "vm.builtin.int_add")],
            GOOD,
            "call of vm.builtin.int_add expected 2 arguments, got 1",
        ),
    ],
)
def test_wrong_executables_are_refused(functions: list[FunctionInfo], code: list[Call], message: str):
    with pytest.raises(ValueError, match=message):
        Executable(tuple(functions), (), tuple(code))


def test_frames_have_a_limit():
    big = FunctionInfo(FunctionKind.BYTECODE, "main", (), start=0, end=1, frame_size=1 << 40)
    with pytest.raises(ValueError, match="function main: 0 parameters in 1099511627776 registers"):
        Executable((big,), (), (Ret(VOID),))


def test_other_parts_are_checked():
    with pytest.raises(ValueError, match="mode expected bytecode or native, got 'jit'"):
        Executable((MAIN, PACKED), (), GOOD, metadata=Metadata("jit"))
    with pytest.raises(ValueError, match="location of instruction 2, but there are 2 instructions"):
        Executable((MAIN, PACKED), (), GOOD, locations={2: "node"})


def test_a_loaded_executable_runs(ib: ExecBuilder, tmp_path: Path):
    factorial(ib)
    ib.get().save(tmp_path / "m.rvm")
    assert VirtualMachine(Executable.load(tmp_path / "m.rvm"))["fact"](5) == 120
