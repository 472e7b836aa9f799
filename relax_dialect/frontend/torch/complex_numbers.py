"""Complex tensors: two tensors, of real and of imaginary parts.

Operators that move elements, or are linear without factors, are applied to both; the others are written out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from relax_dialect.builder import op, tensor
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.dtypes import is_complex
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.library import is_tensor
from relax_dialect.frontend.torch.linear_algebra import summed_products
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import find

_ON_PARTS = """
    _reshape_copy _unsafe_view alias cat chunk clone concat constant_pad_nd contiguous cumsum detach diagonal
    empty empty_like expand expand_as expand_copy flatten flip gather index index_select lift_fresh_copy mean movedim
    narrow neg new_empty new_zeros pad permute permute_copy repeat repeat_interleave reshape roll select select_copy
    select_scatter slice slice_copy slice_scatter split split_with_sizes squeeze squeeze_copy stack sum t take tile
    transpose tril triu unbind unflatten unfold unsqueeze unsqueeze_copy view view_copy zeros zeros_like
"""
ON_PARTS = frozenset(_ON_PARTS.split())
"""The operators that do the same to the real and to the imaginary parts, by name without overload."""


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
    parts = [
        plain(replace(node, arguments={name: _part(value, part) for name, value in node.arguments.items()}))
        for part in ("real", "imag")
    ]
    if isinstance(parts[0], Expr) or parts[0] is None:
        return _paired(*parts)
    return [_paired(*pair) for pair in zip(*cast("Any", parts), strict=True)]


def _paired(real: Any, imag: Any) -> Complex | None:
    return None if real is None else Complex(real, imag)


def _part(value: Any, part: str) -> Any:
    if isinstance(value, list | tuple):
        return [_part(each, part) for each in cast("Sequence[Any]", value)]
    return getattr(value, part) if isinstance(value, Complex | complex) else value


# Arguments


def _complex(node: Node, name: str) -> Complex:
    """An argument as a complex tensor; real ones have imaginary parts of 0."""
    value = node.value(name)
    if isinstance(value, Complex):
        return value
    if isinstance(value, complex):
        return Complex(*(node.const(part, node.out_dtype()) for part in (value.real, value.imag)))
    real = node.tensor(name, node.out_dtype())
    return Complex(real, op.multiply(real, node.like(0, real)) if real.ndim == 0 else op.zeros_like(real))


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


@_converts("add", "sub")
def _sum(node: Node) -> Converted:
    one, other = _complex(node, "self"), _complex(node, "other")
    if node.value("alpha") not in (None, 1):
        alpha = node.tensor("alpha", node.out_dtype())
        other = Complex(op.multiply(other.real, alpha), op.multiply(other.imag, alpha))
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


@_converts("matmul", "mm", "bmm", "dot", "mv", "linalg_matmul")
def _matmul(node: Node) -> Converted:
    other = next(name for name in ("other", "mat2", "vec", "tensor") if node.has(name))
    return _times(_complex(node, "self"), _complex(node, other), op.matmul)


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


@_converts("square")
def _square(node: Node) -> Converted:
    x = _complex(node, "self")
    return _times(x, x, op.multiply)


@_converts("pow")
def _power(node: Node) -> Converted:
    exponent = node.integer("exponent")
    if exponent < 1:
        raise Refusal("powers of complex numbers other than 1, 2, 3, ... are not supported")
    x = found = _complex(node, "self")
    for _ in range(exponent - 1):
        found = _times(found, x, op.multiply)
    return found


@_converts("exp")
def _exponential(node: Node) -> Converted:
    x = _complex(node, "self")
    return _polar(op.exp(x.real), x.imag)


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


@_converts("real")
def _real_part(node: Node) -> Converted:
    return _complex(node, "self").real


@_converts("imag")
def _imaginary_part(node: Node) -> Converted:
    return _complex(node, "self").imag


@_converts("_conj", "conj", "conj_physical", "_conj_physical", "_conj_copy")
def _conjugate(node: Node) -> Converted:
    x = _complex(node, "self")
    return Complex(x.real, op.negative(x.imag))


@_converts("resolve_conj", "resolve_neg")
def _same(node: Node) -> Converted:
    return _complex(node, "self")


@_converts("abs")
def _length(node: Node) -> Converted:
    """Scaled by the greater part, so that squares do not overflow."""
    x = _complex(node, "self")
    one, other = op.abs(x.real), op.abs(x.imag)
    greater = op.maximum(one, other)
    zero = node.like(0, greater)
    divisor = op.where(op.equal(greater, zero), node.like(1, greater), greater)
    ratio = op.divide(op.minimum(one, other), divisor)
    return op.multiply(greater, op.sqrt(op.add(op.square(ratio), node.like(1, ratio))))


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
