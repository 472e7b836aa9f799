"""Programs with floats of 8, 6 and 4 bits and integers of 4 and 2: text, values in every mode, and what is refused."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from lowering import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder, op, tensor
from tests.support.narrow import INTEGERS, NARROW, SMALL_FLOATS, Array, converted, every_value, f32_sample, same_bits
from tests.support.programs import EXACT, MODES, run_everywhere, runner
from tir_dialect import te
from tir_dialect.dtypes import numpy_dtype, parse_dtype
from vm_dialect.tensors import from_numpy, to_numpy, to_value

pytestmark = pytest.mark.sampled(2)


def casts(name: str) -> ModuleOp:
    """To `f32` and back, and `f32` to the dtype."""
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(("n",), name), "y": tensor(("m",), "f32")}) as (x, y):
        wide = op.astype(x, "f32")
        bb.emit_func_output((wide, op.astype(wide, name), op.astype(y, name)))
    return bb.get()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NARROW)
def test_every_value_both_ways_and_numbers_of_f32(name: str):
    x = every_value(name)
    y = f32_sample(name, 500) if name in SMALL_FLOATS else x.astype(np.float32) * 0.99
    wide, back, narrow = run_everywhere(casts(name), "main", [x, y], EXACT)
    assert same_bits(wide, x.astype(np.float32))
    assert same_bits(back, x)
    assert same_bits(narrow, converted(y, name))


def operators(name: str) -> ModuleOp:
    """Arithmetic, moves of data, sums, products, a constant, on `n` rows."""
    bb, ones = BlockBuilder(), np.ones(3, numpy_dtype(parse_dtype(name)))
    parameters = {"x": tensor(("n", 3), name), "y": tensor(("n", 3), name), "places": tensor((2,), "i64")}
    with bb.function("main", parameters) as (x, y, places):
        moved = op.take(op.concat([op.reshape(x, [-1]), op.flatten(y), bb.const(ones)], 0), places, axis=0)
        chosen = op.where(op.less(x, y), x, op.maximum(x, y))
        product = op.matmul(x, op.permute_dims(y, [1, 0]), out_dtype="f32" if name in SMALL_FLOATS else "i32")
        bb.emit_func_output((op.add(op.multiply(x, y), y), moved, chosen, product, op.max(x, [1])))
    return bb.get()


QUICK = ("f8E4M3FN", "f8E5M2FNUZ", "f4E2M1FN", "i4", "ui2")
"""One of each kind: infinities or none, one zero or two, less than a byte, signs."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NARROW]
)
def test_operators_in_every_mode_and_shape(name: str):
    module = operators(name)
    run = {mode: runner(module, "main", mode) for mode in MODES}
    values = every_value(name)
    values = values[np.isfinite(values.astype(np.float32))]
    for n in (0, 1, 3, 17):
        x, y = (np.random.default_rng(seed).choice(values, (n, 3)) for seed in (1, 2))
        found = {mode: function(x, y, np.array([0, 2])) for mode, function in run.items()}
        for mode in MODES[1:]:
            assert all(map(same_bits, found[mode], found["interpret"])), (mode, n)
        kind = np.float32 if name in SMALL_FLOATS else np.int32
        with np.errstate(all="ignore"):
            total, product = x * y + y, x.astype(kind) @ y.astype(kind).T
        assert same_bits(found["native"][0], total)
        np.testing.assert_allclose(found["native"][3], product, rtol=1e-5)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NARROW)
def test_text_keeps_dtypes_and_constants(name: str):
    bb, values = BlockBuilder(), every_value(name)
    with bb.function("main", {"x": tensor(("n",), name)}) as (x,):
        bb.emit_func_output(op.concat([x, bb.const(values)], 0))
    module = bb.get()
    generic = parse_module(str(module))
    assert str(parse_module(str(generic))) == str(module)
    result = run_everywhere(parse_module(str(module)), "main", [values[:1]], EXACT)
    assert same_bits(np.asarray(result)[1:], values)


