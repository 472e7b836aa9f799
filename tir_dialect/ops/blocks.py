"""Blocks: the units of computation that schedules move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tir_dialect.attributes import as_name_hint
from tir_dialect.ops.annotations import annotations_attr, parse_annotations, print_annotations
from tir_dialect.ops.assembly_format import parse_defined_operand
from tir_dialect.ops.effects import VERIFIERS
from tir_dialect.types import IteratorKind, IteratorKindAttr

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
    `tir.writes` may declare regions that cannot be inferred.

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
    kind = IteratorKind(parser.parse_keyword_in(_KINDS, " as iterator kind"))
    binding = parse_defined_operand(parser)
    parser.parse_keyword("in")
    return argument, kind, binding, parse_defined_operand(parser)


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
