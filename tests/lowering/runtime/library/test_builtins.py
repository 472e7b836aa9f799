"""The builtins of shared libraries, in C, against those of the virtual machine, in Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from tvm_ffi import libinfo

from lowering.vm_to_llvm.library import builtins_source
from vm_dialect.builtins import BUILTINS
from vm_dialect.builtins.calls import text_of
from vm_dialect.executable.library import LIBRARY_BUILTINS
from vm_dialect.tensors import from_numpy, to_numpy

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

ENTRY = "int __tvm_ffi_%s(void* s, const TVMFFIAny* a, int32_t n, TVMFFIAny* r) { return builtin_%s(s, a, n, r); }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each builtin as a function of a library."""
    folder = tmp_path_factory.mktemp("builtins")
    names = [name.rpartition(".")[2] for name in LIBRARY_BUILTINS]
    (folder / "b.c").write_text("\n".join([builtins_source(), *(ENTRY % (name, name) for name in names)]))
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{libinfo.find_include_path()}"]
    subprocess.run(["cc", *flags, "-o", "b.so", "b.c", "-lm"], cwd=folder, check=True)
    load: Callable[[str], Any] = getattr(tvm_ffi, "load_module")  # noqa: B009
    return load(str(folder / "b.so"))


RANDOM = np.random.default_rng(0)
FLOATS: tuple[type, ...] = (np.float16, np.float32, np.float64)


def arrays() -> Iterator[np.ndarray[Any, Any]]:
    """Elements of all magnitudes and kinds, in shapes that need several lines, columns, or to be shortened."""
    for shape in (
        (),
        (1,),
        (3,),
        (40,),
        (2, 3),
        (30, 2),
        (3, 26),
        (2, 2, 3),
        (0,),
        (2, 0),
        (1001,),
        (40, 40),
        (9, 12, 11),
    ):
        for dtype in (np.int8, np.uint8, np.int32, np.int64, np.uint64):
            bounds = np.iinfo(dtype)
            yield RANDOM.integers(-5 if bounds.min else 0, 9, shape).astype(dtype)
            yield RANDOM.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
        yield RANDOM.integers(0, 2, shape).astype(bool)
        for dtype in FLOATS:
            yield RANDOM.standard_normal(shape).astype(dtype)
            yield RANDOM.integers(-9, 9, shape).astype(dtype)
            yield (RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-3, 4, shape)).astype(dtype)
            with np.errstate(over="ignore"):
                yield (RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-12, 14, shape)).astype(dtype)
            with_others = np.asarray(RANDOM.standard_normal(shape).astype(dtype))
            with_others[RANDOM.integers(0, 3, shape) == 0] = RANDOM.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
            yield with_others
        yield RANDOM.standard_normal(shape).astype(ml_dtypes.bfloat16)
    for dtype in FLOATS:
        yield np.array([np.nan, -np.inf], dtype)
        yield np.array([np.nan], dtype)
        yield np.minimum([1e8, 1, 12345680, 3, 0.0001, 0.00009999], np.finfo(dtype).max).astype(dtype)
        yield np.array([0.0, -0.0], dtype)
        yield np.array([1, 1000], dtype)
        yield np.array([1, 1001], dtype)
        yield np.array(1e16, np.float64).astype(np.float32)


def text(library: Any, format: str, *values: Any) -> str:
    """What a value is written as."""
    with pytest.raises(ValueError, match=r"^[^\0]*$") as caught:
        library.fail(format, *values)
    return str(caught.value)


def test_tensors_are_written_as_numpy_writes_them(library: Any):
    for array in arrays():
        with np.errstate(over="ignore"):
            assert text(library, "{}", from_numpy(array)) == str(array), (array.dtype, array.shape)


def test_gaps_between_elements_are_left_out(library: Any):
    array = np.arange(24).reshape(4, 6)[::2, 1::2]
    assert text(library, "{}", tvm_ffi.from_dlpack(array)) == str(array)
    assert to_numpy(library.nonzero(tvm_ffi.from_dlpack(array))).tolist() == [list(each) for each in np.nonzero(array)]
    assert to_numpy(library.unique(tvm_ffi.from_dlpack(array % 3), None)).tolist() == np.unique(array % 3).tolist()


