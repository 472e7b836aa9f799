"""Blocks: the units of computation that schedules move; the buffer regions that they declare to read and write; and
views of buffers, of another shape, dtype or rank.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IndexType, IntegerType, StringAttr, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import OperandVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoMemoryEffect, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, Prover, floordiv, product
from tir_dialect.dtypes import byte_size
from tir_dialect.fast_ops import fill_op
from tir_dialect.ops.assembly_format import (
    Directive,
    annotations_attr,
    op_definition,
    parse_annotations,
    parse_defined_operand,
    parse_index,
    print_annotations,
    value_of,
)
from tir_dialect.ops.effects import VERIFIERS, Declares
from tir_dialect.ops.memory import Buffer, BufferRegion, BufferResult, RegionAxis, axes_of, ranges, starts_and_ends
from tir_dialect.types import BufferType, IteratorKind, IteratorKindAttr, as_name_hint, buffer_type

I1 = IntegerType(1)

_KINDS = tuple(kind.value for kind in IteratorKind)


class BlockIterator(NamedTuple):
    """One iterator of a block: its value inside, its kind, what it is bound to, and the extent of its domain."""

    value: BlockArgument
    kind: IteratorKind
    binding: SSAValue
    extent: SSAValue


@irdl_op_definition
class BlockOp(IRDLOperation):
    """A computation in terms of its own iterators, independent of the loops that drive it.

    ```mlir
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) where %inside {
      tir.init { ... }
      ...
    }
    ```

    Each iterator has the domain `0 <= v < extent`; in an instance of the block it has the value of its binding. An
    instance is executed only if the predicate after `where` holds. `tir.init` may come first, and `tir.reads` and
    `tir.writes` may declare regions that cannot be inferred. An extent or a binding that is a number is a constant
    before the loops around the block.

    C1: there are as many bindings, extents and region arguments, all of type `index`, as iterator kinds.
    C2: `tir.init` is the first op, and there is a reduce or scan iterator.
    C3: the body refers to variables of surrounding loops, and to values that depend on them, only through iterators.
    C4: each spatial iterator whose extent is not 0 or 1 occurs in the indices of every store of the block to a buffer
        allocated outside it, or in a condition inside of the block around the store; a reduce iterator occurs in none
        of the indices.
    C5: a block with `tir.reads` provably reads nothing outside these regions, and one with `tir.writes` writes nothing
        outside those. Buffers that the block writes, and buffers that indices are loaded from, need not be declared as
        read.
    """

    name = "tir.block"

    bindings = var_operand_def(IndexType)
    extents = var_operand_def(IndexType)
    condition = opt_operand_def(I1)
    block_name = prop_def(StringAttr)
    iterator_kinds = prop_def(ArrayAttr[IteratorKindAttr])
    annotations = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        iterators: Sequence[tuple[IteratorKind, SSAValue | Operation, SSAValue | Operation]] = (),
        body: Region | None = None,
        *,
        where: SSAValue | Operation | None = None,
        annotations: Mapping[str, Attribute] | None = None,
        name_hints: Sequence[str | None] = (),
    ):
        """Iterators are (kind, binding, extent); without a body an empty one is made, with arguments of these names."""
        if body is None:
            body = Region(Block(arg_types=[IndexType()] * len(iterators)))
            for argument, hint in zip(body.block.args, name_hints, strict=False):
                argument.name_hint = as_name_hint(hint)
        super().__init__(
            operands=[[binding for _, binding, _ in iterators], [extent for _, _, extent in iterators], where],
            properties={
                "block_name": StringAttr(name),
                "iterator_kinds": ArrayAttr([IteratorKindAttr(kind) for kind, _, _ in iterators]),
                "annotations": annotations_attr(annotations),
            },
            regions=[body],
        )

    @property
    def iterators(self) -> tuple[BlockIterator, ...]:
        """The iterators, in order."""
        kinds = (kind.data for kind in self.iterator_kinds)
        return tuple(map(BlockIterator, self.body.block.args, kinds, self.bindings, self.extents))

    @property
    def init(self) -> InitOp | None:
        """The `tir.init` of the block, if it has one."""
        first = self.body.block.first_op
        return first if isinstance(first, InitOp) else None

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        name = parser.parse_str_literal()
        parsed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_iterator(parser))
        iterators = parsed or []
        where = parse_defined_operand(parser) if parser.parse_optional_keyword("where") is not None else None
        annotations = parse_annotations(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([argument for argument, *_ in iterators])
        op = cls(
            name,
            [iterator[1:] for iterator in iterators],
            body,
            where=where,
            annotations=None if annotations is None else annotations.data,
        )
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.block_name.data)
        if iterators := self.iterators:
            printer.print_string(" ")
            with printer.in_parens():
                printer.print_list(iterators, lambda iterator: _print_iterator(printer, iterator))
        if self.condition is not None:
            printer.print_string(" where ")
            printer.print_ssa_value(self.condition)
        print_annotations(printer, self.annotations)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        kinds = [kind.data for kind in self.iterator_kinds]
        types = self.body.block.arg_types
        counts = (len(self.bindings), len(self.extents), len(types))
        if any(count != len(kinds) for count in counts) or any(not isinstance(type, IndexType) for type in types):
            raise VerifyException(
                f"'tir.block' op \"{self.block_name.data}\" expected {len(kinds)} bindings, extents and index region "
                f"arguments, got {counts[0]}, {counts[1]} and {counts[2]}"
            )  # C1
        for op in self.body.block.ops:
            if isinstance(op, InitOp) and op is not self.body.block.first_op:
                raise VerifyException(
                    f"'tir.block' op \"{self.block_name.data}\" expected 'tir.init' as its first op"
                )  # C2
        if self.init is not None and not {IteratorKind.REDUCE, IteratorKind.SCAN}.intersection(kinds):
            raise VerifyException(
                f"'tir.block' op \"{self.block_name.data}\" has 'tir.init' but no reduce or scan iterator"
            )  # C2
        VERIFIERS.of(self.name)(self)  # C3, C4, C5


def _parse_iterator(parser: Parser) -> tuple[Parser.Argument, IteratorKind, SSAValue, SSAValue]:
    argument = parser.parse_argument(expect_type=False).resolve(IndexType())
    parser.parse_punctuation("=")
    kind = _parse_kind(parser)
    binding = parse_index(parser)
    parser.parse_keyword("in")
    return argument, kind, binding, parse_index(parser)


def _parse_kind(parser: Parser) -> IteratorKind:
    start = parser.pos
    if (word := parser.parse_optional_keyword_in(_KINDS)) is not None:
        return IteratorKind(word)
    following = re.compile(r"\s*(%?[\w.]+|\S)").match(parser.lexer.input.content, start)
    got = "" if following is None else following[1]
    close = "".join(f"; did you mean {each}?" for each in get_close_matches(got, _KINDS, n=1))
    message = f"'tir.block' op expected the kind of an iterator, one of {', '.join(_KINDS)}, got '{got}'{close}"
    parser.raise_error(message, start, start if following is None else following.end())


def _print_iterator(printer: Printer, iterator: BlockIterator) -> None:
    printer.print_block_argument(iterator.value, print_type=False)
    printer.print_string(f" = {iterator.kind.value} ")
    printer.print_ssa_value(iterator.binding)
    printer.print_string(" in ")
    printer.print_ssa_value(iterator.extent)


@irdl_op_definition
class InitOp(IRDLOperation):
    """Runs at the start of each instance of its block in which all reduce and scan iterators are 0.

    ```mlir
    tir.init {
      tir.store %zero, %C[%vi, %vj]
    }
    ```

    If the domain of a reduction is empty, there is no such instance; the init still runs for all values of the other
    iterators, so that an empty sum is 0 (`tir_dialect.analysis.init` says where).

    C1: it stands directly in a `tir.block`.
    """

    name = "tir.init"

    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect(), HasParent(BlockOp))  # C1

    def __init__(self, body: Region | None = None):
        """Without a body, an empty one is made."""
        super().__init__(regions=[Region(Block()) if body is None else body])

    @classmethod
    def parse(cls, parser: Parser) -> InitOp:
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(parser.parse_region(()))
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


class BufferViewOp(IRDLOperation, ABC):
    """A buffer, `view`, over memory that belongs to another one, `buffer`."""

    buffer = operand_def(BufferType)
    view = result_def(BufferType)

    traits = traits_def(NoMemoryEffect())

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def view_type(self) -> BufferType:
        """The type of the view."""
        return buffer_type(self.view)


@op_definition
class ViewOp(BufferViewOp):
    """Reinterprets the memory of a buffer: its bytes are accessed as elements of the view's dtype and shape.

    ```mlir
    %V = tir.view %A : !tir.buffer<[n, 4], i8>
    %W = tir.view %A at %i : !tir.buffer<[16], f32>
    ```

    The view starts at the base address of the buffer, or `at` so many elements (of the view's dtype) after it. A view
    with strides of its own skips elements.

    C1: the buffer has default strides, and both the offset 0.
    C2: both have one scope.
    C3: the view is not provably larger than the buffer. (For a view with `at`, that is part of C6 of `tir.prim_func`.)
    """

    name = "tir.view"

    # again, to come first
    buffer = operand_def(BufferType)
    start = opt_operand_def(IndexType)

    assembly_format = "custom<Buffer>($buffer) (`at` $start^)? attr-dict `:` custom<BufferResult>(type($view))"
    custom_directives = (Buffer, BufferResult)

    def __init__(self, buffer: SSAValue | Operation, type: BufferType, start: SSAValue | Operation | None = None):
        super().__init__(operands=[buffer, start], result_types=[type])

    @property
    def room(self) -> Dim:
        """How many elements of the view's dtype the memory of the buffer can hold."""
        return floordiv(_bytes(self.buffer_type), byte_size(self.view_type.dtype))

    def verify_(self) -> None:
        source, view = self.buffer_type, self.view_type
        if not source.is_compact:
            raise VerifyException(f"'tir.view' op expected a buffer without gaps, got {source}")  # C1
        if view.offset.terms:
            raise VerifyException(f"'tir.view' op expected a view without an offset, got {view}")  # C1
        if source.scope != view.scope:
            raise VerifyException(f"'tir.view' op expected one scope, got {source} and {view}")  # C2
        if Prover().less_equal(_bytes(view), _bytes(source)) is False:
            raise VerifyException(f"'tir.view' op expected a view that is not larger than {source}, got {view}")  # C3


def _bytes(kind: BufferType) -> Dim:
    return kind.span * byte_size(kind.dtype)


def flat_type(buffer: BufferType) -> BufferType:
    """The type of a buffer flattened to one dimension."""
    return BufferType([product(buffer.shape)], buffer.dtype, scope=buffer.scope, align=buffer.align)


class FlatType(Directive):
    """Nothing: the result is a buffer, flattened."""

    view: TypeDirective
    buffer: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.view.set(state, (flat_type(buffer_type(value_of(self.buffer, state))),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


@op_definition
class FlattenOp(BufferViewOp):
    """A one-dimensional view of a compact buffer: its elements in row-major order.

    ```mlir
    %F = tir.flatten %A    // of !tir.buffer<[m, n], f32> is !tir.buffer<[m * n], f32>
    ```

    Element `[i * n + j]` of the view is element `[i, j]` of the buffer.

    C1: the buffer is compact: it has default strides and the offset 0.
    C2: the view has one dimension, as long as the buffer has elements, and the buffer's dtype, scope and alignment.
    """

    name = "tir.flatten"

    assembly_format = "custom<Buffer>($buffer) attr-dict custom<FlatType>(type($view), ref($buffer))"
    custom_directives = (Buffer, FlatType)

    def __init__(self, buffer: SSAValue | Operation):
        buffer = SSAValue.get(buffer, type=BufferType)
        fill_op(self, (buffer,), (flat_type(buffer.type),))

    def verify_(self) -> None:
        source = self.buffer_type
        if not source.is_compact:
            raise VerifyException(f"'tir.flatten' op expected a buffer without gaps, got {source}")  # C1
        if self.view_type != flat_type(source):
            raise VerifyException(
                f"'tir.flatten' op expected a view of type {flat_type(source)}, got {self.view_type}"
            )  # C2


class RegionOp(IRDLOperation, ABC):
    """An op on a region of a buffer: in each dimension a point, or a half-open range.

    `lower` has the points and the starts of the ranges, one per dimension; `upper` the ends of the ranges, and
    `is_range` tells which dimensions have one.
    """

    buffer = operand_def(BufferType)
    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    is_range = prop_def(DenseArrayBase.constr(i1))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def axes(self) -> tuple[RegionAxis, ...]:
        """The region, one entry per dimension."""
        return tuple(axes_of(self.lower, self.upper, self.is_range.get_values()))

    def verify_region(self) -> None:
        """Checks the number of points and ranges; `VerifyException` if the buffer has another rank."""
        ranges = [bool(value) for value in self.is_range.get_values()]
        rank = self.buffer_type.rank
        if len(self.lower) != rank or len(ranges) != rank or len(self.upper) != sum(ranges):
            raise VerifyException(
                f"'{self.name}' op expected {rank} dimensions, got {len(self.lower)} starts, {len(self.upper)} ends "
                f"and {len(ranges)} flags"
            )  # C1


def _operands(buffer: SSAValue | Operation, axes: Sequence[RegionAxis]) -> list[SSAValue | Sequence[SSAValue]]:
    return [SSAValue.get(buffer), *starts_and_ends(axes)]


@op_definition
class MatchBufferOp(RegionOp, BufferViewOp):
    """A view of a buffer region. Dimensions in which the region is a single point are dropped.

    ```mlir
    %T = tir.match_buffer %A[%b, %i0 to %i1, %j0 to %j1] : !tir.buffer<[16, 16], f32, strides = [m, 1]>
    ```

    Element `[i, j]` of the view is element `[%b, %i0 + i, %j0 + j]` of the buffer. The length of each range is the
    extent in the result type; the base address of the view is that of its first element.

    C1: there is one point or range per dimension of the buffer.
    C2: the view has one dimension per range, and the buffer's dtype and scope.
    C3: its strides are those of the buffer in these dimensions, its offset is 0.
    C4: no extent of the view is provably different from the length of its range.
    """

    name = "tir.match_buffer"

    assembly_format = (
        "custom<BufferRegion>($buffer, $lower, $upper, $is_range) attr-dict `:` custom<BufferResult>(type($view))"
    )
    custom_directives = (BufferRegion, BufferResult)

    def __init__(self, buffer: SSAValue | Operation, axes: Sequence[RegionAxis], type: BufferType):
        super().__init__(operands=_operands(buffer, axes), properties={"is_range": ranges(axes)}, result_types=[type])

    def verify_(self) -> None:
        self.verify_region()
        source, view = self.buffer_type, self.view_type
        if view.rank != len(self.upper) or view.dtype != source.dtype or view.scope != source.scope:
            raise VerifyException(
                f"'tir.match_buffer' op expected {len(self.upper)} dimensions of {source.dtype} in scope "
                f'"{source.scope}", got {view.rank} of {view.dtype} in "{view.scope}"'
            )  # C2
        strides = [stride for stride, ranged in zip(source.strides, self.is_range.get_values(), strict=True) if ranged]
        if list(view.strides) != strides or view.offset.terms:
            raise VerifyException(
                f"'tir.match_buffer' op expected strides {_list(strides)} and offset 0, got {_list(view.strides)} and "
                f"{view.offset}"
            )  # C3
        VERIFIERS.of(self.name)(self)  # C4


def _list(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


class DeclarationOp(RegionOp, ABC):
    """Base class of `tir.reads` and `tir.writes`."""

    assembly_format = "custom<BufferRegion>($buffer, $lower, $upper, $is_range) attr-dict"
    custom_directives = (BufferRegion,)

    def __init__(self, buffer: SSAValue | Operation, axes: Sequence[RegionAxis]):
        super().__init__(operands=_operands(buffer, axes), properties={"is_range": ranges(axes)})

    def verify_(self) -> None:
        self.verify_region()


@op_definition
class ReadsOp(DeclarationOp):
    """Declares that its block reads a region: `tir.reads %A[%vi, %lo to %hi]`.

    A block with such declarations reads the declared regions and nothing else.

    C1: there is one point or range per dimension of the buffer.
    C2: it stands directly in a `tir.block`.
    """

    name = "tir.reads"

    traits = traits_def(Declares(), HasParent(BlockOp))  # C2


@op_definition
class WritesOp(DeclarationOp):
    """Declares that its block writes a region: `tir.writes %A[%vi, %lo to %hi]`.

    A block with such declarations writes the declared regions and nothing else.

    C1: there is one point or range per dimension of the buffer.
    C2: it stands directly in a `tir.block`.
    """

    name = "tir.writes"

    traits = traits_def(Declares(), HasParent(BlockOp))  # C2
