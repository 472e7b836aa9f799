"""Complex tensors: two tensors, of real and of imaginary parts.

Operators that move elements, or are linear without factors, are applied to both; the others are written out here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from relax_dialect.builder import op, tensor
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.linear_algebra import summed_products
from relax_dialect.frontend.torch.node import Node, find, is_complex
from relax_dialect.frontend.torch.program import Refusal, is_tensor

_ON_PARTS = """
    _reshape_copy _unsafe_index _unsafe_index_put _unsafe_view alias as_strided as_strided_copy as_strided_scatter
    broadcast_to cat chunk clone concat constant_pad_nd contiguous copy cumsum detach diagonal diagonal_copy
    diagonal_scatter empty empty_like expand expand_as expand_copy flatten flip fliplr flipud gather index index_add
    index_copy index_put index_select lift_fresh_copy linspace masked_scatter masked_select mean meshgrid movedim
    narrow narrow_copy neg new_empty new_zeros pad permute permute_copy put repeat repeat_interleave reshape roll
    scatter scatter_add select select_copy select_scatter slice slice_copy slice_scatter split split_copy
    split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack sum t t_copy take tile transpose transpose_copy
    tril triu unbind unbind_copy unflatten unfold unfold_copy unsqueeze unsqueeze_copy view view_copy zeros zeros_like
