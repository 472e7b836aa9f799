"""Executables on disk: found again for the same module and options, and for nothing else."""

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering import build
from lowering.compiler import compilation, program_cache
from lowering.compiler.build import Mode, build_file
from lowering.llvm.code_cache import NO_CACHE, CodeCache
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder
from vm_dialect import ExecBuilder, VirtualMachine
from vm_dialect.executable.format import MAGIC
from vm_dialect.files import MappedFile

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %x
  relax.return %1
}
"""
TEXT_WITH_NAMES = """
relax.func @main(%x: !relax.tensor<[3, 40], f32>) -> !relax.tensor<[3, 40], f32> {
  %w = relax.constant "fc" : !relax.tensor<[40, 40], f32>
  %0 = relax.matmul %x, %w
  relax.return %0
}
"""
RNG = np.random.default_rng(5)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[ModuleOp]:
    """The modules that were compiled."""
    done: list[ModuleOp] = []
    real = compilation.compile_program

    def count(module: ModuleOp, *given: Any, **options: Any) -> compilation.Program:
        done.append(module)
        return real(module, *given, **options)

    monkeypatch.setattr(compilation, "compile_program", count)
    return done


def linear(weight: np.ndarray, factor: float | None = None) -> ModuleOp:
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", weight.shape[0])}) as (x,):
        w = bb.const(weight, name="fc")
        bb.emit_func_output(x @ (w if factor is None else w * bb.const(np.float32(factor))))
    return bb.get()


def call(executable: Any, x: np.ndarray) -> np.ndarray:
    return np.from_dlpack(VirtualMachine(executable)["main"](x))


def entries(directory: Path, at_least: int = 0) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and path.stat().st_size >= at_least]


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_found_again(mode: Mode, tmp_path: Path, compiled: list[ModuleOp]):
    first = build(parse_module(PROGRAM), mode=mode, cache=CodeCache(tmp_path))
    again = build(parse_module(PROGRAM), mode=mode, cache=CodeCache(tmp_path))
    assert len(compiled) == 1
    assert again == first
    x = RNG.standard_normal((3, 2), dtype=np.float32)
    np.testing.assert_array_equal(call(again, x), call(first, x))
    with pytest.raises(ValueError, match=r"main: argument #0 \(x\) dimension 1: expected 2, got 5"):
        VirtualMachine(again)["main"](np.zeros((1, 5), np.float32))


@pytest.mark.slow
def test_other_options_are_other_programs(tmp_path: Path, compiled: list[ModuleOp], monkeypatch: pytest.MonkeyPatch):
    cache, module = CodeCache(tmp_path / "cache"), parse_module(PROGRAM)
    ways: list[dict[str, Any]] = [{}, {"mode": "bytecode"}, {"opt_level": 2}, {"opt_level": 0}]
    ways += [{"target": f"x86-64-v3{facts}"} for facts in ("", " l2-bytes=65536", " cores=7")]
    for _ in range(2):
        for way in ways:
            build(module, cache=cache, **way)
        assert len(compiled) == len(ways)
    (tmp_path / "tuning.json").write_text('{"version": 1, "kernels": {}}')
    monkeypatch.setenv("RELAX_TUNING_FILE", str(tmp_path / "tuning.json"))
    build(module, cache=cache)
    monkeypatch.setattr(program_cache, "program_compiler_version", lambda: "a new compiler")
    build(module, cache=cache)
    assert len(compiled) == len(ways) + 2


@pytest.mark.slow
def test_without_a_cache(tmp_path: Path, compiled: list[ModuleOp], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path))
    for cache in (False, NO_CACHE, False):
        build(parse_module(PROGRAM), cache=cache)
    assert len(compiled) == 3
    assert entries(tmp_path) == []
    build(parse_module(PROGRAM))
    assert entries(tmp_path)
    build(parse_module(PROGRAM), cache=False)
    assert len(compiled) == 5


def test_who_asks_to_see_the_work_gets_it_done(
    tmp_path: Path, compiled: list[ModuleOp], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    build(parse_module(PROGRAM), cache=CodeCache(tmp_path))
    monkeypatch.setenv("RELAX_DEBUG", "1")
    build(parse_module(PROGRAM), cache=CodeCache(tmp_path))
    assert len(compiled) == 2
    assert "IR after" in capsys.readouterr().err


@pytest.mark.sampled(4)
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other", "note"])
def test_damaged_entries_are_built_again(damage: str, tmp_path: Path, compiled: list[ModuleOp]):
    cache, weight = CodeCache(tmp_path), RNG.standard_normal((64, 64), dtype=np.float32)
    first = build(linear(weight, 2.0), cache=cache)
    for path in entries(tmp_path):
        data = bytearray(path.read_bytes())
        match damage:
            case "truncate":
                del data[-100:]
            case "flip":
                data[len(data) // 2] ^= 1
            case "empty":
                data.clear()
            case "other":
                data = bytearray(b"something else entirely")
            case _:
                data = bytearray(first.to_bytes())  # a good executable that says nothing of weights
        path.write_bytes(data)
    again = build(linear(weight, 2.0), cache=cache)
    assert len(compiled) == 2
    assert again == first
    build(linear(weight, 2.0), cache=cache)
    assert len(compiled) == 2


def test_the_file_of_another_program_is_built_again(tmp_path: Path, compiled: list[ModuleOp]):
    weight = RNG.standard_normal((8, 8), dtype=np.float32)
    modules = [linear(weight, factor) for factor in (2.0, 3.0)]
    for number, module in enumerate(modules):
        build(module, cache=CodeCache(tmp_path / str(number)))
    program, other = (_programs(tmp_path / str(number))[0] for number in range(2))
    program.write_bytes(other.read_bytes())
    again = build(modules[0], cache=CodeCache(tmp_path / "0"))
    assert len(compiled) == 3
    np.testing.assert_allclose(call(again, weight), 2 * weight @ weight, rtol=1e-4, atol=1e-4)


def _programs(directory: Path) -> list[Path]:
    return [path for path in entries(directory) if path.read_bytes().startswith(MAGIC)]


def test_weights_are_not_copied(tmp_path: Path, compiled: list[ModuleOp]):
    weight = RNG.standard_normal((300, 300), dtype=np.float32)
    x = RNG.standard_normal((2, 300), dtype=np.float32)
    build(linear(weight), cache=CodeCache(tmp_path), opt_level=0)
    assert entries(tmp_path, weight.nbytes) == []
    again = build(linear(weight.copy()), cache=CodeCache(tmp_path), opt_level=0)
    assert len(compiled) == 1
    np.testing.assert_allclose(call(again, x), x @ weight, rtol=1e-4, atol=1e-4)


def test_what_is_made_of_weights_is_kept(tmp_path: Path, compiled: list[ModuleOp]):
    weight = RNG.standard_normal((300, 300), dtype=np.float32)
    x = RNG.standard_normal((2, 300), dtype=np.float32)
    first = build(linear(weight, 3.0), cache=CodeCache(tmp_path))
    again = build(linear(weight, 3.0), cache=CodeCache(tmp_path))
    assert len(compiled) == 1
    np.testing.assert_array_equal(call(again, x), call(first, x))
    np.testing.assert_allclose(call(again, x), x @ (3 * weight), rtol=1e-3, atol=1e-3)


def test_weights_that_differ_in_one_element(tmp_path: Path, compiled: list[ModuleOp]):
    weight = RNG.standard_normal((64, 64), dtype=np.float32)
    other = weight.copy()
    other[13, 7] += 1
    x = RNG.standard_normal((2, 64), dtype=np.float32)
    for array in (weight, other, weight):
        result = call(build(linear(array, 2.0), cache=CodeCache(tmp_path)), x)
        np.testing.assert_allclose(result, x @ (2 * array), rtol=1e-4, atol=1e-4)
    assert len(compiled) == 2


def test_programs_too_large_for_the_cache_are_not_kept(tmp_path: Path, compiled: list[ModuleOp]):
    weight = RNG.standard_normal((300, 300), dtype=np.float32)
    for _ in range(2):
        build(linear(weight, 3.0), cache=CodeCache(tmp_path, max_bytes=weight.nbytes))
    assert len(compiled) == 2


def test_weights_that_are_given_beside_the_module(tmp_path: Path, compiled: list[ModuleOp]):
    module, cache = parse_module(TEXT_WITH_NAMES), CodeCache(tmp_path)
    x = RNG.standard_normal((3, 40), dtype=np.float32)
    for _ in range(3):
        weight = RNG.standard_normal((40, 40), dtype=np.float32)
        result = call(build(module, cache=cache, weights={"fc": weight}), x)
        np.testing.assert_allclose(result, x @ weight, rtol=1e-4, atol=1e-5)
    assert len(compiled) == 1
    with pytest.raises(DiagnosticException, match="@fc has no elements"):
        build(module, cache=cache)
    with pytest.raises(DiagnosticException, match=r"@fc expected f32\[40, 40\], got elements of f32\[2\]"):
        build(module, cache=cache, weights={"fc": tvm_ffi.from_dlpack(np.zeros(2, np.float32))})


def test_errors_name_the_place_in_the_text_that_is_built(tmp_path: Path):
    text = """
    relax.func @main(%x: !relax.tensor<[_], f32>, %y: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
      %0 = relax.add %x, %y
      relax.return %0
    }
    """
    for name in ("first.mlir", "second.mlir", "first.mlir"):
        main = VirtualMachine(build(parse_module(text, name), mode="bytecode", cache=CodeCache(tmp_path)))["main"]
        with pytest.raises(ValueError, match=f"dimensions that broadcast at {name}:3:7"):
            main(np.zeros(2, np.float32), np.zeros(3, np.float32))


def _build_often(directory: Path, failures: "multiprocessing.Queue[str]") -> None:
    weight = np.arange(1600, dtype=np.float32).reshape(40, 40)
    x = np.ones((1, 40), np.float32)
    for step in range(6):
        # So small a bound that entries go while others read and write them.
        cache = CodeCache(directory, max_bytes=200_000)
        factor = float(step % 2 + 1)
        if not np.allclose(call(build(linear(weight, factor), cache=cache), x), x @ (weight * factor)):
            failures.put(f"wrong values for {factor}")


@pytest.mark.slow
def test_concurrent_processes(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    failures: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=_build_often, args=(tmp_path, failures)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 2
    assert failures.empty()
    assert not [path for path in entries(tmp_path) if path.name.startswith(".")]


def test_an_interrupted_write_leaves_no_entry(
    tmp_path: Path, compiled: list[ModuleOp], monkeypatch: pytest.MonkeyPatch
):
    build(parse_module(PROGRAM), cache=CodeCache(tmp_path))  # kernels are there
    before = set(entries(tmp_path))

    def interrupt(*names: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(parse_module(PROGRAM, "elsewhere.mlir"), cache=CodeCache(tmp_path))
    assert set(entries(tmp_path)) == before
    build(parse_module(PROGRAM, "elsewhere.mlir"), cache=CodeCache(tmp_path))
    assert len(compiled) == 3


def test_only_what_the_cache_has_written_for_the_key_is_used(tmp_path: Path, compiled: list[ModuleOp]):
    """Neither another program of this user instead of an entry, nor bytecode without a seal, nor a pipe."""
    cache, module = CodeCache(tmp_path / "cache"), parse_module(PROGRAM)
    other = build(parse_module(PROGRAM.replace("relax.add", "relax.subtract")), cache=False)
    x = RNG.standard_normal((3, 2), dtype=np.float32)
    expected = call(build(module, cache=cache), x)
    (path,) = (path for path in entries(tmp_path) if path.read_bytes().startswith(MAGIC))
    seal_place = 24 + 7 * 24 + 4
    unsealed = ExecBuilder()
    with unsealed.function("main", 1):
        unsealed.emit_ret(unsealed.r(0))
    data = unsealed.get().to_bytes()
    planted = [other.to_bytes(), data, data[:seal_place] + bytes(32) + data[seal_place + 32 :]]
    done = len(compiled)
    for contents in planted:
        path.write_bytes(contents)
        np.testing.assert_array_equal(call(build(module, cache=cache), x), expected)
        done += 1
        assert len(compiled) == done
    path.unlink()
    os.mkfifo(path)
    np.testing.assert_array_equal(call(build(module, cache=cache), x), expected)
    np.testing.assert_array_equal(call(build(module, cache=cache), x), expected)
    assert len(compiled) == done + 1


COLUMNS = 10
"""So few that no machine packs the weight: it stays where it is in the file."""


def of_file(path: Path, cache: CodeCache, made: list[str], options: str = "", factor: float | None = None) -> Any:
    """The executable of a file that holds a weight."""
    file = MappedFile.open(path)

    def module() -> ModuleOp:
        made.append(options)
        return linear(np.frombuffer(file.memory, np.float32).reshape(16, COLUMNS), factor)

    return build_file([file], module, options, cache=cache)


def test_file_found_again_without_a_module(tmp_path: Path, compiled: list[ModuleOp]):
    path, cache, made = tmp_path / "weights", CodeCache(tmp_path / "cache"), list[str]()
    weight = RNG.standard_normal((16, COLUMNS), dtype=np.float32)
    x = RNG.standard_normal((3, 16), dtype=np.float32)
    weight.tofile(path)
    first = of_file(path, cache, made)
    again = of_file(path, cache, made)
    assert (len(made), len(compiled)) == (1, 1)
    assert again == first
    np.testing.assert_allclose(call(again, x), x @ weight, rtol=1e-4, atol=1e-5)
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))]
    (constant,) = [each for each in again.constants if isinstance(each.value, tvm_ffi.Tensor)]
    where = [[int(end, 16) for end in fields[0].split("-")] for fields in maps]
    assert any(first <= constant.value.data_ptr() < last for first, last in where), "the weight was copied"
    of_file(path, cache, made, "other")
    assert (len(made), len(compiled)) == (2, 1), "other options are another module, which may be the same program"


@pytest.mark.parametrize("factor", [None, 2.0])
def test_file_that_was_written_to(factor: float | None, tmp_path: Path):
    """Neither size nor time of modification tell, and what the compiler made of a weight is in the executable."""
    path, cache, made = tmp_path / "weights", CodeCache(tmp_path / "cache"), list[str]()
    x = RNG.standard_normal((3, 16), dtype=np.float32)
    for _ in range(2):
        weight = RNG.standard_normal((16, COLUMNS), dtype=np.float32)
        weight.tofile(path)
        os.utime(path, ns=(0, 0))
        for _ in range(2):
            found = call(of_file(path, cache, made, factor=factor), x)
            np.testing.assert_allclose(found, x @ weight * (factor or 1), rtol=1e-4, atol=1e-4)
    assert len(made) == 2


def test_file_whose_entries_are_damaged(tmp_path: Path, compiled: list[ModuleOp]):
    path, cache, made = tmp_path / "weights", CodeCache(tmp_path / "cache"), list[str]()
    RNG.standard_normal((16, COLUMNS), dtype=np.float32).tofile(path)
    first = of_file(path, cache, made)
    for entry in entries(tmp_path / "cache"):
        entry.write_bytes(entry.read_bytes()[:-1])
    assert of_file(path, cache, made) == first
    assert (len(made), len(compiled)) == (2, 2)


def test_weight_that_is_not_in_the_file(tmp_path: Path, compiled: list[ModuleOp]):
    path, made = tmp_path / "weights", list[ModuleOp]()
    path.write_bytes(b"something")
    weight, x = RNG.standard_normal((16, COLUMNS), dtype=np.float32), np.ones((2, 16), np.float32)
    for _ in range(2):
        executable = build_file(
            [MappedFile.open(path)],
            lambda: made.append(linear(weight)) or made[-1],
            "",
            cache=CodeCache(tmp_path / "c"),
        )
        np.testing.assert_allclose(call(executable, x), x @ weight, rtol=1e-4, atol=1e-5)
    assert (len(made), len(compiled)) == (2, 1)


def test_weights_in_several_files(tmp_path: Path, compiled: list[ModuleOp]):
    weight, x, made = RNG.standard_normal((16, COLUMNS), dtype=np.float32), np.ones((2, 16), np.float32), list[int]()
    (tmp_path / "first").write_bytes(b"of another kind")
    (tmp_path / "second").write_bytes(weight.tobytes())
    for _ in range(2):
        files = [MappedFile.open(tmp_path / name) for name in ("first", "second")]

        def module(second: MappedFile = files[1]) -> ModuleOp:
            made.append(1)
            return linear(np.frombuffer(second.memory, np.float32).reshape(16, COLUMNS))

        executable = build_file(files, module, "", cache=CodeCache(tmp_path / "c"))
        np.testing.assert_allclose(call(executable, x), x @ weight, rtol=1e-4, atol=1e-5)
    assert (len(made), len(compiled)) == (1, 1)
    (tmp_path / "first").write_bytes(b"something else")
    build_file(
        [MappedFile.open(tmp_path / name) for name in ("first", "second")], module, "", cache=CodeCache(tmp_path / "c")
    )
    assert len(made) == 2


def test_a_large_executable_is_written_by_a_thread(
    tmp_path: Path, compiled: list[ModuleOp], monkeypatch: pytest.MonkeyPatch
):
    """Whoever looks for it, here or in another process that starts after this one, finds the whole of it."""
    monkeypatch.setattr(program_cache, "LARGE_BYTES", 0)
    begin, threads = threading.Event(), list[str]()
    write = program_cache.write_file

    def slow(*given: Any, **options: Any) -> None:
        begin.wait(60)
        threads.append(threading.current_thread().name)
        write(*given, **options)

    monkeypatch.setattr(program_cache, "write_file", slow)
    cache = CodeCache(tmp_path)
    first = build(parse_module(PROGRAM), cache=cache)
    assert not threads  # which has not held up the build
    begin.set()
    second = build(parse_module(PROGRAM), cache=cache)
    assert len(compiled) == 1
    assert [name.partition("_")[0] for name in threads] == ["relax-cache"]
    x = RNG.standard_normal((3, 2), np.float32)
    results = [np.from_dlpack(VirtualMachine(each)["main"](tvm_ffi.from_dlpack(x))) for each in (first, second)]
    np.testing.assert_array_equal(*results)


LARGE = """
import numpy as np
from lowering import build
from lowering.compiler import program_cache
from relax_dialect.builder import BlockBuilder

