"""Which files are accepted: machine code is code, bytecode is data (`SECURITY.md`)."""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from tests.vm_dialect.programs import depth, sum_loop
from vm_dialect import ExecBuilder, Executable, VirtualMachine, files, thread
from vm_dialect.errors import StepLimitError, UntrustedError
from vm_dialect.executable.format import Trust, read_file, write_file
from vm_dialect.files import NO_SEAL, SEAL_BYTES
from vm_dialect.tensors import to_numpy

SEAL_PLACE = 24 + 7 * 24 + 4


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Executable], bytes]:
    """The bytes of a file that another user has written."""

    def written(executable: Executable) -> bytes:
        with monkeypatch.context() as patch:
            patch.setenv("RELAX_KEY_FILE", str(tmp_path / "key of another"))
            return executable.to_bytes()

    return written


def foreign(ib: ExecBuilder, elsewhere: Callable[[Executable], bytes]) -> Executable:
    loaded = Executable.from_bytes(elsewhere(ib.get()))
    assert loaded.is_foreign
    return loaded


def test_what_this_user_writes_is_accepted(everything: Executable, tmp_path: Path):
    everything.save(path := tmp_path / "m.rvm")
    assert Executable.load(path) == everything
    assert not Executable.load(path).is_foreign
    assert not Executable.from_bytes(everything.to_bytes()).is_foreign


def test_machine_code_of_others_is_refused(everything: Executable, elsewhere, tmp_path: Path):
    path = tmp_path / "m.rvm"
    path.write_bytes(elsewhere(everything))
    message = rf"{path}: the file holds machine code, and was not written by this user .*load\('{path}', trust=True\)"
    with pytest.raises(UntrustedError, match=message):
        Executable.load(path)
    assert Executable.load(path, trust=True) == everything
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert Executable.load(path, sha256=digest.upper()) == everything
    with pytest.raises(UntrustedError, match=f"expected a file with the SHA-256 {'0' * 64}, got {digest}"):
        Executable.load(path, sha256="0" * 64)


def test_a_file_without_a_seal_and_an_altered_one_are_refused(everything: Executable):
    data = everything.to_bytes()
    assert data[SEAL_PLACE:][:SEAL_BYTES] != NO_SEAL
    with pytest.raises(UntrustedError):
        Executable.from_bytes(data[:SEAL_PLACE] + NO_SEAL + data[SEAL_PLACE + SEAL_BYTES :])
    other = replace(everything, native=(replace(everything.native[0], code=b"\x7fELF other code"),)).to_bytes()
    with pytest.raises(UntrustedError):
        Executable.from_bytes(other[:SEAL_PLACE] + data[SEAL_PLACE:][:SEAL_BYTES] + other[SEAL_PLACE + SEAL_BYTES :])


def test_a_seal_for_another_purpose_does_not_fit(everything: Executable, tmp_path: Path):
    write_file(everything, path := tmp_path / "entry", "program a", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_file(Executable, path, Trust(purpose="program a"), private=True) == everything
    for trust in (Trust(), Trust(purpose="program b")):
        with pytest.raises(UntrustedError):
            read_file(Executable, path, trust)


def test_what_came_from_elsewhere_stays_so(ib: ExecBuilder, elsewhere, tmp_path: Path):
    sum_loop(ib)
    loaded = foreign(ib, elsewhere)
    loaded.save(path := tmp_path / "copy.rvm")
    assert Executable.load(path).is_foreign


def test_bytecode_of_others_runs(ib: ExecBuilder, elsewhere):
    sum_loop(ib)
    assert VirtualMachine(foreign(ib, elsewhere))["main"](10) == 45


def call_by_name(ib: ExecBuilder, name: str) -> None:
    with ib.function("main", 1):
        ib.emit_call(name, [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))


@pytest.mark.parametrize(
    "name", ["test.vm.identity", "ffi.ModuleLoadFromFile", "ffi.Module.load_from_file.so", "vm.builtin.run_deferred"]
)
def test_bytecode_of_others_calls_only_what_is_allowed(ib: ExecBuilder, elsewhere, name: str):
    call_by_name(ib, name)
    loaded = foreign(ib, elsewhere)
    with pytest.raises(UntrustedError, match=rf'function "{name}" is not allowed.*allow=\["{name}"\]'):
        VirtualMachine(loaded)


def test_functions_that_the_host_gives_or_allows(ib: ExecBuilder, elsewhere):
    call_by_name(ib, "test.vm.identity")
    loaded = foreign(ib, elsewhere)
    assert VirtualMachine(loaded, allow=["test.vm.identity"])["main"](3) == 3
    assert VirtualMachine(loaded, packed={"test.vm.identity": lambda value: value + 1})["main"](3) == 4
    with pytest.raises(TypeError, match=r"allow expected a collection of names, got the text 'test.vm.identity'"):
        VirtualMachine(loaded, allow="test.vm.identity")


def test_functions_found_at_run_time(ib: ExecBuilder, elsewhere):
    """Also a name that the program makes up, or is given, is one that it may call."""
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.get_packed_func", [ib.r(0)], ib.r(1))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(1), 5], ib.r(1))
        ib.emit_ret(ib.r(1))
    assert VirtualMachine(ib.get())["main"]("test.vm.identity") == 5
    machine = VirtualMachine(foreign(ib, elsewhere), allow=["test.vm.identity"])
    assert machine["main"]("test.vm.identity") == 5
    with pytest.raises(UntrustedError, match=r'"ffi.ModuleLoadFromFile" is not allowed'):
        machine["main"]("ffi.ModuleLoadFromFile")


def test_memory_of_others_programs_begins_as_zeros(ib: ExecBuilder, elsewhere):
    with ib.function("main", 0):
        ib.emit_call("vm.builtin.new_tensor", ["f32", 1000], ib.r(0))
        ib.emit_call("vm.builtin.alloc_storage", [4000], ib.r(1))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(1), 0, "f32", 1000], ib.r(1))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1)], ib.r(0))
        ib.emit_ret(ib.r(0))
    dirty = [np.full(1000, 7, np.float32) for _ in range(100)]
    del dirty
    for tensor in VirtualMachine(foreign(ib, elsewhere))["main"]():
        assert not to_numpy(tensor).any()