"""
ON_PARTS = frozenset(_ON_PARTS.split())
"""The operators that do the same to the real and to the imaginary parts, by name without overload."""


_DATA = frozenset({"self", "tensors", "src", "source", "value", "values"})
"""The arguments of these that have an imaginary part, which is 0 if they are real; others say where and how many."""

NO_COMPLEX = "complex numbers are not supported by this operator"


@dataclass(frozen=True)
class Complex:
    """A complex tensor."""

    real: Expr
    imag: Expr


Converted: TypeAlias = "Complex | Expr | Sequence[Complex | Expr | None] | None"
_CONVERTERS: dict[str, Callable[[Node], Converted]] = {}
"""By name without overload."""


def _converts(*names: str) -> Callable[[Callable[[Node], Converted]], Callable[[Node], Converted]]:
    def register(converter: Callable[[Node], Converted]) -> Callable[[Node], Converted]:
        _CONVERTERS.update(dict.fromkeys(names, converter))
        return converter

    return register


def has_complex(arguments: Any, said: Any) -> bool:
    """Whether a node has to do with complex numbers: by its arguments, or by what PyTorch says of its results."""
    if isinstance(arguments, list | tuple):
        return any(has_complex(each, said) for each in cast("Sequence[Any]", arguments)) or has_complex(None, said)
    if isinstance(said, list | tuple):
        return has_complex(arguments, None) or any(map(is_complex, cast("Sequence[Any]", said)))
    return isinstance(arguments, Complex | complex) or is_complex(said)


def is_supported(name: str) -> bool:
    """Whether an operator, by name without overload, takes complex tensors."""
    return name in _CONVERTERS or name in ON_PARTS


def convert(node: Node) -> Converted:
    """What a node with complex tensors computes; `Refusal` if its operator does not take them."""
    if (converter := _CONVERTERS.get(node.name)) is not None:
        return converter(node)
    if node.name not in ON_PARTS or (plain := find(node.operator)) is None:
        raise Refusal(NO_COMPLEX)
    parts = [plain(replace(node, arguments=_parts(node, part))) for part in ("real", "imag")]
    if isinstance(parts[0], Expr) or parts[0] is None:
        return _paired(*parts)
    return [_paired(*pair) for pair in zip(*cast("Any", parts), strict=True)]


def _paired(real: Any, imag: Any) -> Complex | None:
    return None if real is None else Complex(real, imag)


def _parts(node: Node, part: str) -> dict[str, Any]:
    """The arguments for the real or the imaginary part of the result."""
    data = {"start", "end"} if node.name == "linspace" else _DATA
    return {name: _part(value, part, is_data=name in data) for name, value in node.arguments.items()}


def _part(value: Any, part: str, *, is_data: bool) -> Any:
    if isinstance(value, list | tuple):
        return [_part(each, part, is_data=is_data) for each in cast("Sequence[Any]", value)]
    if isinstance(value, Complex | complex):
        return getattr(value, part)
    if is_data and part == "imag":
        return _nothing(value) if isinstance(value, Expr) else 0.0 if isinstance(value, int | float) else value
    return value


def _nothing(x: Expr) -> Expr:
    """Zeros like a tensor."""
    return op.zeros_like(x) if x.ndim else op.multiply(x, op.zeros_like(x))


# Arguments


def _complex(node: Node, name: str) -> Complex:
    """An argument as a complex tensor; real ones have imaginary parts of 0."""
    return _of(node, node.value(name), node.out_dtype())


def _of(node: Node, value: Any, dtype: Attribute | None) -> Complex:
    """A value as a complex tensor with parts of a dtype."""
    if isinstance(value, Complex):
        return value
    if isinstance(value, complex):
        assert dtype is not None
        return Complex(*(node.const(part, dtype) for part in (value.real, value.imag)))
    real = node.graph.tensor(value, dtype)
    return Complex(real, _nothing(real))


def _real(node: Node, name: str) -> Expr | None:
    """An argument that is real, or `None`."""
    value = node.value(name)
    return None if isinstance(value, Complex | complex) else node.tensor(name, node.out_dtype())


def stacked(value: Complex) -> Expr:
    """A complex tensor as one of reals, with the two parts as last dimension."""
    return op.stack([value.real, value.imag], -1)


def separated(x: Expr) -> Complex:
    """The complex tensor whose parts are the last dimension of another."""
    assert x.ndim is not None
    real, imag = op.split(x, sections=2, axis=x.ndim - 1)
    return Complex(op.squeeze(real, [x.ndim - 1]), op.squeeze(imag, [x.ndim - 1]))


# Arithmetic


@_converts("add", "sub", "rsub")
def _sum(node: Node) -> Converted:
    names = ("other", "self") if node.name == "rsub" else ("self", "other")
    one, other = _complex(node, names[0]), _scaled(node, _complex(node, names[1]), "alpha")
    function = op.add if node.name == "add" else op.subtract
    return Complex(function(one.real, other.real), function(one.imag, other.imag))


@_converts("mul")
def _multiply(node: Node) -> Converted:
    for name, other in (("self", "other"), ("other", "self")):
        if (factor := _real(node, name)) is not None:
            value = _complex(node, other)
            return Complex(op.multiply(value.real, factor), op.multiply(value.imag, factor))
    return _times(_complex(node, "self"), _complex(node, "other"), op.multiply)


def _times(x: Complex, y: Complex, multiply: Callable[[Expr, Expr], Expr]) -> Complex:
    real = op.subtract(multiply(x.real, y.real), multiply(x.imag, y.imag))
    return Complex(real, op.add(multiply(x.real, y.imag), multiply(x.imag, y.real)))


@_converts("div", "true_divide")
def _divide(node: Node) -> Converted:
    value, divisor = _complex(node, "self"), _real(node, "other")
    if divisor is not None:
        return Complex(op.divide(value.real, divisor), op.divide(value.imag, divisor))
    return _times(value, _reciprocal(_complex(node, "other")), op.multiply)


@_converts("reciprocal")
def _inverse(node: Node) -> Converted:
    return _reciprocal(_complex(node, "self"))


def _reciprocal(x: Complex) -> Complex:
    """By Smith's method: the greater part is divided by first, so that squares do not overflow."""
    wide = op.greater_equal(op.abs(x.real), op.abs(x.imag))
    greater, lesser = op.where(wide, x.real, x.imag), op.where(wide, x.imag, x.real)
    ratio = op.divide(lesser, greater)
    first = op.reciprocal(op.add(greater, op.multiply(lesser, ratio)))
    second = op.multiply(first, ratio)
    return Complex(op.where(wide, first, second), op.negative(op.where(wide, second, first)))


@_converts("matmul", "mm", "bmm", "dot", "mv", "linalg_matmul", "vdot")
def _matmul(node: Node) -> Converted:
    other = next(name for name in ("other", "mat2", "vec", "tensor") if node.has(name))
    x = _complex(node, "self")
    return _times(_conjugated(x) if node.name == "vdot" else x, _complex(node, other), op.matmul)


