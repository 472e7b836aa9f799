import platform
import shutil
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import tvm_ffi

from vm_dialect import ExecBuilder, Executable
from vm_dialect.executable import FunctionKind, Metadata, NativeObject
from vm_dialect.executable.library import SYMBOL_PREFIX, linker
from vm_dialect.library import load_library

# add_one(x), by the packed calling convention: the value of an argument is 8 bytes after its type index; 1 is `int`.
SOURCE = """
define i32 @__tvm_ffi_add_one(ptr %self, ptr %args, i32 %count, ptr %result) {
  %place = getelementptr i8, ptr %args, i64 8
  %value = load i64, ptr %place
  %sum = add i64 %value, 1
  store i64 1, ptr %result
  %out = getelementptr i8, ptr %result, i64 8
  store i64 %sum, ptr %out
  ret i32 0
}
"""


def native_code(source: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    return target.emit_object(llvm.parse_assembly(source))


def executable(*symbols: str) -> Executable:
    ib = ExecBuilder()
    ib.set_metadata(Metadata("native"))
    ib.declare_function("add_one", FunctionKind.NATIVE, ["x"])
    ib.add_native_object(NativeObject("host", "elf", native_code(SOURCE), symbols))
    return ib.get()


def has_linker() -> bool:
    return any(shutil.which(driver) for driver in ("cc", "gcc", "clang"))


def test_a_library_is_opened_by_tvm_ffi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CC", raising=False)
    path = tmp_path / "m.so"
    made = executable(f"{SYMBOL_PREFIX}add_one")
    if has_linker():
        made.export_library(path)
        assert tvm_ffi.load_module(str(path)).add_one(41) == 42
    else:
        with pytest.raises(RuntimeError, match="export_library needs a linker"):
            made.export_library(path)


def test_what_is_missing_is_named(ib: ExecBuilder, tmp_path: Path):
    with pytest.raises(ValueError, match="the native code has no symbol __tvm_ffi_add_one"):
        executable("add_one").export_library(tmp_path / "m.so")
    with pytest.raises(ValueError, match="the executable has no native code: build with mode native"):
        ib.get().export_library(tmp_path / "m.so")
    with ib.function("main"):
        ib.emit_ret()
    with pytest.raises(ValueError, match="no native code for main: build with mode native"):
        ib.get().export_library(tmp_path / "m.so")


def test_failures_of_the_linker_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = executable(f"{SYMBOL_PREFIX}add_one")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(RuntimeError, match="the linker false failed"):
        made.export_library(tmp_path / "m.so")
    monkeypatch.setenv("CC", str(tmp_path / "nothing"))
    with pytest.raises(RuntimeError, match="cannot run the linker"):
        made.export_library(tmp_path / "m.so")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"needs a linker for .*: install one of cc, gcc, clang, or set CC"):
        linker(platform.machine())
    with pytest.raises(RuntimeError, match="needs a linker for m68k: install m68k-linux-gnu-gcc, or set CC, such as "):
        linker("m68k")


def test_the_linker_of_another_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It says what it makes code for."""
    driver = tmp_path / "other cc"
    driver.write_text("#!/bin/sh\necho m68k-linux-gnu\n")
    driver.chmod(0o755)
    monkeypatch.setenv("CC", f"'{driver}' --option")
    assert linker("m68k") == [str(driver), "--option"]
    with pytest.raises(RuntimeError, match="makes code for m68k-linux-gnu, and this is for riscv64: install "):
        linker("riscv64")
    driver.write_text("#!/bin/sh\nexit 1\n")
    assert linker("riscv64") == [str(driver), "--option"]


def test_a_library_of_another_architecture(tmp_path: Path):
    """The system would say that there is no such file."""
    path = tmp_path / "m.so"
    machine, number = next(each for each in (("aarch64", 183), ("x86_64", 62)) if each[0] != platform.machine())
    path.write_bytes(b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + b"\x03\x00" + bytes([number, 0]) + bytes(44))
    with pytest.raises(RuntimeError, match=f"m.so: the library is for {machine}, and this machine is "):
        load_library(path)
