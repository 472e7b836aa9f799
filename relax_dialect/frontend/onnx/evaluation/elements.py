"""Rules that work element by element, and reductions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from relax_dialect.frontend.onnx.dtypes import element_type, to_numpy
from relax_dialect.frontend.onnx.evaluation import dims
from relax_dialect.frontend.onnx.evaluation.rule import Attributes, Open, Operands, Rule, axes_of
from relax_dialect.frontend.onnx.values import Array
from relax_dialect.ops.binary import divide
from tir_dialect.dtypes import from_numpy
from tir_dialect.elements import converted


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
    return np.asarray(_elementwise(native, dims.modulo)(attributes, operands))


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
    "Div": _elementwise(divide, dims.divide),
    "Equal": _truth(_elementwise(np.equal, dims.equal)),
    "Exp": _elementwise(np.exp, None),
    "Floor": _elementwise(np.floor, None),
    "Greater": _truth(_elementwise(np.greater, dims.greater)),
    "GreaterOrEqual": _truth(_elementwise(np.greater_equal, dims.at_least)),
    "Identity": lambda attributes, operands: operands[0],
    "Less": _truth(_elementwise(np.less, dims.less)),
    "LessOrEqual": _truth(_elementwise(np.less_equal, dims.at_most)),
    "Log": _elementwise(np.log, None),
    "Max": _folded(np.maximum, dims.maximum),
    "Min": _folded(np.minimum, dims.minimum),
    "Mod": _modulo,
    "Mul": _elementwise(np.multiply, operator.mul),
    "Neg": _elementwise(np.negative, operator.neg),
    "Not": _elementwise(np.logical_not, None),
    "Or": _elementwise(np.logical_or, None),
    "Reciprocal": _elementwise(np.reciprocal, None),
    "ReduceMax": _extreme(np.max, dims.maximum),
    "ReduceMin": _extreme(np.min, dims.minimum),
    "ReduceProd": _reduction(np.prod, operator.mul),
    "ReduceSum": _reduction(np.sum, operator.add),
    "Sqrt": _elementwise(np.sqrt, None),
    "Sub": _elementwise(np.subtract, operator.sub),
    "Where": _where,
    "Xor": _elementwise(np.logical_xor, None),
}