@_converts("outer", "ger")
def _outer(node: Node) -> Converted:
    other = "vec2" if node.has("vec2") else "other"
    x, y = _complex(node, "self"), _complex(node, other)
    return _times(_on(x, lambda part: op.expand_dims(part, [1])), y, op.multiply)


@_converts("addmm", "addmv", "baddbmm", "addbmm")
def _plus_product(node: Node) -> Converted:
    names = {"addmm": ("mat1", "mat2"), "addmv": ("mat", "vec")}.get(node.name, ("batch1", "batch2"))
    product = _times(_complex(node, names[0]), _complex(node, names[1]), op.matmul)
    if node.name == "addbmm":
        product = _on(product, lambda part: op.sum(part, [0]))
    made = _scaled(node, product, "alpha")
    return made if node.value("beta") == 0 else _plus(made, _scaled(node, _complex(node, "self"), "beta"))


@_converts("lerp")
def _between(node: Node) -> Converted:
    start, end, weight = (_complex(node, name) for name in ("self", "end", "weight"))
    away = Complex(op.subtract(end.real, start.real), op.subtract(end.imag, start.imag))
    return _plus(start, _times(weight, away, op.multiply))


@_converts("addcmul", "addcdiv")
def _plus_elements(node: Node) -> Converted:
    other = _complex(node, "tensor2")
    if node.name == "addcdiv":
        other = _reciprocal(other)
    return _plus(_complex(node, "self"), _scaled(node, _times(_complex(node, "tensor1"), other, op.multiply), "value"))


def _plus(x: Complex, y: Complex) -> Complex:
    return Complex(op.add(x.real, y.real), op.add(x.imag, y.imag))


def _scaled(node: Node, x: Complex, factor: str) -> Complex:
    """A tensor times a number that is given, or by itself if there is none."""
    return _times(x, _complex(node, factor), op.multiply) if node.value(factor) not in (None, 1) else x


def _on(x: Complex, function: Callable[[Expr], Expr]) -> Complex:
    return Complex(function(x.real), function(x.imag))


@_converts(
    "linear", *(f"conv{rank}d" for rank in (1, 2, 3)), *(f"conv_transpose{rank}d" for rank in (1, 2, 3)), "convolution"
)
def _convolution(node: Node) -> Converted:
    """What is linear in its data and in its weights, by the converter of real ones."""
    plain = find(node.operator)
    assert plain is not None

    def product(x: Expr, weight: Expr) -> Expr:
        made = plain(replace(node, arguments=dict(node.arguments) | {"input": x, "weight": weight, "bias": None}))
        return cast("Expr", made)

    weight = _complex(node, "weight")
    made = _times(_complex(node, "input"), weight, product)
    if not node.has("bias"):
        return made
    trailing = [] if node.name == "linear" else list(range(1, (weight.real.ndim or 0) - 1))
    return _plus(made, _on(_complex(node, "bias"), lambda part: op.expand_dims(part, trailing) if trailing else part))


@_converts("einsum")
def _einsum(node: Node) -> Converted:
    """Of two operands; one that is real is one with imaginary parts of 0."""
    operands = node.value("tensors" if node.has("tensors") else "operands")
    if len(operands) != 2:
        raise Refusal("products of more or fewer than two complex tensors are not supported")
    x, y = (each if isinstance(each, Complex) else Complex(each, op.zeros_like(each)) for each in operands)
    return _times(x, y, lambda one, other: summed_products(node.text("equation"), [one, other]))


@_converts("_assert_tensor_metadata")
def _known(_: Node) -> Converted:
    return None


@_converts("pow", "square")
def _power(node: Node) -> Converted:
    """A few factors, or `exp(exponent * log(x))`; the power 0 is 1."""
    exponent = 2 if node.name == "square" else node.value("exponent")
    if isinstance(exponent, int) and exponent > 0:
        x = found = _complex(node, "self")
        for _ in range(exponent - 1):
            found = _times(found, x, op.multiply)
        return found
    x, y = _complex(node, "self"), _complex(node, "exponent")
    made = _exponent(_times(_logarithm(x), y, op.multiply))
    zero, one = node.const(0, node.out_dtype()), node.const(1, node.out_dtype())
    is_one, is_zero = op.logical_not(_truth(y)), op.logical_not(_truth(x))
    real = op.where(is_one, one, op.where(is_zero, zero, made.real))
    return Complex(real, op.where(op.logical_or(is_one, is_zero), zero, made.imag))


