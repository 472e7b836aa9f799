"""Constants, scalars and opaque values."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.utils.hints import isa

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.runtime_values import DType
from relax_dialect.ops.values import ConstantOp, DTypeOp, NullOp, PrimOp, StringOp
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import dtype_name, is_bool, is_float, numpy_dtype


def array_of(elements: DenseIntOrFPElementsAttr) -> np.ndarray[Any, Any]:
    """The elements of a dense attribute as a new array."""
    values = np.array(elements.get_values(), numpy_dtype(elements.get_element_type()))
    if values.size == 1:
        return np.full(elements.get_shape(), values.reshape(-1)[0])
    return values.reshape(elements.get_shape())


@runs(ConstantOp)
def constant(frame: Frame, op: ConstantOp) -> None:
    """A tensor; one that is kept outside has to be given to the interpreter."""
    if isa(op.value, DenseIntOrFPElementsAttr):
        frame.set(op.result, array_of(op.value))
        return
    name = op.weight_name or ""
    weight = frame.interpreter.weight(name)
    frame.check(weight, op.result.type, f"constant {name}")
    frame.set(op.result, weight)


@runs(PrimOp)
def prim(frame: Frame, op: PrimOp) -> None:
    """A scalar."""
    if isinstance(op.value, DimAttr):
        frame.set(op.result, op.value.data.evaluate(frame.symbols))
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
