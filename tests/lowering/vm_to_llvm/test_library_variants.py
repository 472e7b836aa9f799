"""Code for several processors, and weights outside of libraries."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder
from tir_dialect.target import Target
from vm_dialect import Executable, VirtualMachine, load_library
from vm_dialect.builtins import GLOBALS
from vm_dialect.executable import Metadata
from vm_dialect.executable.library import LIBRARY_BUILTINS, constants_for, merged, objects_by_target
from vm_dialect.executable.model import Constant
from vm_dialect.executable.weight_file import named_tensors
from vm_dialect.tensors import from_numpy, to_numpy

HOST = Target.host()
NOWHERE, BASELINE = {
    "x86_64": ("x86-64-v4 features=+xop,+amx-fp16", "x86-64-v2"),
    "aarch64": ("neoverse-n2 features=+mops,+cssc", "aarch64"),
}[HOST.arch]
WEIGHT = np.linspace(-1, 1, 64 * 100, dtype=np.float32).reshape(64, 100)
X = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)

needs_linker = pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")


def product() -> Any:
    """A product with a weight, which each target packs for itself, and a sum with one that all share."""
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 64)}) as (x,):
        bb.emit_func_output(x @ bb.const(WEIGHT) + bb.const(WEIGHT[0]))
    return bb.get()


EXPECTED = X @ WEIGHT + WEIGHT[0]


@pytest.fixture(scope="module")
def several() -> Executable:
    return build(product(), target=[BASELINE, NOWHERE])


def assert_right(function: Any) -> None:
    np.testing.assert_allclose(to_numpy(function(X)), EXPECTED, rtol=1e-4, atol=1e-5)


def test_the_best_code_that_this_processor_runs_is_loaded(several: Executable):
    targets = [each.partition(" ")[2] for each in objects_by_target(several)]
    assert targets[0].startswith(Target.parse(NOWHERE).cpu)
    assert len(targets) == 2
    assert_right(VirtualMachine(several)["main"])
    assert_right(VirtualMachine(Executable.from_bytes(several.to_bytes()))["main"])


def test_constants_that_targets_share_are_there_once(several: Executable):
    alone = [build(product(), target=target) for target in (BASELINE, NOWHERE)]
    size = sum(to_numpy(each).nbytes for each in named_tensors(several.constants).values())
    assert size < sum(to_numpy(each).nbytes for one in alone for each in named_tensors(one.constants).values())
    for one in alone:
        found = constants_for(several.constants, one.metadata.target)
        for constant in one.constants:
            assert np.array_equal(to_numpy(found[constant.name].value), to_numpy(constant.value))


def test_targets_are_of_native_code():
    with pytest.raises(ValueError, match="expected mode native, got bytecode"):
        build(product(), target=["host", BASELINE], mode="bytecode")
    with pytest.raises(ValueError, match="at least one target"):
        build(product(), target=[])


@needs_linker
@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_a_library_chooses_when_it_is_opened(several: Executable, weights: Any, tmp_path: Path):
    several.export_library(tmp_path / "m.so", weights=weights)
    assert_right(load_library(tmp_path / "m.so")["main"])
    assert (tmp_path / "m.so.weights").exists() == (weights == "beside")


@needs_linker
def test_a_library_that_cannot_run_says_so_when_it_is_loaded(tmp_path: Path):
    build(product(), target=NOWHERE).export_library(tmp_path / "m.so")
    with pytest.raises(RuntimeError, match=r"m.so: the library is compiled for the processor .* and this one lacks "):
        load_library(tmp_path / "m.so")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library without its weights, and the file of these."""
    folder = tmp_path_factory.mktemp("shared")
    made = build(product())
    made.export_library(folder / "m.so", weights="given")
    made.save_weights(folder / "w")
    assert not (folder / "m.so.weights").exists()
    assert (folder / "m.so").stat().st_size < WEIGHT.nbytes + 100_000
    return folder


def copied(shared: Path, tmp_path: Path) -> Path:
    """A library of its own: one is opened once in a process."""
    shutil.copy(shared / "m.so", tmp_path / "m.so")
    return tmp_path / "m.so"


@needs_linker
def test_weights_are_given_as_a_file(shared: Path, tmp_path: Path):
    library = load_library(copied(shared, tmp_path), weights=shared / "w")
    assert_right(library["main"])
    with pytest.raises(RuntimeError, match="the weights are in use; give them before the first call"):
        load_library(tmp_path / "m.so", weights=shared / "w")


@needs_linker
def test_weights_are_given_as_arrays(shared: Path, tmp_path: Path):
    tensors = {each.name: to_numpy(each.value) for each in build(product()).constants if each.name}
    with pytest.raises(ValueError, match="nobody: the library has no such weight"):
        load_library(copied(shared, tmp_path), weights={"nobody": WEIGHT})
    name = next(iter(tensors))
    with pytest.raises(TypeError, match="expected a contiguous tensor of the shape and dtype"):
        load_library(tmp_path / "m.so", weights={name: WEIGHT[:2, :2].copy()})
    assert_right(load_library(tmp_path / "m.so", weights=tensors)["main"])


