"""Memory: allocation, loads and stores; and the text of buffers and accesses: types, elements `%A[%i, %j]` and regions
`%A[%i, %lo to %hi]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IndexType, IntegerType, VectorType, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BeforeVariadicSingleAccessor,
    IRDLOperation,
    VarIRConstruct,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    OperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.fast_ops import as_value, fill_op
from tir_dialect.ops.assembly_format import (
    Annotations,
    Directive,
    State,
    annotations_attr,
    op_definition,
    parse_defined_operand,
    parse_index,
    value_of,
)
from tir_dialect.ops.effects import AllocatesResults
from tir_dialect.types import BufferType, buffer_type


def parse_buffer(parser: Parser) -> SSAValue[BufferType]:
    """Parses a reference to a buffer that is already defined."""
    start = parser.pos
    value = parse_defined_operand(parser)
    if not isinstance(value.type, BufferType):
        parser.raise_error(f"expected a buffer, got a value of type {value.type}", start, parser.pos)
    return SSAValue.get(value, type=BufferType)


class Buffer(Directive):
    """A buffer: `%A`."""

    buffer: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.buffer.index] = (parse_buffer(parser),)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)


class BufferResult(Directive):
    """The type of a result that is a buffer: `!tir.buffer<[n], f32>`."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start = parser.pos
        type = parser.parse_type()
        if not isinstance(type, BufferType):
            parser.raise_error(f"expected a buffer type, got {type}", start, parser.pos)
        self.type.set(state, (type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


class Access(Directive):
    """An element of a buffer: `%A[%i, %j]`."""

    buffer: OperandVariable
    indices: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values = State.of(state).values
        values[self.buffer.index] = (parse_buffer(parser),)
        values[self.indices.index] = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_index(parser)
        )

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)
        with printer.in_square_brackets():
            printer.print_list(self.indices.get(op), printer.print_ssa_value)


@dataclass(frozen=True)
class RegionAxis:
    """One dimension of a region: the point `lower`, or the half-open range from `lower` to `upper`."""

    lower: SSAValue
    upper: SSAValue | None = None


class BufferRegion(Directive):
    """A region of a buffer, in each dimension a point or a range: `%A[%i, %lo to %hi]`."""

    buffer: OperandVariable
    lower: VariadicOperandVariable
    upper: VariadicOperandVariable
    is_range: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values = State.of(state).values
        values[self.buffer.index] = (parse_buffer(parser),)
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_axis(parser))
        values[self.lower.index], values[self.upper.index] = starts_and_ends(axes)
        self.is_range.set(state, ranges(axes))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)
        flags = cast("DenseArrayBase[IntegerType]", self.is_range.get(op)).get_values()
        with printer.in_square_brackets():
            printer.print_list(
                axes_of(self.lower.get(op), self.upper.get(op), flags), lambda axis: _print_axis(printer, axis)
            )


def starts_and_ends(axes: Sequence[RegionAxis]) -> tuple[list[SSAValue], list[SSAValue]]:
    """The points and starts of ranges, one per dimension, and the ends of the ranges."""
    return [axis.lower for axis in axes], [axis.upper for axis in axes if axis.upper is not None]


def ranges(axes: Sequence[RegionAxis]) -> DenseArrayBase:
    """Which dimensions have a range."""
    return DenseArrayBase.from_list(i1, [int(axis.upper is not None) for axis in axes])


def axes_of(lower: Sequence[SSAValue], upper: Sequence[SSAValue], flags: Sequence[int]) -> list[RegionAxis]:
    """The dimensions of a region, of what `starts_and_ends` and `ranges` give."""
    ends = iter(upper)
    return [RegionAxis(start, next(ends) if ranged else None) for start, ranged in zip(lower, flags, strict=True)]


def _parse_axis(parser: Parser) -> RegionAxis:
    lower = parse_index(parser)
    if parser.parse_optional_keyword("to") is None:
        return RegionAxis(lower)
    return RegionAxis(lower, parse_index(parser))


def _print_axis(printer: Printer, axis: RegionAxis) -> None:
    printer.print_ssa_value(axis.lower)
    if axis.upper is not None:
        printer.print_string(" to ")
        printer.print_ssa_value(axis.upper)


I1 = IntegerType(1)


