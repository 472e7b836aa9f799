"""Constants, scalars and opaque values."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.utils.hints import isa

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.runtime_values import DType
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