@needs_linker
def test_missing_and_wrong_files_of_weights_are_errors_of_the_call(shared: Path, tmp_path: Path):
    function = load_library(copied(shared, tmp_path))["main"]
    with pytest.raises(RuntimeError, match=r"m.so.weights: cannot open the file of weights"):
        function(X)
    data = (shared / "w").read_bytes()
    for damaged, message in (
        (b"something else" * 9, "this is no file of weights"),
        (data[:8] + bytes(16) + data[24:], "the weights are not those of this program"),
        (data[:-64], "the file of weights is cut off"),
    ):
        (tmp_path / "m.so.weights").write_bytes(damaged)
        with pytest.raises(RuntimeError, match=message):
            function(X)
    (tmp_path / "m.so.weights").write_bytes(data)
    assert_right(function)


@needs_linker
def test_a_library_with_weights_takes_no_others(tmp_path: Path):
    build(product()).export_library(tmp_path / "m.so")
    with pytest.raises(ValueError, match="the library holds its weights"):
        load_library(tmp_path / "m.so", weights={})
    with pytest.raises(ValueError, match="weights expected inside, beside or given, got elsewhere"):
        build(product()).export_library(tmp_path / "m.so", weights=cast("Any", "elsewhere"))


WHOLE = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>, %b: !relax.tensor<[2], i64>)
    -> !relax.object impure {
  relax.print "x = {}"(%x)
  relax.assert %c, "not so: {}"(%x)
  %unique = relax.unique %x
  %nonzero = relax.nonzero %x
  %sizes = relax.tensor_to_shape %b
  %y = relax.reshape %x, %sizes
  %shape = relax.shape_of %y
  %t = relax.shape_to_tensor %shape
  %begin = relax.constant dense<0> : tensor<2xi64>
  %strides = relax.constant dense<1> : tensor<2xi64>
  %slice = relax.dynamic_strided_slice %y, %begin, %b, %strides
  %axis = relax.null
  %kinds = relax.call_pure_packed "vm.builtin.unique"(%x, %axis) : !relax.object
  %places = relax.call_pure_packed "vm.builtin.nonzero"(%x) : !relax.object
  %f = relax.extern_func "ffi.Shape" : !relax.func<* -> !relax.object, impure>
  %r = relax.tuple(%unique, %nonzero, %y, %t, %slice, %kinds, %places)
  relax.return %r
}
"""

USER = """
import sys
import numpy as np
import tvm_ffi

main = tvm_ffi.load_module(sys.argv[1]).main
x, sizes = np.array([1, 2, 2, 0, 5, 0], "f4"), np.array([2, 3])
print([np.from_dlpack(each).tolist() for each in main(x, np.array(True), sizes)])
try:
    main(x, np.array(False), sizes)
except ValueError as error:
    print(error)
