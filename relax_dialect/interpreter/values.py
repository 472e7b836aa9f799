"""Constants, scalars, opaque values, shape values and tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.utils.hints import isa

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operators import computes
from relax_dialect.interpreter.runtime_values import DType, Shape
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
from relax_dialect.ops.values import ConstantOp, DTypeOp, NullOp, PrimOp, StringOp
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import dtype_name, is_bool, is_float


@runs(ConstantOp)
def constant(frame: Frame, op: ConstantOp) -> None:
    """A tensor; one of which only the name is known has to be given to the interpreter."""
    if (array := op.array) is not None:
        frame.set(op.result, array.copy())
        return
    name = op.weight_name or ""
    weight = frame.interpreter.weight(name)
    frame.check(weight, op.result.type, f"constant {name}")
    frame.set(op.result, weight)


@runs(PrimOp)
def prim(frame: Frame, op: PrimOp) -> None:
    """A scalar."""
    if isinstance(op.value, DimAttr):
        frame.set(op.result, evaluate(op.value.data, frame.symbols))
        return
    number = op.value.value.data
    if isa(op.value, IntegerAttr) and is_bool(op.value.type):
        number = bool(number)
    frame.set(op.result, float(number) if is_float(op.value.type) else number)


@runs(StringOp)
def string(frame: Frame, op: StringOp) -> None:
    """A string."""
    frame.set(op.result, op.value.data)


@runs(DTypeOp)
def dtype(frame: Frame, op: DTypeOp) -> None:
    """An element type."""
    frame.set(op.result, DType(dtype_name(op.value)))


@runs(NullOp)
def null(frame: Frame, op: NullOp) -> None:
    """Null."""
    frame.set(op.result, None)


@runs(ShapeOp)
def shape(frame: Frame, op: ShapeOp) -> None:
    """A shape of dimensions."""
    frame.set(op.result, Shape(evaluate(dim.data, frame.symbols) for dim in op.values))


@runs(TupleOp)
def make_tuple(frame: Frame, op: TupleOp) -> None:
    """A tuple."""
    frame.set(op.result, tuple(frame.get_all(op.fields)))


@runs(TupleGetOp)
def tuple_get(frame: Frame, op: TupleGetOp) -> None:
    """A field."""
    frame.set(op.result, frame.get(op.tuple)[op.index.value.data])


@computes(ShapeOfOp)
def shape_of(op: ShapeOfOp, x: np.ndarray[Any, Any]) -> Shape:
    """The shape of a tensor."""
    return Shape(x.shape)


@computes(ShapeGetOp)
def shape_get(op: ShapeGetOp, value: Shape) -> int:
    """One dimension; `ValueError` past the rank."""
    index = op.index.value.data
    if index >= len(value):
        raise ValueError(f"'relax.shape_get' expected an index below {len(value)}, got {index}")
    return value[index]


@computes(SizeOp)
def size(op: SizeOp, x: np.ndarray[Any, Any]) -> int:
    """The number of elements."""
    return int(x.size)


@computes(ShapeToTensorOp)
def shape_to_tensor(op: ShapeToTensorOp, value: Shape) -> np.ndarray[Any, Any]:
    """The dimensions as a tensor."""
    return np.array(value, np.int64)


@computes(TensorToShapeOp)
def tensor_to_shape(op: TensorToShapeOp, x: np.ndarray[Any, Any]) -> Shape:
    """The elements as dimensions."""
    return Shape(int(dim) for dim in x)