def test_other_values_are_written_as_the_machine_writes_them(library: Any):
    x = from_numpy(np.eye(2, dtype=np.float32))
    values: list[Any] = [
        None,
        True,
        False,
        3,
        -(1 << 63),
        0.1,
        1e16,
        1e-5,
        123456789.0,
        float("nan"),
        float("-inf"),
        "text",
    ]
    values += ["a longer text", tvm_ffi.Shape((2, 3)), tvm_ffi.Shape(()), tvm_ffi.convert([x, 1, [2.5, "y"]]), x]
    values += [tvm_ffi.convert(lambda: 1), tvm_ffi.dtype("float32"), tvm_ffi.dtype("bool"), tvm_ffi.Map({"a": 1})]
    for value in values:
        assert text(library, "<{}>", value) == f"<{text_of(value)}>"
    with pytest.raises(ValueError, match=r"^format has 1 marks for 2 values: \{\}$"):
        library.fail("{}", 1, 2)


def test_print_writes_a_line(library: Any, capfd: pytest.CaptureFixture[str]):
    library.print("x = {}, {}", 1, "y")
    assert capfd.readouterr().out == "x = 1, y\n"


def plain(value: Any) -> Any:
    if isinstance(value, tvm_ffi.Tensor):
        array = to_numpy(value)
        return array.dtype.name, array.shape, repr(array.tolist())  # any NaN is as good as another
    return [plain(each) for each in value]


def test_results_that_depend_on_data(library: Any):
    for array in arrays():
        if array.size > 1000:
            continue
        x = from_numpy(array)
        assert plain(library.nonzero(x)) == plain(BUILTINS["nonzero"].function(x))
        few = np.abs(array) if array.dtype.kind == "f" else array  # of -0.0 and 0.0 NumPy keeps either
        axes = [None, *range(array.ndim)] if array.dtype != ml_dtypes.bfloat16 else [None]
        for axis in axes:
            for flags in ((), (True, True, True), (False, True, False)):
                x = from_numpy(few if axis is None else np.nan_to_num(few))  # of rows with NaN no order is said
                found = plain(library.unique(x, axis, *flags))
                assert found == plain(BUILTINS["unique"].function(x, axis, *flags)), (array.dtype, array.shape, axis)


def test_shapes_and_tensors(library: Any):
    for dtype in ("int32", "int64", "uint8"):
        assert tuple(library.shape_from_tensor(from_numpy(np.array([2, 0, 5], dtype)))) == (2, 0, 5)
    assert to_numpy(library.shape_to_tensor(tvm_ffi.Shape((4, 7)))).tolist() == [4, 7]
    made = library.new_tensor_of_shape(tvm_ffi.dtype("float32"), tvm_ffi.Shape((2, 3)))
    assert (made.shape, made.dtype, made.data_ptr() % 64) == ((2, 3), "float32", 0)
    assert library.get_packed_func("ffi.Shape")(1, 2) == tvm_ffi.Shape((1, 2))


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("shape_from_tensor", (from_numpy(np.zeros((2, 2))),), TypeError, "expected a vector of integers"),
        ("shape_to_tensor", (1,), TypeError, "vm.builtin.shape_to_tensor: expected a shape, got int"),
        ("nonzero", (None,), TypeError, "vm.builtin.nonzero: expected a tensor, got null"),
        ("unique", (from_numpy(np.zeros(2)), 1), ValueError, "axis 1 is out of bounds for array of dimension 1"),
        ("unique", (from_numpy(np.zeros(2, ml_dtypes.float8_e5m2)), None), TypeError, "elements of 8 bits"),
        ("get_packed_func", ("nobody.has.it",), ValueError, 'packed function "nobody.has.it" is not registered'),
        (
            "new_tensor_of_shape",
            (tvm_ffi.dtype("int8"), tvm_ffi.Shape((2, -1))),
            ValueError,
            "cannot make a tensor whose dimension 1 is -1",
        ),
        ("new_tensor_of_shape", (tvm_ffi.dtype("int8"), tvm_ffi.Shape((1 << 62, 8))), MemoryError, "cannot allocate"),
    ],
)
def test_errors(library: Any, name: str, arguments: tuple[Any, ...], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        library[name](*arguments)
