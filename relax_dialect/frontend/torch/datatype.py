"""Conversions, copies, numbers of a program; and quantised numbers, as `torch.ao` writes them."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.binary import truth
from relax_dialect.frontend.torch.node import Node, Result, converts, element_type
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.struct_info.types import ShapeType
from tir_dialect.dtypes import is_bool


@converts(
    "aten._to_copy.default",
    "aten.to.device",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.other",
    "aten.type_as.default",
    "prims.convert_element_type.default",
)
def to(node: Node) -> Result:
    """Elements in another dtype; numbers are true unless they are zero."""
    x = node.tensor("a" if node.has("a") else "self")
    return truth(node, x) if is_bool(node.out_dtype()) else node.matched(x, node.out_dtype())


@converts(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.detach_copy.default",
    "aten.lift.default",
    "aten.lift_fresh_copy.default",
    "aten.positive.default",
)
def same(node: Node) -> Result:
    """The tensor itself: no tensor of the program is changed."""
    return node.tensor("self")


@converts("aten.copy.default")
def copy(node: Node) -> Result:
    """Another tensor in the shape and dtype of this one."""
    source = node.tensor("src", node.out_dtype())
    return source if node.shape("src") == node.shape() else op.broadcast_to(source, node.out_dims())


_PER_TENSOR = ("per_tensor.default", "per_tensor.tensor")


def _parameter(node: Node, names: tuple[str, ...], dtype: Attribute) -> Expr:
    """A scale or zero point: one number, or those of an axis, which broadcast over the others."""
    value = node.tensor(next(name for name in names if node.has(name)), dtype)
    if node.has("axis") and value.ndim == 1:
        after = node.rank("input") - 1 - node.axis("axis", "input")
        return op.expand_dims(value, list(range(1, after + 1))) if after else value
    return op.reshape(value, []) if value.ndim == 1 and "token" not in node.name else value


@converts(
    *(f"quantized_decomposed.quantize_{kind}" for kind in _PER_TENSOR),
    "quantized_decomposed.quantize_per_channel.default",
    "quantized_decomposed.quantize_per_token.default",
)
def quantize(node: Node) -> Result:
    """`clamp(round(x / scale) + zero_point)`."""
    x = node.tensor("input", f32)
    inverse = op.reciprocal(_parameter(node, ("scale", "scales"), f64))
    zero = _parameter(node, ("zero_point", "zero_points"), f32)
    least, greatest = node.number("quant_min"), node.number("quant_max")
    made = op.add(op.round(op.multiply(x, op.astype(inverse, f32))), zero)
    return op.astype(op.clip(made, least, greatest), node.out_dtype())


@converts(
    *(f"quantized_decomposed.dequantize_{kind}" for kind in _PER_TENSOR),
    "quantized_decomposed.dequantize_per_channel.default",
    "quantized_decomposed.dequantize_per_token.default",
)
def dequantize(node: Node) -> Result:
    """`(x - zero_point) * scale`."""
    x, scale = node.tensor("input", f32), _parameter(node, ("scale", "scales"), f32)
    if any(node.has(name) for name in ("zero_point", "zero_points")):
        x = op.subtract(x, _parameter(node, ("zero_point", "zero_points"), f32))
    return node.matched(op.multiply(x, scale), node.out_dtype())


@converts("quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor")
def choose_parameters(node: Node) -> Result:
    """The scale and the zero point with which the elements of a tensor, and 0, fill the range of integers."""
    x = node.tensor("input", f32)
    least, greatest = node.number("quant_min"), node.number("quant_max")
    low, high = op.minimum(op.min(x), node.const(0, f32)), op.maximum(op.max(x), node.const(0, f32))
    if "symmetric" in node.name:
        high = op.maximum(high, op.negative(low))
        low = op.negative(high)
    scale = op.maximum(op.divide(op.subtract(high, low), node.const(greatest - least, f32)), node.tensor("eps", f32))
    if "symmetric" in node.name:
        zero = node.const(128 if str(element_type(node.value("dtype"))) == "ui8" else 0, f32)
    else:
        zero = op.clip(op.subtract(node.const(least, f32), op.round(op.divide(low, scale))), least, greatest)
    return [op.reshape(op.astype(scale, node.out_dtype()), [1]), op.reshape(op.astype(zero, node.out_dtype(1)), [1])]


@converts(
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)
def known(_: Node) -> Result:
    """What PyTorch was told, or has checked: bounds of symbols say it."""
    return None


@converts("aten.item.default", "aten._local_scalar_dense.default")
def item(node: Node) -> Result:
    """The only element of a tensor: a symbol is bound to an integer or truth value, a floating-point number stays a
    tensor.
    """
    said, x = node.results[0], op.reshape(node.tensor("self"), [])
    expression = getattr(getattr(said, "node", None), "expr", None)
    if expression is None:
        return None
    if type(expression).__name__ == "Equality":  # a truth value: its symbol is 1
        expression = expression.args[0]
    if not expression.is_Symbol:
        raise Refusal(f"an element that is {expression} cannot be a number of the program")
    if type(said).__name__ == "SymFloat":
        node.graph.floats[str(expression)] = op.astype(x, f64)
    else:
        length = op.tensor_to_shape(op.reshape(node.matched(x, i64), [1]))
        node.graph.match(length, ShapeType([str(expression)]))
    return None


@converts("aten.scalar_tensor.default")
def scalar_tensor(node: Node) -> Result:
    """A number as a tensor of rank 0."""
    return node.tensor("s", node.out_dtype())