assert not {"lowering", "vm_dialect", "xdsl", "llvmlite"} & sys.modules.keys()
"""


@pytest.mark.slow
@needs_linker
def test_what_is_python_elsewhere_is_native_in_a_library(tmp_path: Path):
    """Nothing but tvm-ffi and NumPy is loaded there."""
    build(parse_module(WHOLE)).export_library(tmp_path / "m.so")
    done = subprocess.run([sys.executable, "-c", USER, str(tmp_path / "m.so")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "x = [1. 2. 2. 0. 5. 0.]",
        "[[0.0, 1.0, 2.0, 5.0], [[0, 1, 2, 4]], [[1.0, 2.0, 2.0], [0.0, 5.0, 0.0]], [2, 3], "
        "[[1.0, 2.0, 2.0], [0.0, 5.0, 0.0]], [0.0, 1.0, 2.0, 5.0], [[0, 1, 2, 4]]]",
        "x = [1. 2. 2. 0. 5. 0.]",
        "main: not so: [1. 2. 2. 0. 5. 0.]",
    ]


PACKED = """
relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  %0 = relax.call_dps_packed "NAME"(%x) : !relax.tensor<[2], f32>
  relax.return %0
}
"""
UNKNOWN = """
relax.func @main(%x: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.sum %0
  relax.return %1
}
"""


@pytest.mark.sampled(2)
@needs_linker
@pytest.mark.parametrize("name", ["relax.fft", "relax.linalg", "tvm.contrib.sort.argsort", "vm.builtin.ccl_allreduce"])
def test_functions_of_python_are_refused_by_name(name: str, tmp_path: Path):
    made = build(parse_module(PACKED.replace("NAME", name)))
    with pytest.raises(ValueError, match=f"export_library: {name} is written in Python, and a library has no Python"):
        made.export_library(tmp_path / "m.so")
    made.export_library(tmp_path / "m.so", host=[name])


KERNEL = """
tir.prim_func @sorted(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>) {
  %axis = arith.constant 0 : i64
  %up = arith.constant 1 : i64
  tir.call_packed "tvm.contrib.sort.sort"(%X, %Y, %axis, %up)
}
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0 = relax.call_tir @sorted(%x) : !relax.tensor<[4], f32>
  relax.return %0
}
"""


def test_functions_of_python_that_kernels_call_are_refused_too(tmp_path: Path):
    made = build(parse_module(KERNEL))
    assert to_numpy(VirtualMachine(made)["main"](np.array([3, 1, 2, 0], np.float32))).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"export_library: tvm.contrib.sort.sort is written in Python"):
        made.export_library(tmp_path / "m.so")


@needs_linker
def test_compiling_at_run_time_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"vm.builtin.run_deferred is written in Python.* of unknown rank or dtype"):
        build(parse_module(UNKNOWN)).export_library(tmp_path / "m.so")


@needs_linker
def test_functions_of_the_host_are_its_own(tmp_path: Path):
    build(parse_module(PACKED.replace("NAME", "test.host_function"))).export_library(tmp_path / "m.so")
    function = load_library(tmp_path / "m.so")["main"]
    with pytest.raises(ValueError, match=r'packed function "test.host_function" is not registered'):
        function(np.ones(2, np.float32))


def test_every_builtin_that_native_code_looks_up_is_native_in_libraries_or_refused():
    elsewhere = {f"vm.builtin.{name}" for name in GLOBALS} - LIBRARY_BUILTINS
    assert all(name.startswith("vm.builtin.ccl_") for name in elsewhere - {"vm.builtin.run_deferred"})


@pytest.mark.parametrize("weights", ["beside", "given"])
def test_weights_of_an_executable_are_outside_of_its_file(weights: Any, tmp_path: Path):
    made = build(product())
    path = tmp_path / "m.rvm"
    made.save(path, weights=weights)
    assert path.stat().st_size < len(made.to_bytes()) - WEIGHT.nbytes
    made.save_weights(tmp_path / "w")
    if weights == "given":
        with pytest.raises(FileNotFoundError, match=r"m.rvm.weights"):
            Executable.load(path)
    else:
        assert Executable.load(path) == made
    assert Executable.load(path, weights=tmp_path / "w") == made
    tensors = {each.name: to_numpy(each.value) for each in made.constants if each.name}
    assert Executable.load(path, weights=tensors) == made
    assert_right(VirtualMachine(Executable.load(path, weights=tmp_path / "w"))["main"])
    name = next(iter(tensors))
    with pytest.raises(ValueError, match=f"weights {name}.* are missing"):
        Executable.load(path, weights={})
    with pytest.raises(ValueError, match=f"weight {name} expected f32"):
        Executable.load(path, weights={**tensors, name: WEIGHT[:2]})
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[:-64])
    with pytest.raises(ValueError, match=r"expected \d+ bytes, got \d+"):
        Executable.load(path, weights=tmp_path / "w")
    made.save(path)
    with pytest.raises(ValueError, match=r"m.rvm holds its weights: save it with weights='given' or 'beside'"):
        Executable.load(path, weights=tmp_path / "w")


@needs_linker
def test_a_library_that_is_written_again_is_opened_as_it_is_now(tmp_path: Path):
    """The system would give the one that it has opened by this name."""
    outcomes: list[float] = []
    for value in (1.0, 2.0):
        bb = BlockBuilder()
        with bb.function("main", {"x": ("n",)}) as (x,):
            bb.emit_func_output(x + bb.const(np.full(3, value, np.float32)))
        build(bb.get()).export_library(tmp_path / "m.so", weights="beside")
        outcomes += to_numpy(load_library(tmp_path / "m.so")["main"](np.zeros(1, np.float32)))[:1].tolist()
    assert outcomes == [1.0, 2.0]


def test_constants_of_one_name_and_other_elements_are_kept_for_each_target(tmp_path: Path):
    def one(target: str, value: float) -> Executable:
        tensors = {"w": np.full(3, value, np.float32), "v": np.zeros(2, np.float32)}
        constants = tuple(Constant(from_numpy(array), name) for name, array in tensors.items())
        return Executable((), constants, metadata=Metadata("native", target))

    made = merged([one("a", 1), one("b", 2)])
    assert [each.name for each in made.constants] == ["w", "v", "w\0for b"]
    assert "tensor @w for b f32[3]" in made.as_text()
    made.save(tmp_path / "m.rvm", weights="beside")
    again = Executable.load(tmp_path / "m.rvm")
    for target, value in (("a", 1), ("b", 2)):
        found = constants_for(again.constants, target)
        assert to_numpy(found["w"].value).tolist() == [value] * 3
        assert to_numpy(found["v"].value).tolist() == [0, 0]
    with pytest.raises(ValueError, match="expected the same functions for each"):
        merged([made, build(product())])
