"""Values that types and constants say, and what passes values on."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.guard import GuardOp
from relax_dialect.ops.shapes import (
    ShapeGetOp,
    ShapeOfOp,
    ShapeOp,
    ShapeToTensorOp,
    SizeOp,
    TensorToShapeOp,
    TupleGetOp,
    TupleOp,
)
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.shape_values.elements import Elements, array_of, evaluates
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import constant
from tir_dialect.dtypes import is_bool


@evaluates(ShapeOp, ShapeOfOp, SizeOp)
def by_type(op: Operation, *_: Elements | None) -> None:
    """The type of the result says all."""


@evaluates(PrimOp)
def prim(op: PrimOp) -> Elements | None:
    """A truth value; of numbers the type says the value."""
    if isinstance(op.value, DimAttr) or not is_bool(op.value.type):
        return None
    return array_of([constant(int(bool(op.value.value.data)))]).reshape(())


@evaluates(ConstantOp)
def constant_tensor(op: ConstantOp) -> Elements | None:
    """The numbers; a float that is no integer is not known."""
    array = op.array
    return None if array is None else _as_elements(array)


def _as_elements(array: np.ndarray[Any, Any]) -> Elements:
    flat = [constant(int(number)) if float(number).is_integer() else None for number in array.reshape(-1).tolist()]
    return array_of(flat).reshape(array.shape)


@evaluates(ShapeGetOp)
def shape_get(op: ShapeGetOp, shape: Elements | None) -> Elements | None:
    """One of the values."""
    return None if shape is None else shape[op.index.value.data : op.index.value.data + 1].reshape(())


@evaluates(ShapeToTensorOp, TensorToShapeOp, MatchCastOp, GuardOp)
def same(op: Operation, x: Elements | None) -> Elements | None:
    """The same values."""
    return x


@evaluates(TupleGetOp)
def tuple_get(op: TupleGetOp, fields: Elements | None) -> None:
    """A tuple has no elements of its own; `canonicalize` takes known tuples apart."""


@evaluates(TupleOp)
def make_tuple(op: TupleOp, *fields: Elements | None) -> None:
    """No elements of its own."""
