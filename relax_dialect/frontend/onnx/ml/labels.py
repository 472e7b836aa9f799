"""Numbers and strings that stand for each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import ClassMap, Strings, Value
from tir_dialect import te
from tir_dialect.dims import constant
from tir_dialect.dtypes import from_numpy


def table_of(
    node: Node, x: Expr, keys: Sequence[float], values: Sequence[Any], default: Any, dtype: Attribute = i64
) -> Expr:
    """For each element the value whose key it is, or a default; of equal keys the last one counts."""
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    nan = table.pop(None, default)
    ordered = sorted(key for key in table if key is not None)
    if not ordered:
        return op.full_like(op.astype(x, dtype), default)
    own = np.array(ordered, np.float64 if any(isinstance(key, float) for key in ordered) else np.int64)
    sought = node.const(own.astype(np.float32) if str(x.dtype) == "f32" else own, x.dtype or i64)
    found = node.const(np.array([table[key] for key in ordered]), dtype)
    lone = node.const(np.array([default, nan]), dtype)
    return node.te(_looked_up, x, sought, found, lone, name="look_up")


def _key(key: float) -> float | None:
    return None if isinstance(key, float) and isnan(key) else key


def _looked_up(x: te.Tensor, keys: te.Tensor, values: te.Tensor, lone: te.Tensor) -> te.Tensor:
    """Halves the keys, which are in order, until one is left."""
    count = keys.shape[0].constant_value or 1
    steps = max(count - 1, 1).bit_length()
    found = te.compute(x.shape, lambda *i: te.const(0, "i64"), name="at")
    for step in reversed(range(steps)):
        found = _nearer(x, keys, found, 1 << step)
    last = found

    def value(*i: te.Expr) -> te.Expr:
        position = te.cast(last[i], "index")
        other = lone[te.cast(te.cast(te.isnan(x[i]), "i64"), "index")] if _is_float(x) else lone[0]
        return te.select(keys[position] == x[i], values[position], other)

    return te.compute(x.shape, value, name="looked_up")


def _nearer(x: te.Tensor, keys: te.Tensor, before: te.Tensor, width: int) -> te.Tensor:
    """Places in the keys, each moved by a width if the key that is there is not greater."""
    count = keys.shape[0].constant_value or 1

    def element(*i: te.Expr) -> te.Expr:
        there = before[i] + width
        inside = te.cast(te.minimum(there, count - 1), "index")
        return te.select(te.logical_and(there < count, keys[inside] <= x[i]), there, before[i])

    return te.compute(x.shape, element, name="at")


def _is_float(x: te.Tensor) -> bool:
    return str(x.dtype).startswith(("f", "bf"))


@converts("LabelEncoder", since=2, domain=ML)
def label_encoder(node: Node) -> Result:
    """What a list has for each element, which is a key of it."""
    keys, values = _listed(node, "keys"), _listed(node, "values")
    if len(keys) != len(values):
        raise Refusal(f"{len(keys)} keys are not those of {len(values)} values")
    default = node.attribute("default_tensor")
    if default is not None:
        default = np.asarray(default).reshape(-1)[0]
    elif values and isinstance(values[0], str):
        default = node.text("default_string", "_Unused")
    elif node.attributes.get("values_floats") is not None:
        default = node.number("default_float", -0.0)
    else:
        default = node.integer("default_int64", -1)
    tensor = node.attribute("values_tensor")
    if tensor is not None and not isinstance(values[0], str):
        dtype: Attribute = from_numpy(np.asarray(tensor).dtype)
    else:
        dtype = f32 if node.attributes.get("values_floats") is not None else i64
    return _encoded(node, keys, values, default, dtype)


@converts("LabelEncoder", domain=ML)
def old_label_encoder(node: Node) -> Result:
    """The strings of a list by their indices, or the indices of strings."""
    names = node.strings("classes_strings")
    if isinstance(node.value(0), Strings):
        return _encoded(node, names, range(len(names)), node.integer("default_int64", -1), i64)
    return _encoded(node, range(len(names)), names, node.text("default_string", "_Unused"), i64)


@converts("CategoryMapper", domain=ML)
def category_mapper(node: Node) -> Result:
    """The string of an integer, or the integer of a string."""
    names, numbers = node.strings("cats_strings"), node.integers("cats_int64s") or ()
    if len(names) != len(numbers):
        raise Refusal(f"{len(names)} cats_strings are not those of {len(numbers)} cats_int64s")
    if isinstance(node.value(0), Strings):
        return _encoded(node, names, numbers, node.integer("default_int64", -1), i64)
    return _encoded(node, numbers, names, node.text("default_string", "_Unused"), i64)


def _listed(node: Node, name: str) -> Sequence[Any]:
    """The list that is given in one of several types."""
    if strings := node.strings(f"{name}_strings"):
        return strings
    for kind in ("floats", "int64s"):
        if (found := node.attribute(f"{name}_{kind}")) is not None and len(found):
            return list(found)
    tensor = node.attribute(f"{name}_tensor")
    if tensor is None:
        raise Refusal(f"there are no {name}")
    return np.asarray(tensor).reshape(-1).tolist()


def _encoded(node: Node, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: Attribute) -> Value:
    """Values for keys, of which either may be strings."""
    operand = node.value(0)
    names: list[str] | None = None
    if isinstance(default, str):
        names = list(dict.fromkeys([*values, default]))
        values, default = [names.index(each) for each in values], names.index(default)
    if isinstance(operand, Strings):
        known = dict(zip(keys, values, strict=True))
        entries = np.array([known.get(each, default) for each in operand.vocabulary])
        made = op.take(node.const(entries, dtype), operand.at, 0) if operand.vocabulary else operand.at
    elif any(isinstance(each, str) for each in keys):
        raise Refusal("keys that are strings are those of strings")
    else:
        made = table_of(node, operand.expr(node.bb), keys, values, default, dtype)
    return Value(made) if names is None else Strings(made, tuple(names))


@converts("ZipMap", domain=ML)
def zip_map(node: Node) -> Result:
    """A map from labels to scores for each sample: the scores, and what their columns stand for."""
    labels = [*node.strings("classlabels_strings"), *map(str, node.integers("classlabels_int64s") or ())]
    count = node.shape()[-1]
    if count != constant(len(labels)):
        raise Refusal(f"{len(labels)} labels are not those of {count} columns")
    return ClassMap(node[0], tuple(labels))