def endless(ib: ExecBuilder, name: str = "main") -> None:
    with ib.function(name, 0):
        ib.emit_call("vm.builtin.copy", [0], ib.r(0))
        ib.emit_goto(-1)


def test_programs_without_an_end_are_stopped(ib: ExecBuilder):
    endless(ib)
    sum_loop_of = ExecBuilder()
    sum_loop(sum_loop_of)
    with pytest.raises(StepLimitError, match="main: has not ended after 1000 instructions, as many as max_steps"):
        VirtualMachine(ib.get(), max_steps=1000)["main"]()
    needed = 2 + 5 * 500 + 3  # five for each turn of the loop, two before it, and three at its end
    assert VirtualMachine(sum_loop_of.get(), max_steps=needed)["main"](500) == 124750
    with pytest.raises(StepLimitError):
        VirtualMachine(sum_loop_of.get(), max_steps=needed - 1)["main"](500)


def test_runs_inside_of_others_share_their_limit(ib: ExecBuilder):
    """The builtin calls the function through Python, where it is a run of its own."""
    endless(ib, "endless")
    with ib.function("main", 0):
        ib.emit_call("vm.builtin.make_shape", [], ib.r(0))
        ib.emit_call("vm.builtin.call_tir_dyn", [ib.f("endless"), ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    machine = VirtualMachine(ib.get(), max_steps=10_000)
    for _ in range(2):
        with pytest.raises(StepLimitError, match="has not ended after 10000 instructions"):
            machine["main"]()


def test_recursion_ends_in_an_error(ib: ExecBuilder, monkeypatch: pytest.MonkeyPatch):
    depth(ib)
    with pytest.raises(RecursionError, match="depth: more than 100 calls inside each other"):
        VirtualMachine(ib.get(), max_depth=100)["depth"](1000)
    wide = ExecBuilder()
    with wide.function("main", 1, frame_size=1 << 20):
        wide.emit_call("main", [wide.r(0)], wide.r(1))
        wide.emit_call("vm.builtin.int_add", [1, 1], wide.r(2))
        wide.emit_ret(wide.r(1))
    monkeypatch.setattr(thread, "MOST_SLOTS", 1 << 22)
    with pytest.raises(RecursionError, match="main: calls inside each other hold more than 4194304 registers"):
        VirtualMachine(wide.get())["main"](1)


def nested(ib: ExecBuilder, fields: int) -> Executable:
    """`main(n)` puts a tuple into a tuple, `fields` times, and that n times over; then it is printed."""
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.copy", [0], ib.r(1))
        ib.emit_call("vm.builtin.make_tuple", [], ib.r(2))
        ib.emit_call("vm.builtin.int_lt", [ib.r(1), ib.r(0)], ib.r(3))
        ib.emit_if(ib.r(3), 4)
        ib.emit_call("vm.builtin.make_tuple", [ib.r(2)] * fields, ib.r(2))
        ib.emit_call("vm.builtin.int_add", [ib.r(1), 1], ib.r(1))
        ib.emit_goto(-4)
        ib.emit_call("vm.builtin.print", ["{}", ib.r(2)])
        ib.emit_ret(0)
    return ib.get()


def test_tuples_are_not_nested_without_end(ib: ExecBuilder, capsys: pytest.CaptureFixture[str]):
    machine = VirtualMachine(nested(ib, 1))
    machine["main"](100)
    assert capsys.readouterr().out == "(" * 101 + ")" * 101 + "\n"
    with pytest.raises(ValueError, match="make_tuple: more than 1000 tuples inside each other"):
        machine["main"](1_000_000)


def test_what_is_printed_has_an_end(ib: ExecBuilder):
    with pytest.raises(ValueError, match="print: a tuple of more than 10000 fields in all"):
        VirtualMachine(nested(ib, 2))["main"](60)


@pytest.mark.parametrize(
    ("builtin", "given", "message"),
    [
        ("int_add", (1.5, 1), "instruction 0: int_add: argument #0: expected an int, got float"),
        (
            "tensor_dim",
            (tvm_ffi.Shape((2,)), 0),
            "instruction 0: tensor_dim: argument #0: expected a tensor, got shape",
        ),
        ("alloc_storage", ("x",), "instruction 0: alloc_storage: argument #0: expected an int, got string"),
    ],
)
def test_a_wrong_kind_is_refused_when_it_is_known(ib: ExecBuilder, builtin: str, given: tuple, message: str):
    with ib.function("main", 0):
        ib.emit_call(f"vm.builtin.{builtin}", [ib.convert_constant(value) for value in given], ib.r(0))
        ib.emit_ret(ib.r(0))
    with pytest.raises(ValueError, match=f"function main, {message}"):
        ib.get()


def test_a_wrong_kind_is_a_type_error_when_it_shows(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.copy", [ib.r(0)], ib.r(1))
        ib.emit_call("vm.builtin.shape_of", [ib.r(1)], ib.r(1))
        ib.emit_ret(ib.r(1))
    machine = VirtualMachine(ib.get())
    assert list(machine["main"](np.zeros((2, 3), np.float32))) == [2, 3]
    for value in (5, "text", None, (1, 2)):
        with pytest.raises(TypeError, match="shape_of: argument #0: expected a tensor, got"):
            machine["main"](value)


def test_registers_are_written_before_they_are_read(everything: Executable):
    from vm_dialect.executable import FunctionInfo, FunctionKind
    from vm_dialect.executable.model import Goto, If, Operand, OperandKind, Ret

    register = Operand(OperandKind.REGISTER, 1)
    info = FunctionInfo(FunctionKind.BYTECODE, "main", ("n",), True, 0, 1, 2)
    with pytest.raises(ValueError, match="function main, instruction 0: register %1 is read before it is written"):
        Executable((info,), (), (Ret(register),))
    jump = If(Operand(OperandKind.REGISTER, 0), 1)
    with pytest.raises(ValueError, match="function main, instruction 1: register %1 is read before it is written"):
        Executable((replace(info, end=2),), (), (jump, Ret(register)))
    # What is never reached reads nothing.
    Executable((replace(info, end=2),), (), (Goto(0), Ret(register)))


def test_the_key_is_of_this_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    key = tmp_path / "folder" / "key"
    monkeypatch.setenv("RELAX_KEY_FILE", str(key))
    first = files.user_key()
    assert key.read_bytes() == first
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert list(key.parent.iterdir()) == [key]


@pytest.mark.parametrize("spoil", ["readable", "short", "link", "pipe", "folder"])
def test_a_spoiled_key_is_not_used(spoil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: Executable):
    key = tmp_path / spoil
    match spoil:
        case "link":
            (tmp_path / "real").write_bytes(bytes(32))
            (tmp_path / "real").chmod(0o600)
            key.symlink_to("real")
        case "pipe":
            os.mkfifo(key, 0o600)
        case "folder":
            key.mkdir()
        case _:
            key.write_bytes(bytes(31 if spoil == "short" else 32))
            key.chmod(0o644 if spoil == "readable" else 0o600)
    monkeypatch.setenv("RELAX_KEY_FILE", str(key))
    with pytest.warns(UserWarning, match=rf"no key can be kept \({key}: .*\): .*trust=True; set RELAX_KEY_FILE"):
        data = everything.to_bytes()
    assert Executable.from_bytes(data) == everything  # of this process


def test_the_usual_place_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("RELAX_KEY_FILE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert files.key_files()[0] == tmp_path / "xdsl-relax/key"
    monkeypatch.setenv("XDG_DATA_HOME", "not absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.key_files()[0] == tmp_path / ".local/share/xdsl-relax/key"


def test_large_contents_have_one_seal_however_they_are_divided():
    data = np.arange(3 << 20, dtype=np.int64).tobytes()
    whole = files.seal("p", [[data], [b"tail"]])
    assert whole == files.seal("p", [[data[:1000], b"", data[1000 : 10 << 20], data[10 << 20 :]], [b"ta", b"il"]])
    assert whole != files.seal("p", [[data + b"t"], [b"ail"]])
    assert whole != files.seal("p", [[data[:-1] + b"\x01"], [b"tail"]])


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_read(kind: str, tmp_path: Path):
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(OSError, match=f"expected a regular file, got a {kind}"):
        Executable.load(path)