X = tensor((2,), "f8E8M0FNU")
_PROGRAMS: dict[str, Any] = {}


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["f8E4M3FN", "f8E5M2FNUZ", "i4", "ui4"]), st.binary(min_size=0, max_size=20), st.data())
def test_sums_and_differences_are_those_of_ml_dtypes(name: str, data: bytes, draw: st.DataObject):
    values = every_value(name)
    x = values[np.frombuffer(data, np.uint8).astype(int) % len(values)]
    other = draw.draw(st.binary(min_size=len(data), max_size=len(data)))
    y = values[np.frombuffer(other, np.uint8).astype(int) % len(values)]
    if name not in _PROGRAMS:
        bb = BlockBuilder()
        with bb.function("main", {"x": tensor(("n",), name), "y": tensor(("n",), name)}) as (a, b):
            bb.emit_func_output((op.add(a, b), op.subtract(a, b)))
        _PROGRAMS[name] = runner(bb.get(), "main", "native")
    with np.errstate(all="ignore"):
        wanted = (x + y, x - y)
    assert all(map(same_bits, _PROGRAMS[name](x, y), wanted))


@pytest.mark.parametrize("name", ["f8E8M0FNU", "i4"])
@pytest.mark.parametrize("mode", MODES)
def test_operators_that_make_no_sense_name_op_and_dtype(name: str, mode: str):
    text = f"""relax.func @main(%x: !relax.tensor<[4], {name}>) -> !relax.object {{
  %0 = relax.{"bitwise_and %x, %x" if name != "i4" else "exp %x"}
  relax.return %0
}}"""
    with pytest.raises(VerifyException, match=rf"'relax\.(bitwise_and|exp)' op .* got {name}"):
        parse_module(text).verify()


def test_a_zero_that_the_dtype_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"te: 0\.0 does not fit dtype f8E8M0FNU"):
        te.const(0, "f8E8M0FNU")
    bb = BlockBuilder()
    with pytest.raises(TypeError, match="the number 0 is no f8E8M0FNU"), bb.function("main", {"x": X}) as (x,):
        bb.emit_func_output(x + 0)
    bb = BlockBuilder()
    with bb.function("main", {"x": X}) as (x,):
        bb.emit_func_output(op.cumsum(x, axis=0))
    with pytest.raises(InvalidModule, match=r"'relax\.cumsum' op cannot be computed for .*: te: 0\.0 does not fit"):
        build(bb.get())


@pytest.mark.parametrize("name", NARROW)
def test_tensors_share_memory_with_arrays(name: str):
    array: Array = every_value(name)[:4].copy()
    value = from_numpy(array)
    assert str(value.dtype) == array.dtype.name
    seen = to_numpy(value)
    seen[0] = array[3]
    assert same_bits(seen, array)


class Packed:
    """An array of bytes that says through DLPack that it has elements of `int4`, with flags of DLPack 1.1."""

    def __init__(self, flags: int):
        self.bytes, self.flags = np.zeros(4, np.uint8), flags

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.bytes.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.bytes.__dlpack__(**options)
        is_versioned = "dltensor_versioned" in str(capsule)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor_versioned" if is_versioned else b"dltensor")
        if is_versioned:
            ctypes.c_uint64.from_address(address + 24).value |= self.flags
        (ctypes.c_uint8 * 2).from_address(address + (52 if is_versioned else 20))[:] = [0, 4]
        return capsule


def test_packed_tensors_are_refused():
    with pytest.raises(TypeError, match="tensors of packed int4 are not supported: give each element a byte"):
        to_value(Packed(0))
    padded = to_value(Packed(1 << 2))
    assert isinstance(padded, tvm_ffi.Tensor)
    assert to_numpy(padded).dtype == ml_dtypes.int4


@pytest.mark.parametrize("mode", MODES)
def test_tensors_of_another_narrow_dtype_are_refused(mode: str):
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor((2,), "f8E4M3FN")}) as (x,):
        bb.emit_func_output(op.add(x, x))
    with pytest.raises(TypeError, match="float8_e4m3fn"):
        runner(bb.get(), "main", mode)(np.zeros(2, ml_dtypes.float8_e5m2))


def test_integers_have_the_values_of_their_names():
    for name in INTEGERS:
        info = ml_dtypes.iinfo(numpy_dtype(parse_dtype(name)))
        values = every_value(name).astype(np.int32)
        assert (values.min(), values.max()) == (info.min, info.max)
