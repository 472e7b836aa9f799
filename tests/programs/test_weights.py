"""Constants that are too large for text: in memory they travel with the module, from text they are given by name."""

import numpy as np
import pytest
from xdsl.utils.exceptions import DiagnosticException

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder, op, tensor
from relax_dialect.interpreter import run as interpret
from relax_dialect.ops.values import ConstantOp
from tir_dialect.weights import MOST_IN_TEXT, Weight, WeightAttr, dense_array, elements_of, tensor_attr
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(3)


def linear(weight: np.ndarray, name: str | None = None):
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", weight.shape[0])}) as (x,):
        bb.emit_func_output(x @ bb.const(weight, name=name))
    return bb.get()


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("columns", [1, 8, 100])
def test_a_module_carries_its_weights(mode: str, columns: int):
    weight = RNG.standard_normal((64, columns), dtype=np.float32)
    module = linear(weight)
    x = RNG.standard_normal((3, 64), dtype=np.float32)
    result = VirtualMachine(build(module.clone(), mode=mode))["main"](x)
    np.testing.assert_allclose(np.from_dlpack(result), x @ weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(interpret(module, "main", [x]), x @ weight, rtol=1e-4, atol=1e-5)


def test_text_has_the_name_and_build_gets_the_elements():
    weight = RNG.standard_normal((64, 64), dtype=np.float32)
    text = str(linear(weight, "fc.weight"))
    assert len(text) < 1000
    module = parse_module(text)
    x = np.eye(64, dtype=np.float32)
    result = VirtualMachine(build(module, weights={"fc.weight": weight}))["main"](x)
    np.testing.assert_allclose(np.from_dlpack(result), weight, rtol=1e-6)
    with pytest.raises(DiagnosticException, match=r"@fc.weight has no elements"):
        build(module)


def test_read_only_arrays_are_weights():
    weight = RNG.standard_normal((64, 64), dtype=np.float32)
    weight.flags.writeable = False
    x = np.eye(64, dtype=np.float32)
    np.testing.assert_allclose(np.from_dlpack(VirtualMachine(build(linear(weight)))["main"](x)), weight, rtol=1e-6)


def test_equal_elements_have_one_name():
    array = RNG.standard_normal(5000)
    assert Weight.of_content(array).name == Weight.of_content(array.copy()).name
    assert Weight.of_content(array).name != Weight.of_content(array.reshape(50, 100)).name
    assert Weight.of_content(array).name != Weight.of_content(array.view(np.int64)).name


def test_weights_are_equal_by_name_and_array():
    array = np.zeros(3)
    assert WeightAttr("w", array) == WeightAttr("w", array)
    assert hash(WeightAttr("w", array)) == hash(WeightAttr("w", array))
    assert WeightAttr("w", array) != WeightAttr("w", array.copy())
    assert WeightAttr("w", array) != WeightAttr("v", array)
    assert WeightAttr("w") == WeightAttr("w")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
@pytest.mark.parametrize("size", [0, 1, 7, MOST_IN_TEXT + 1])
def test_elements_survive(dtype: str, size: int):
    array = RNG.integers(0, 100, size).astype(dtype)
    attr = tensor_attr(array)
    assert isinstance(attr, WeightAttr) == (size > MOST_IN_TEXT)
    kept = elements_of(attr)
    assert kept is not None
    assert kept.dtype == array.dtype
    np.testing.assert_array_equal(kept, array)


def test_one_value_fills_a_shape():
    (constant,) = [o for o in parse_module(SPLAT).walk() if isinstance(o, ConstantOp)]
    assert not isinstance(constant.value, WeightAttr)
    np.testing.assert_array_equal(dense_array(constant.value), np.full((2, 3), 4, np.float32))


SPLAT = """
relax.func @main() -> !relax.tensor<[2, 3], f32> {
  %0 = relax.constant dense<4.0> : tensor<2x3xf32>
  relax.return %0
}
"""


def test_large_constants_of_operators():
    table = RNG.standard_normal((500, 16), dtype=np.float32)
    bb = BlockBuilder()
    with bb.function("main", {"ids": tensor(("n",), "i64")}) as (ids,):
        bb.emit_func_output(op.take(bb.const(table), ids, axis=0))
    ids = RNG.integers(0, 500, 9)
    result = VirtualMachine(build(bb.get()))["main"](ids)
    np.testing.assert_array_equal(np.from_dlpack(result), table[ids])
