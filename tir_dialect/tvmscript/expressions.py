"""The text of values: constants, loads, calls, and what is computed of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.calls import CallExternOp, CallPackedOp, ForeignCallOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp, buffer_type
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.ops.scalars import DimOp, RampOp
from tir_dialect.tvmscript.errors import refuse
from tir_dialect.tvmscript.operators import WRITERS
from tir_dialect.tvmscript.text import Text, call, dim_text, dtype_text, integer, number
from tir_dialect.types import BufferType


@dataclass
class Expressions:
    """The texts of values. One that a statement has named is its name; others are written out where they are used."""

    names: dict[SSAValue, Text] = field(default_factory=dict[SSAValue, Text])
    is_symbolic: bool = False
    """Whether the function has symbols, which have 64 bits: all its indices have them then."""

    def of(self, value: SSAValue) -> Text:
        """The text of a value."""
        known = self.names.get(value)
        if known is not None:
            return known
        op = value.owner
        if not isinstance(op, Operation):
            raise ValueError("a block argument has no name")
        return self.of_op(op, value)

    def of_op(self, op: Operation, value: SSAValue) -> Text:
        """The text of a result of an op, which is written out."""
        if isinstance(op, IfOp):
            return self._choice(op, op.results.index(value))
        write = _FORMS.get(op.name)
        if write is not None:
            return write(self, op)
        writer = WRITERS.get(op.name)
        if writer is None:
            raise refuse(op, "TVM has nothing like it")
        return writer(op, [self.of(operand) for operand in op.operands])

    def index(self, value: SSAValue) -> str:
        """The text of an index that makes a variable, which takes the dtype of it."""
        text = self.of(value)
        return text.text if text.number is None or not self.is_symbolic else f"T.int64({text.number})"

    def buffer(self, value: SSAValue) -> str:
        """The name of a buffer."""
        return self.names[value].text

    def index_text(self, op: LoadOp | StoreOp) -> str:
        """The indices of an access: `i, T.Ramp(j, 1, 8)` for a vector that extends along the last dimension."""
        indices = [self.of(index).text for index in op.indices]
        if op.lanes is not None and isinstance(op.indices[-1].type, IndexType):
            indices[-1] = f"T.Ramp({indices[-1]}, 1, {op.lanes})"
        return ", ".join(indices) or "()"

    def foreign(self, op: ForeignCallOp) -> Text:
        """A call of a function from outside."""
        arguments = [
            f"{self.buffer(each)}.data" if isinstance(each.type, BufferType) else self.of(each).text
            for each in op.arguments
        ]
        dtype = "void" if op.result is None else dtype_text(op.result.type)
        name = f'"{op.function.data}"'
        if isinstance(op, CallPackedOp):
            last = [] if op.result is None else [f'dtype="{dtype}"']
            return call("T.call_packed", name, *arguments, *last, dtype=dtype)
        function = "T.call_extern" if op.pure is None else "T.call_pure_extern"
        return call(function, f'"{dtype}"', name, *arguments, dtype=dtype)

    def _choice(self, op: IfOp, number: int) -> Text:
        """`T.if_then_else`, of which TVM evaluates one side."""
        sides: list[Text] = []
        for region in (op.then_body, op.else_body):
            last = region.block.last_op
            assert isinstance(last, YieldOp)
            sides.append(self.of(last.values[number]))
        then, otherwise = sides
        return call(
            "T.if_then_else",
            self.of(op.condition).text,
            then.text,
            otherwise.of_dtype(then.dtype).text,
            dtype=then.dtype,
        )


def is_expression(op: Operation) -> bool:
    """Whether an op changes nothing, so that it can stand inside of an expression."""
    if isinstance(op, IfOp):
        return bool(op.outputs) and all(is_expression(inner) for region in op.regions for inner in region.block.ops)
    if isinstance(op, ForeignCallOp):
        return op.pure is not None and op.result is not None
    return isinstance(op, YieldOp) or op.name in _FORMS or op.name in WRITERS


def _constant(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, arith.ConstantOp)
    value = op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        return _literal(value.type, value.value.data)
    if isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat() and isinstance(value.type, VectorType):
        (first, *_) = value.get_values()
        if isinstance(first, int | float):
            scalar = _literal(value.get_element_type(), first)
            return call("T.Broadcast", scalar.text, str(value.type.get_shape()[0]), dtype=dtype_text(value.type))
    raise refuse(op, "vectors of different numbers have no literal")


def _literal(type: Attribute, value: float) -> Text:
    if isinstance(type, IndexType):
        return number(int(value))
    dtype = dtype_text(type)
    if dtype == "bool":
        return Text(f"T.bool({bool(value)})", dtype)
    if dtype.startswith("int"):
        return integer(int(value), dtype)
    if not math.isfinite(value):
        return Text(f'T.{dtype}("{value}")', dtype)
    # the shortest text that gives the number in this dtype
    return Text(f"T.{dtype}({numpy_dtype(type).type(value)})", dtype)


def _load(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, LoadOp)
    dtype = dtype_text(buffer_type(op.buffer).dtype)
    whole = dtype if op.lanes is None else f"{dtype}x{op.lanes}"
    name = self.buffer(op.buffer)
    if op.mask is not None:
        return call("T.masked_load", f'"{whole}"', name, self.index_text(op), self.of(op.mask).text, dtype=whole)
    return Text(f"{name}[{self.index_text(op)}]", whole)


def _dim(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, DimOp)
    return dim_text(op.dim)


def _ramp(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, RampOp)
    base, step = self.of(op.base), self.of(op.step)
    return call("T.Ramp", base.text, step.text, str(op.lanes), dtype=dtype_text(op.result.type))


def _broadcast(self: Expressions, op: Operation) -> Text:
    type = op.results[0].type
    assert isinstance(type, VectorType)
    (lanes,) = type.get_shape()
    scalar = self.of(op.operands[0])
    return call("T.Broadcast", scalar.text, str(lanes), dtype=f"{scalar.dtype}x{lanes}")


def _address(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, AddressOfOp)
    indices = ", ".join(self.of(index).text for index in op.indices) or "()"
    return call("T.address_of", f"{self.buffer(op.buffer)}[{indices}]", dtype="handle")


def _foreign(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, ForeignCallOp)
    return self.foreign(op)


_FORMS: Mapping[str, Callable[[Expressions, Operation], Text]] = {
    arith.ConstantOp.name: _constant,
    LoadOp.name: _load,
    DimOp.name: _dim,
    RampOp.name: _ramp,
    vector.BroadcastOp.name: _broadcast,
    AddressOfOp.name: _address,
    CallExternOp.name: _foreign,
    CallPackedOp.name: _foreign,
}
"""The ops whose text needs more than that of their operands."""


def reads_memory(op: Operation) -> bool:
    """Whether the value of an op depends on when it is computed."""
    return any(isinstance(inner, LoadOp | ForeignCallOp) for inner in op.walk())
