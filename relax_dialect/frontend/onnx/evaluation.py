"""Evaluation while importing: arithmetic on constants and on shapes, whose elements may be symbolic dimensions.

`evaluate` is a pure function from arrays to arrays. Arrays whose elements are all numbers have NumPy's dtype; others
hold dimensions and numbers as objects. What depends on the value of a symbol is not evaluated: it is left to run time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from relax_dialect.analysis.shape_rules import Arithmetic
from relax_dialect.frontend.onnx.values import MAX_EVALUATED, Array, element_type, plain, to_numpy
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.binary import divide
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import from_numpy, integer_limits
from tir_dialect.weights import converted

Attributes: TypeAlias = Mapping[str, Any]
Operands: TypeAlias = Sequence[Array]
Rule: TypeAlias = Callable[[Attributes, Operands], "Array | Sequence[Array]"]


class Open(Exception):
    """The result depends on the value of a symbol."""


def numbers(operand: Array) -> list[int]:
    """The elements as plain numbers; `Open` if some are dimensions."""
    if operand.dtype == object:
        raise Open
    return [int(each) for each in operand.reshape(-1).tolist()]


def axes_of(attributes: Attributes, operands: Sequence[Array | None]) -> list[int] | None:
    """Axes, which newer versions have as second operand."""
    if len(operands) > 1:
        return None if operands[1] is None else numbers(operands[1])
    found = attributes.get("axes")
    return None if found is None else [int(axis) for axis in found]


Element = Dim | int


_ARITHMETIC = Arithmetic(DEFAULT_PROVER, is_float=False)


def _on_dims(function: Callable[..., Dim | None]) -> Callable[..., Dim]:
    """A rule of `Arithmetic` on numbers and dimensions; `Open` where it does not know the result."""

    def apply(*values: Element) -> Dim:
        found = function(_ARITHMETIC, *(each if isinstance(each, Dim) else constant(int(each)) for each in values))
        if found is None:
            raise Open
        return found

    return apply


def _verdict(function: Callable[..., Dim | None]) -> Callable[..., bool]:
    """A comparison of `Arithmetic` as a truth value."""
    compare = _on_dims(function)
    return lambda *values: bool(compare(*values).constant_value)


def _elementwise(native: Callable[..., Any], symbolic: Callable[..., Any] | None) -> Rule:
    """NumPy's function on numbers, another one on dimensions; `None` if there is none."""

    def rule(attributes: Attributes, operands: Operands) -> Array:
        if all(each.dtype != object for each in operands):
            return np.asarray(native(*operands))
        if symbolic is None:
            raise Open
        return np.asarray(np.frompyfunc(symbolic, len(operands), 1)(*operands))

    return rule


def _folded(native: Callable[..., Any], symbolic: Callable[..., Any] | None) -> Rule:
    """A function of two operands, applied to any number of them."""
    step = _elementwise(native, symbolic)
    return lambda attributes, operands: reduce(lambda a, b: np.asarray(step(attributes, (a, b))), operands)


def _truth(rule: Rule) -> Rule:
    """A rule whose results are truth values."""
    return lambda attributes, operands: np.asarray(rule(attributes, operands)).astype(np.bool_)


def _modulo(attributes: Attributes, operands: Operands) -> Array:
    native = np.fmod if attributes.get("fmod") else np.mod
    return np.asarray(_elementwise(native, _on_dims(Arithmetic.modulo))(attributes, operands))


def _where(attributes: Attributes, operands: Operands) -> Array:
    condition, then, otherwise = operands
    if condition.dtype == object:
        raise Open
    if object in (then.dtype, otherwise.dtype):
        then, otherwise = then.astype(object), otherwise.astype(object)
    return np.where(condition, then, otherwise)


def _cast(attributes: Attributes, operands: Operands) -> Array:
    return _converted(operands[0], np.dtype(to_numpy(element_type(int(attributes["to"])))))


def _cast_like(attributes: Attributes, operands: Operands) -> Array:
    if operands[1].dtype == object:
        return _converted(operands[0], np.dtype(np.int64))
    return _converted(operands[0], operands[1].dtype)


def _converted(x: Array, dtype: np.dtype[Any]) -> Array:
    if x.dtype == object:
        if dtype.name not in ("int64", "int32"):
            raise Open
        return x
    if "ml_dtypes" in (x.dtype.type.__module__, dtype.type.__module__):  # they say more about the conversion
        raise Open
    return converted(x, from_numpy(dtype))