class _AccessEffect(MemoryEffect):
    """A load reads its buffer, a store writes it."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        if isinstance(op, StoreOp):
            return frozenset((EffectInstance(MemoryEffectKind.WRITE, op.buffer),))
        return frozenset((EffectInstance(MemoryEffectKind.READ, op.operands[0]),))


@lru_cache(maxsize=1024)
def vector_of(element: Attribute, lanes: int) -> VectorType[Attribute]:
    """The type of a vector; cached, since it is needed for most accesses."""
    return VectorType(element, [lanes])


@lru_cache(maxsize=1024)
def i32_array(*sizes: int) -> DenseArrayBase:
    """An array of i32, such as operand segment sizes; cached like `vector_of`."""
    return DenseArrayBase.from_list(i32, sizes)


def lanes_of(type: Attribute) -> int | None:
    """The number of lanes of a vector with one fixed dimension; `None` for a scalar or another vector."""
    if not isinstance(type, VectorType):
        return None
    # `isinstance`, not `isa`, and no method calls: this runs for every access.
    vector = cast("VectorType[Attribute]", type)
    dims = vector.shape.data
    return dims[0].data if len(dims) == 1 and not vector.get_num_scalable_dims() else None


def number_type(type: Attribute) -> Attribute | None:
    """The type of a number, or of the numbers of a vector with one fixed dimension; `None` for another vector."""
    if isa(type, VectorType):
        return None if lanes_of(type) is None else type.element_type
    return type


def access_type(buffer: BufferType, indices: Sequence[SSAValue], lanes: int | None = None) -> Attribute:
    """The type of the value that an access loads or stores: an element, or a vector of `lanes` elements."""
    for index in indices:
        lanes = lanes_of(index.type) or lanes
    return buffer.element_type if lanes is None else vector_of(buffer.element_type, lanes)


def _present(mask: SSAValue | Operation | None) -> tuple[SSAValue, ...]:
    return () if mask is None else (as_value(mask),)


def _verify_access(
    op: Operation, buffer: BufferType, indices: Sequence[SSAValue], moved: Attribute, mask: SSAValue | None
) -> None:
    if len(indices) != buffer.rank:
        raise VerifyException(
            f"'{op.name}' op expected {buffer.rank} {'index' if buffer.rank == 1 else 'indices'}, got {len(indices)}"
        )  # C1
    lanes = lanes_of(moved)
    expected = buffer.element_type if lanes is None else vector_of(buffer.element_type, lanes)
    if moved != expected:
        raise VerifyException(f"'{op.name}' op expected a value of type {expected}, got {moved}")  # C2
    for axis, index in enumerate(indices):
        if not isinstance(index.type, IndexType) and (lanes is None or index.type != VectorType(IndexType(), [lanes])):
            vectors = "" if lanes is None else f" or {VectorType(IndexType(), [lanes])}"
            raise VerifyException(f"'{op.name}' op index {axis} expected index{vectors}, got {index.type}")  # C3
    if mask is not None and (lanes is None or mask.type != VectorType(I1, [lanes])):
        wanted = "no mask" if lanes is None else f"a mask of type {VectorType(I1, [lanes])}"
        raise VerifyException(f"'{op.name}' op of {moved} expected {wanted}, got {mask.type}")  # C4
    if lanes is not None and buffer.rank == 0:
        raise VerifyException(f"'{op.name}' op of {moved} expected a buffer with a dimension")  # C5


OpT = TypeVar("OpT", bound=IRDLOperation)


def _reads_directly(*names: str) -> Callable[[type[OpT]], type[OpT]]:
    """The positions of the operands before the variadic ones do not depend on the segment sizes, which take ten times
    as long to read; passes read no operands more often than these.
    """

    def accessing(cls: type[OpT]) -> type[OpT]:
        for index, name in enumerate(names):
            setattr(cls, name, BeforeVariadicSingleAccessor(VarIRConstruct.OPERAND, index))
        return cls

    return accessing


class AccessType(Directive):
    """The type of what is loaded, unless it follows from the buffer and the indices: `: vector<8xf32>`."""

    result: TypeDirective
    buffer: OperandVariable
    indices: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        memory = buffer_type(value_of(self.buffer, state))
        indices = State.of(state).values[self.indices.index]
        start = parser.pos
        loaded = access_type(memory, indices)
        if parser.parse_optional_punctuation(":") is not None:
            written = parser.parse_type()
            loaded = access_type(memory, indices, lanes_of(written))
            if written != loaded:
                parser.raise_error(f"'tir.load' op expected type {loaded}, got {written}", start, parser.pos)
        self.result.set(state, (loaded,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        (loaded,) = self.result.get(op)
        if loaded != access_type(buffer_type(self.buffer.get(op)), self.indices.get(op)):
            printer.print_string(" : ")
            printer.print_attribute(loaded)


@_reads_directly("buffer")
@op_definition
class LoadOp(IRDLOperation):
    """Loads an element, or several as a vector.

    ```mlir
    %a = tir.load %A[%i, %j]
    %v = tir.load %A[%i, %j] mask %m : vector<8xf32>
    %g = tir.load %A[%i, %indices]
    ```

    A vector is loaded from consecutive indices of the last dimension, or, if an index is itself a vector, gathered from
    the indices of each lane. A lane that is masked off is not read; its value is 0.

    C1: there is one index per dimension.
    C2: the result is of the buffer's element type, or a vector of it.
    C3: an index is an `index`, or a vector of as many as the result has lanes.
    C4: only a vector access has a mask, with as many lanes.
    C5: a vector access needs a dimension.
    """

    name = "tir.load"

    buffer = operand_def(BufferType)
    indices = var_operand_def()
    mask = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(_AccessEffect())

    assembly_format = (
        "custom<Access>($buffer, $indices) (`mask` $mask^)? attr-dict "
        "custom<AccessType>(type($result), ref($buffer), ref($indices))"
    )
    custom_directives = (Access, AccessType)

    def __init__(
        self,
        buffer: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        *,
        lanes: int | None = None,
        mask: SSAValue | Operation | None = None,
    ):
        """`lanes` is the length of a vector loaded from consecutive indices; with vector indices it follows from
        them.
        """
        memory = as_value(buffer)
        positions = [as_value(index) for index in indices]
        fill_op(
            self,
            (memory, *positions, *_present(mask)),
            (access_type(buffer_type(memory), positions, lanes),),
            {"operandSegmentSizes": i32_array(1, len(indices), mask is not None)},
        )

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def lanes(self) -> int | None:
        """The number of lanes of a vector access."""
        return lanes_of(self.result.type)

    def verify_(self) -> None:
        _verify_access(self, self.buffer_type, self.indices, self.result.type, self.mask)


@_reads_directly("value", "buffer")
@op_definition
class StoreOp(IRDLOperation):
    """Stores an element, or several from a vector.

    ```mlir
    tir.store %a, %A[%i, %j]
    tir.store %v, %A[%i, %j] mask %m
    ```

    Vectors, vector indices and masks have the same meaning as for `tir.load`; lanes with equal indices are stored in
    order.

    C1: there is one index per dimension.
    C2: the value is of the buffer's element type, or a vector of it.
    C3: an index is an `index`, or a vector of as many as the value has lanes.
    C4: only a vector access has a mask, with as many lanes.
    C5: a vector access needs a dimension.
    """

    name = "tir.store"

    value = operand_def()
    buffer = operand_def(BufferType)
    indices = var_operand_def()
    mask = opt_operand_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(_AccessEffect())

    assembly_format = "$value `,` custom<Access>($buffer, $indices) (`mask` $mask^)? attr-dict"
    custom_directives = (Access,)

    def __init__(
        self,
        value: SSAValue | Operation,
        buffer: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        *,
        mask: SSAValue | Operation | None = None,
    ):
        fill_op(
            self,
            (as_value(value), as_value(buffer), *map(as_value, indices), *_present(mask)),
            properties={"operandSegmentSizes": i32_array(1, 1, len(indices), mask is not None)},
        )

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def lanes(self) -> int | None:
        """The number of lanes of a vector access."""
        return lanes_of(self.value.type)

    def verify_(self) -> None:
        _verify_access(self, self.buffer_type, self.indices, self.value.type, self.mask)


@op_definition
class AllocBufferOp(IRDLOperation):
    """Allocates uninitialised memory, which lives until the end of the enclosing region.

    ```mlir
    %T = tir.alloc_buffer annotations {"layout" = "tile"} : !tir.buffer<[n, 16], f32, scope = "local">
    ```
    """

    name = "tir.alloc_buffer"

    annotations = opt_prop_def(DictionaryAttr)
    buffer = result_def(BufferType)

    traits = traits_def(AllocatesResults())

    assembly_format = "custom<Annotations>($annotations) attr-dict `:` custom<BufferResult>(type($buffer))"
    custom_directives = (Annotations, BufferResult)

    def __init__(self, type: BufferType, *, annotations: Mapping[str, Attribute] | None = None):
        given = annotations_attr(annotations)
        fill_op(self, (), (type,), {} if given is None else {"annotations": given})

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)