@_converts("exp", "exp2")
def _exponential(node: Node) -> Converted:
    x = _complex(node, "self")
    return _exponent(x if node.name == "exp" else _on(x, lambda part: op.multiply(part, node.like(math.log(2), part))))


def _exponent(x: Complex) -> Complex:
    return _polar(op.exp(x.real), x.imag)


@_converts("log", "log2", "log10", "log1p")
def _logarithms(node: Node) -> Converted:
    x = _complex(node, "self")
    if node.name == "log1p":
        return _logarithm(Complex(op.add(x.real, node.like(1, x.real)), x.imag))
    base = {"log2": 2.0, "log10": 10.0}.get(node.name)
    made = _logarithm(x)
    return made if base is None else _on(made, lambda part: op.multiply(part, node.like(1 / math.log(base), part)))


def _logarithm(x: Complex) -> Complex:
    return Complex(op.log(_length(x)), op.atan2(x.imag, x.real))


@_converts("sin", "cos", "sinh", "cosh", "tan", "tanh")
def _trigonometry(node: Node) -> Converted:
    """The functions of `i * x` are those of `x`, but for factors of `i`."""
    x, name = _complex(node, "self"), node.name
    if name in ("sin", "cos"):
        return _sine(x) if name == "sin" else _cosine(x)
    if name == "tan":
        return _times(_sine(x), _reciprocal(_cosine(x)), op.multiply)
    turned = Complex(op.negative(x.imag), x.real)  # i * x
    if name == "cosh":
        return _cosine(turned)
    sine = _sine(turned)
    if name == "tanh":
        sine = _times(sine, _reciprocal(_cosine(turned)), op.multiply)
    return Complex(sine.imag, op.negative(sine.real))


def _sine(x: Complex) -> Complex:
    return Complex(op.multiply(op.sin(x.real), op.cosh(x.imag)), op.multiply(op.cos(x.real), op.sinh(x.imag)))


def _cosine(x: Complex) -> Complex:
    imag = op.negative(op.multiply(op.sin(x.real), op.sinh(x.imag)))
    return Complex(op.multiply(op.cos(x.real), op.cosh(x.imag)), imag)


@_converts("sqrt", "rsqrt")
def _root(node: Node) -> Converted:
    """With a real part that is not negative, and the sign of the imaginary part."""
    x = _complex(node, "self")
    length, half = _length(x), node.like(0.5, x.real)
    larger = op.sqrt(op.multiply(op.add(length, op.abs(x.real)), half))
    zero, one = node.like(0, x.real), node.like(1, x.real)
    other = op.divide(op.multiply(x.imag, half), op.where(op.equal(larger, zero), one, larger))
    is_right = op.greater_equal(x.real, zero)
    signed = op.where(op.less(x.imag, zero), op.negative(larger), larger)
    made = Complex(op.where(is_right, larger, op.abs(other)), op.where(is_right, other, signed))
    return _reciprocal(made) if node.name == "rsqrt" else made


@_converts("sigmoid", "silu")
def _logistic(node: Node) -> Converted:
    x = _complex(node, "self")
    growth = _exponent(_on(x, op.negative))
    made = _reciprocal(Complex(op.add(growth.real, node.like(1, growth.real)), growth.imag))
    return _times(x, made, op.multiply) if node.name == "silu" else made


@_converts("sgn")
def _direction(node: Node) -> Converted:
    """Divided by the length; 0 stays."""
    x = _complex(node, "self")
    length = _length(x)
    divisor = op.where(op.equal(length, node.like(0, length)), node.like(1, length), length)
    return _on(x, lambda part: op.divide(part, divisor))


# Comparisons


def _truth(x: Complex) -> Expr:
    """Whether a number is other than 0."""
    return op.logical_or(*(op.not_equal(part, op.zeros_like(part)) for part in (x.real, x.imag)))