def _reduction(native: Callable[..., Any], step: Callable[[Any, Any], Any]) -> Rule:
    """A reduction; of dimensions only if it goes over everything."""

    def rule(attributes: Attributes, operands: Operands) -> Array:
        x, axes = operands[0], axes_of(attributes, operands)
        keep = bool(attributes.get("keepdims", 1))
        if not axes:
            if attributes.get("noop_with_empty_axes"):
                return x
            axes = list(range(x.ndim))
        if x.dtype != object:
            return np.asarray(native(x, axis=tuple(axes), keepdims=keep, dtype=x.dtype))
        if len(axes) != x.ndim:
            raise Open
        made = np.empty((1,) * x.ndim if keep else (), object)
        made[...] = reduce(step, x.reshape(-1).tolist())
        return made

    return rule


def _extreme(native: Callable[..., Any], step: Callable[[Any, Any], Any]) -> Rule:
    def reduced(x: Array, *, axis: tuple[int, ...], keepdims: bool, dtype: Any) -> Array:
        return np.asarray(native(x, axis=axis, keepdims=keepdims))

    return _reduction(reduced, step)


ELEMENT_RULES: dict[str, Rule] = {
    "Abs": _elementwise(np.abs, None),
    "Add": _elementwise(np.add, operator.add),
    "And": _elementwise(np.logical_and, None),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _elementwise(np.ceil, None),
    "Div": _elementwise(divide, _on_dims(Arithmetic.divide)),
    "Equal": _truth(_elementwise(np.equal, _verdict(Arithmetic.equal))),
    "Exp": _elementwise(np.exp, None),
    "Floor": _elementwise(np.floor, None),
    "Greater": _truth(_elementwise(np.greater, _verdict(Arithmetic.greater))),
    "GreaterOrEqual": _truth(_elementwise(np.greater_equal, _verdict(Arithmetic.greater_equal))),
    "Identity": lambda attributes, operands: operands[0],
    "Less": _truth(_elementwise(np.less, _verdict(Arithmetic.less))),
    "LessOrEqual": _truth(_elementwise(np.less_equal, _verdict(Arithmetic.less_equal))),
    "Log": _elementwise(np.log, None),
    "Max": _folded(np.maximum, _on_dims(Arithmetic.maximum)),
    "Min": _folded(np.minimum, _on_dims(Arithmetic.minimum)),
    "Mod": _modulo,
    "Mul": _elementwise(np.multiply, operator.mul),
    "Neg": _elementwise(np.negative, operator.neg),
    "Not": _elementwise(np.logical_not, None),
    "Or": _elementwise(np.logical_or, None),
    "Reciprocal": _elementwise(np.reciprocal, None),
    "ReduceMax": _extreme(np.max, _on_dims(Arithmetic.maximum)),
    "ReduceMin": _extreme(np.min, _on_dims(Arithmetic.minimum)),
    "ReduceProd": _reduction(np.prod, operator.mul),
    "ReduceSum": _reduction(np.sum, operator.add),
    "Sqrt": _elementwise(np.sqrt, None),
    "Sub": _elementwise(np.subtract, operator.sub),
    "Where": _where,
    "Xor": _elementwise(np.logical_xor, None),
}


def _list(operand: Array) -> list[int]:
    """The numbers of a tensor of rank 1; others are left to the converter, which refuses them."""
    if operand.ndim != 1:
        raise Open
    return numbers(operand)


def _squeeze(attributes: Attributes, operands: Operands) -> Array:
    axes = axes_of(attributes, operands)
    return np.squeeze(operands[0], None if axes is None else tuple(axes))


def _unsqueeze(attributes: Attributes, operands: Operands) -> Array:
    return np.expand_dims(operands[0], tuple(axes_of(attributes, operands) or ()))


def _reshape(attributes: Attributes, operands: Operands) -> Array:
    x, target = operands[0], _list(operands[1])
    if not attributes.get("allowzero"):
        target = [x.shape[at] if dim == 0 else dim for at, dim in enumerate(target)]
    return x.reshape(target)


def _expand(attributes: Attributes, operands: Operands) -> Array:
    shape = _list(operands[1])
    _require_few(shape)
    return operands[0] * np.ones(shape, operands[0].dtype)


def _concat(attributes: Attributes, operands: Operands) -> Array:
    if any(each.dtype == object for each in operands):
        operands = [each.astype(object) for each in operands]
    return np.concatenate(operands, int(attributes["axis"]))


def _gather(attributes: Attributes, operands: Operands) -> Array:
    if operands[1].dtype == object:
        raise Open
    return np.take(operands[0], operands[1].astype(np.int64), int(attributes.get("axis", 0)))