program_cache.LARGE_BYTES = 0
bb = BlockBuilder()
with bb.function("main", {"x": (4, 2048)}) as (x,):
    bb.emit_func_output(x @ bb.const(np.ones((2048, 2100), np.float32)))
build(bb.get())
"""


@pytest.mark.slow
def test_the_end_of_the_process_waits_for_the_thread(tmp_path: Path):
    """Packed weights of more than one piece: a seal is made of digests of pieces, and no thread starts at the end."""
    environment = {**os.environ, "RELAX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LARGE], env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr
    assert max(path.stat().st_size for path in tmp_path.rglob("*")) > 2048 * 2100 * 4


def _build_in_a_fork(directory: Path) -> None:
    build(parse_module(PROGRAM), cache=CodeCache(directory))


def test_a_fork_does_not_wait_for_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(program_cache, "LARGE_BYTES", 0)
    begin, write = threading.Event(), program_cache.write_file
    monkeypatch.setattr(
        program_cache, "write_file", lambda *given, **options: begin.wait(60) and write(*given, **options)
    )
    build(parse_module(PROGRAM), cache=CodeCache(tmp_path))
    monkeypatch.setattr(program_cache, "write_file", write)
    child = multiprocessing.get_context("fork").Process(target=_build_in_a_fork, args=(tmp_path,))
    child.start()
    child.join(60)
    code = child.exitcode
    begin.set()
    CodeCache(tmp_path).clear()
    assert code == 0


def test_a_directory_that_cannot_be_written_is_said_by_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(program_cache, "LARGE_BYTES", 0)

    def full(*given: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(program_cache, "write_file", full)

    def build_and_wait() -> None:
        build(parse_module(PROGRAM), cache=CodeCache(tmp_path))
        CodeCache(tmp_path).clear()

    with pytest.warns(UserWarning, match="cannot be written .No space left on device."):
        build_and_wait()