@_converts("eq", "ne")
def _equal(node: Node) -> Converted:
    """In both parts; the other one may be real."""
    dtype = next(each.real.dtype for each in node.arguments.values() if isinstance(each, Complex))
    x, y = (_of(node, node.value(name), dtype) for name in ("self", "other"))
    found = op.logical_and(op.equal(x.real, y.real), op.equal(x.imag, y.imag))
    return found if node.name == "eq" else op.logical_not(found)


@_converts("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(node: Node) -> Converted:
    truths = [
        _truth(value) if isinstance(value, Complex) else op.astype(node.tensor(name), i1)
        for name, value in node.arguments.items()
        if name in ("self", "other")
    ]
    return getattr(op, node.name)(*truths)


@_converts("isnan", "isinf", "isfinite")
def _classified(node: Node) -> Converted:
    x, function = _complex_operand(node), getattr(op, node.name)
    return (op.logical_and if node.name == "isfinite" else op.logical_or)(function(x.real), function(x.imag))


def _complex_operand(node: Node) -> Complex:
    found = node.value("self")
    assert isinstance(found, Complex)
    return found


@_converts("masked_fill")
def _masked_fill(node: Node) -> Converted:
    x, value, mask = _complex(node, "self"), _complex(node, "value"), node.tensor("mask")
    return Complex(op.where(mask, value.real, x.real), op.where(mask, value.imag, x.imag))


# Statistics


@_converts("linalg_vector_norm", "norm", "dist")
def _norm(node: Node) -> Converted:
    """Of the lengths of the elements, or of the differences from others."""
    plain = find(node.operator)
    assert plain is not None
    arguments = {name: None if name == "dtype" else value for name, value in node.arguments.items()}
    if node.name != "dist":
        return cast("Converted", plain(replace(node, arguments=arguments | {"self": _length(_complex_operand(node))})))
    x, y = (_of(node, node.value(name), node.out_dtype()) for name in ("self", "other"))
    lengths = _length(Complex(op.subtract(x.real, y.real), op.subtract(x.imag, y.imag)))
    given = arguments | {"self": lengths, "other": op.zeros_like(lengths)}
    return cast("Converted", plain(replace(node, arguments=given)))


@_converts("var", "std", "var_mean", "std_mean")
def _variance(node: Node) -> Converted:
    """The sum of the variances of both parts, and the mean."""
    x, operator = _complex_operand(node), node.operator.replace("std", "var")
    plain = find(operator)
    assert plain is not None
    arguments = [dict(node.arguments) | {"self": part} for part in (x.real, x.imag)]
    made = [plain(replace(node, operator=operator, arguments=each)) for each in arguments]
    if node.name in ("var", "std"):
        total = op.add(*cast("list[Expr]", made))
        return total if node.name == "var" else op.sqrt(total)
    (first, real), (second, imag) = cast("list[tuple[Expr, Expr]]", made)
    total = op.add(first, second)
    return [total if node.name == "var_mean" else op.sqrt(total), Complex(real, imag)]


@_converts("where")
def _where(node: Node) -> Converted:
    condition, x, y = node.tensor("condition"), _complex(node, "self"), _complex(node, "other")
    return Complex(op.where(condition, x.real, y.real), op.where(condition, x.imag, y.imag))


# Parts


@_converts("view_as_real")
def _as_real(node: Node) -> Converted:
    return stacked(_complex(node, "self"))


@_converts("view_as_complex")
def _as_complex(node: Node) -> Converted:
    return separated(node.tensor("self"))


@_converts("complex")
def _made(node: Node) -> Converted:
    dims = list(node.out_dims())
    return Complex(*(op.broadcast_to(node.tensor(part), dims) for part in ("real", "imag")))


@_converts("polar")
def _of_angle(node: Node) -> Converted:
    return _polar(node.tensor("abs"), node.tensor("angle"))


def _polar(length: Expr, angle: Expr) -> Complex:
    return Complex(op.multiply(length, op.cos(angle)), op.multiply(length, op.sin(angle)))


@_converts("real", "imag")
def _component(node: Node) -> Converted:
    x = _complex(node, "self")
    return x.real if node.name == "real" else x.imag


@_converts("_conj", "conj", "conj_physical", "_conj_physical", "_conj_copy")
def _conjugate(node: Node) -> Converted:
    return _conjugated(_complex(node, "self"))


def _conjugated(x: Complex) -> Complex:
    return Complex(x.real, op.negative(x.imag))


@_converts("resolve_conj", "resolve_neg")
def _same(node: Node) -> Converted:
    return _complex(node, "self")


@_converts("abs")
def _absolute(node: Node) -> Converted:
    return _length(_complex(node, "self"))


def _length(x: Complex) -> Expr:
    """Scaled by the greater part, so that squares do not overflow."""
    one, other = op.abs(x.real), op.abs(x.imag)
    greater = op.maximum(one, other)
    ones = op.ones_like(greater)
    divisor = op.where(op.equal(greater, op.zeros_like(greater)), ones, greater)
    ratio = op.divide(op.minimum(one, other), divisor)
    return op.multiply(greater, op.sqrt(op.add(op.square(ratio), ones)))


@_converts("angle")
def _angle(node: Node) -> Converted:
    x = _complex(node, "self")
    return op.atan2(x.imag, x.real)


@_converts("_to_copy", "to")
def _cast(node: Node) -> Converted:
    x = _complex(node, "self")
    if not is_complex(node.results[0]):
        return node.matched(x.real, node.out_dtype())
    return Complex(node.matched(x.real, node.out_dtype()), node.matched(x.imag, node.out_dtype()))


@_converts("ones", "ones_like", "full", "full_like", "scalar_tensor", "fill", "new_ones", "new_full")
def _full(node: Node) -> Converted:
    value = next((node.value(name) for name in ("fill_value", "value", "s") if node.has(name)), 1)
    if isinstance(value, Expr | Complex):
        raise Refusal("tensors filled with a complex number that is data are not supported")
    parts = complex(value)
    return Complex(*(op.full(node.out_dims(), node.const(part, node.out_dtype())) for part in (parts.real, parts.imag)))


# Eigenvalues, and Fourier transforms


@_converts("linalg_eig", "linalg_eigvals")
def _eigenvalues(node: Node) -> Converted:
    """Those of matrices of reals, and their eigenvectors."""
    if (x := _real(node, "self")) is None:
        raise Refusal("eigenvalues of complex matrices are not supported")
    out = [tensor(node.out_dims(at), node.out_dtype(at)) for at in range(len(node.results)) for _ in range(2)]
    parts = node.bb.call_dps_packed("relax.linalg", [op.string(node.name.removeprefix("linalg_")), x], [*out])
    made = [Complex(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return made[0] if len(made) == 1 else made


@_converts("_fft_r2c")
def _of_reals(node: Node) -> Converted:
    kind = "r2c" if node.flag("onesided") else "r2c_full"
    return _transformed(node, kind, [node.tensor("self")], forward=True)


@_converts("_fft_c2c")
def _of_complex(node: Node) -> Converted:
    x, forward = _complex(node, "self"), node.flag("forward")
    return _transformed(node, "c2c" if forward else "c2c_inverse", [x.real, x.imag], forward=forward)


@_converts("_fft_c2r")
def _to_reals(node: Node) -> Converted:
    x = _complex(node, "self")
    return _transformed(node, "c2r", [x.real, x.imag], forward=False)


def _transformed(node: Node, kind: str, parts: list[Expr], *, forward: bool) -> Converted:
    """A Fourier transform by a function of the run-time library."""
    rank = parts[0].ndim or 0
    axes = ",".join(str(axis % rank) for axis in node.integers("dim"))
    norms = ("backward", "ortho", "forward") if forward else ("forward", "ortho", "backward")
    what = op.string(f"{kind} {axes} {norms[node.integer('normalization')]}")
    out = tensor(node.out_dims(), node.out_dtype())
    several = is_tensor(node.results[0]) and is_complex(node.results[0])
    made = node.bb.call_dps_packed("relax.fft", [what, *parts], [out] * (2 if several else 1))
    return Complex(*made) if several else made[0]