def _slice(attributes: Attributes, operands: Sequence[Array | None]) -> Array:
    x = operands[0]
    if x is None:
        raise Open
    if len(operands) > 1:
        starts, ends = (numbers(each) for each in operands[1:3] if each is not None)
    else:
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
    given = operands[3] if len(operands) > 3 else None
    axes = list(attributes.get("axes") or range(len(starts))) if given is None else numbers(given)
    steps_given = operands[4] if len(operands) > 4 else None
    steps = [1] * len(starts) if steps_given is None else numbers(steps_given)
    index: list[slice] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -x.shape[axis] else end
        index[axis] = slice(start, stop, step)
    return x[tuple(index)]


def _require_few(shape: Sequence[int]) -> None:
    """Leaves a large result to run time."""
    if math.prod(shape) > MAX_EVALUATED:
        raise Open


def _range(attributes: Attributes, operands: Operands) -> Array:
    start, stop, step = (each.reshape(()) for each in operands)
    if object in (start.dtype, stop.dtype, step.dtype):
        raise Open
    # Floats in f64: a rounded difference may exclude the last one. Integers of Python do not overflow.
    first, last, by = (each.item() for each in (start, stop, step))
    count = len(range(first, last, by)) if isinstance(first, int) else max(math.ceil((last - first) / by), 0)
    if count > MAX_EVALUATED:
        raise Open
    return (start + np.arange(count).astype(start.dtype) * step).astype(start.dtype)


def _constant_of_shape(attributes: Attributes, operands: Operands) -> Array:
    shape, value = _list(operands[0]), attributes.get("value")
    _require_few(shape)
    return np.zeros(shape, np.float32) if value is None else np.full(shape, value.reshape(()), value.dtype)


def _split(attributes: Attributes, operands: Operands) -> Sequence[Array]:
    x, axis = operands[0], int(attributes.get("axis", 0))
    sizes = numbers(operands[1]) if len(operands) > 1 else attributes.get("split")
    if sizes is None:
        raise Open
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _transpose(attributes: Attributes, operands: Operands) -> Array:
    return np.transpose(operands[0], attributes.get("perm"))


SHAPE_RULES: dict[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Gather": _gather,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


_RULES = ELEMENT_RULES | SHAPE_RULES
_WITH_GAPS = frozenset({"Slice", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"})
"""Operators with optional operands that may be absent."""


def evaluate(
    name: str, attributes: Attributes, operands: Sequence[Array | None], dtypes: Sequence[Attribute | None]
) -> list[tuple[Array, Attribute | None]] | None:
    """The outputs of an operator with their dtypes, `None` where it is NumPy's; or `None` if they are not known."""
    rule = _RULES.get(name)
    present = [each for each in operands if each is not None]
    if rule is None or not present or (len(present) != len(operands) and name not in _WITH_GAPS):
        return None
    if any(each.size > MAX_EVALUATED for each in present):
        return None
    try:
        with np.errstate(all="ignore"):
            made = rule(attributes, cast("Operands", operands))
    except (Open, ValueError, TypeError, IndexError, KeyError, ZeroDivisionError, OverflowError, MemoryError):
        return None
    results = list(made) if isinstance(made, list | tuple) else [_array(made)]
    if any(each.size > MAX_EVALUATED for each in results):
        return None
    try:
        return [_typed(name, attributes, each, dtypes) for each in results]
    except OverflowError:  # Python's integers have as many bits as it takes
        return None


def _array(made: Any) -> Array:
    """A result as an array: NumPy gives bare elements where the rank is 0."""
    if isinstance(made, Dim):
        found = np.empty((), object)
        found[()] = made
        return found
    return np.asarray(made)


def _typed(
    name: str, attributes: Attributes, result: Array, dtypes: Sequence[Attribute | None]
) -> tuple[Array, Attribute | None]:
    """A result with its dtype, which object arrays do not know by themselves."""
    if result.dtype != object:
        return result, None
    if name == "Cast":
        dtype: Attribute | None = element_type(int(attributes["to"]))
    elif name == "CastLike":
        dtype = dtypes[1]
    else:
        dtype = dtypes[1] if name == "Where" else dtypes[0]
    low, high = integer_limits(dtype or i64)
    if any(isinstance(each, int) and not low <= each <= high for each in result.reshape(-1).tolist()):
        raise OverflowError("an element is no number of the dtype")
    return plain(result, dtype), dtype
