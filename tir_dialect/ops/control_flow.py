"""Structured control flow: for loops, while loops and conditionals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import UNKNOWN_LOC, DictionaryAttr, IndexType, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, NoTerminator, Pure, RecursivelySpeculatable, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tir_dialect.fast_ops import as_value, fill_op
from tir_dialect.ops.assembly_format import (
    annotations_attr,
    op_definition,
    parse_annotations,
    parse_defined_operand,
    parse_index,
    print_annotations,
)
from tir_dialect.types import LoopKind, LoopKindAttr, as_name_hint

_INDEX = IndexType()
_KEYWORDS = ("parallel", "vectorized", "unrolled", "thread_binding")
_KINDS = {kind: LoopKindAttr(kind) for kind in LoopKind}


class _Bound(NamedTuple):
    lower: SSAValue | None
    upper: SSAValue


@irdl_op_definition
class ForOp(IRDLOperation):
    """Runs its body for each `i` in the half-open range `lower <= i < upper`.

    ```mlir
    tir.for (%i, %j) in (%m, %lo to %hi) { ... }
    tir.for (%i, %j) in (64, 1 to 8) { ... }
    tir.for parallel (%i) in (%n) annotations {"pragma" = 1 : i64} { ... }
    tir.for thread_binding "threadIdx.x" (%i) in (%n) { ... }
    ```

    Each op has one induction variable, which starts at 0 if there is no `lower`. Several variables in the text stand
    for a perfect nest of loops of the same kind, outermost first. A bound that is a number is a constant before it.

    C1: the region argument is an `index`, the induction variable.
    C2: a `thread_binding` loop has a tag; no other loop has one.
    """

    name = "tir.for"

    lower = opt_operand_def(IndexType)
    upper = operand_def(IndexType)
    kind = prop_def(LoopKindAttr, default_value=LoopKindAttr(LoopKind.SERIAL))
    thread_tag = opt_prop_def(StringAttr)
    annotations = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        upper: SSAValue | Operation,
        body: Region | None = None,
        *,
        lower: SSAValue | Operation | None = None,
        kind: LoopKind = LoopKind.SERIAL,
        thread_tag: str | None = None,
        annotations: Mapping[str, Attribute] | None = None,
        name_hint: str | None = None,
    ):
        """Without a body, an empty one is made; `name_hint` is for its induction variable."""
        if body is None:
            body = Region(Block(arg_types=[_INDEX]))
            body.block.args[0].name_hint = as_name_hint(name_hint)
        properties: dict[str, Attribute] = {"kind": _KINDS[kind]}
        if thread_tag is not None:
            properties["thread_tag"] = StringAttr(thread_tag)
        if (notes := annotations_attr(annotations)) is not None:
            properties["annotations"] = notes
        bounds = (upper,) if lower is None else (lower, upper)
        fill_op(self, tuple(map(as_value, bounds)), properties=properties, regions=(body,))

    @property
    def induction_var(self) -> BlockArgument:
        """The induction variable."""
        return self.body.block.args[0]

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        keyword = parser.parse_optional_keyword_in(_KEYWORDS)
        kind = LoopKind.SERIAL if keyword is None else LoopKind(keyword)
        tag = parser.parse_str_literal() if kind is LoopKind.THREAD_BINDING else None
        start = parser.pos
        variables = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(IndexType())
        )
        parser.parse_keyword("in")
        bounds = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_bound(parser))
        if len(variables) != len(bounds) or not bounds:
            parser.raise_error(
                f"'tir.for' expected one bound for each of at least one variable, got {len(variables)} variables and "
                f"{len(bounds)} bounds",
                start,
                parser.pos,
            )
        annotations = parse_annotations(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(variables)
        # Loops around `body`, whose block has all induction variables as arguments.
        block = body.block
        for bound in reversed(bounds[1:]):
            variable = block.args[-1]
            inner = Block(arg_types=[IndexType()])
            inner.args[0].name_hint = variable.name_hint
            inner.args[0].location = variable.location
            variable.replace_all_uses_with(inner.args[0])
            block.erase_arg(variable)
            for op in block.ops:
                op.detach()
                inner.add_op(op)
            block.add_op(ForOp(bound.upper, Region(inner), lower=bound.lower, kind=kind, thread_tag=tag))
        loop = ForOp(bounds[0].upper, body, lower=bounds[0].lower, kind=kind, thread_tag=tag)
        if annotations is not None:
            loop.annotations = annotations
        loop.attributes |= {} if attributes is None else attributes.data
        return loop

    def print(self, printer: Printer) -> None:
        nest = list(_printed_nest(self, printer.print_debuginfo))
        if self.kind.data is not LoopKind.SERIAL:
            printer.print_string(f" {self.kind.data.value}")
        if self.thread_tag is not None:
            printer.print_string(" ")
            printer.print_string_literal(self.thread_tag.data)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(nest, lambda loop: printer.print_block_argument(loop.induction_var, print_type=False))
        printer.print_string(" in ")
        with printer.in_parens():
            printer.print_list(nest, lambda loop: _print_bound(printer, loop))
        print_annotations(printer, self.annotations)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(nest[-1].body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        if [type for type in self.body.block.arg_types] != [IndexType()]:
            raise VerifyException("'tir.for' op expected one region argument of type index")  # C1
        if (self.thread_tag is not None) != (self.kind.data is LoopKind.THREAD_BINDING):
            raise VerifyException(
                f"'tir.for' op of kind {self.kind.data.value} expected "
                f"{'no tag' if self.thread_tag is not None else 'a tag'}"
            )  # C2


def _parse_bound(parser: Parser) -> _Bound:
    value = parse_index(parser)
    if parser.parse_optional_keyword("to") is None:
        return _Bound(None, value)
    return _Bound(value, parse_index(parser))


def insert_numbers(body: Region) -> None:
    """Puts the constants that the text had as numbers before the ops that use them, and before the loops around these
    if they are a perfect nest.
    """
    for op in body.walk():
        nest: Operation | None = op
        while nest is not None and op.parent is not None:
            for operand in nest.operands:
                if isinstance(operand.owner, ConstantOp) and operand.owner.parent is None:
                    operand.owner.location = op.location
                    op.parent.insert_op_before(operand.owner, op)
            nest = nest.body.block.first_op if isinstance(nest, ForOp) else None


def _print_bound(printer: Printer, loop: ForOp) -> None:
    if loop.lower is not None:
        printer.print_ssa_value(loop.lower)
        printer.print_string(" to ")
    printer.print_ssa_value(loop.upper)


def _printed_nest(loop: ForOp, with_locations: bool) -> Iterator[ForOp]:
    """The perfect nest that one line of text can stand for."""
    yield loop
    if loop.annotations is not None or loop.attributes or loop.thread_tag is not None:
        return
    outer = {loop.induction_var}
    while True:
        block = loop.body.block
        inner = block.first_op
        if not isinstance(inner, ForOp) or inner is not block.last_op or inner.kind != loop.kind:
            return
        if inner.annotations is not None or inner.attributes or not outer.isdisjoint(inner.operands):
            return
        if with_locations and inner.location != UNKNOWN_LOC:
            return
        yield inner
        outer.add(inner.induction_var)
        loop = inner


I1 = IntegerType(1)


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs one of two regions, and returns what that region yields.

    ```mlir
    tir.if %inside { ... }
    %v = tir.if %inside -> (f32) {
      %x = tir.load %X[%i]
      tir.yield %x
    } else {
      tir.yield %zero
    }
    ```

    Only the chosen region is executed, so a `tir.if` can guard an access. An absent `else` is an empty region.

    C1: both regions end in a `tir.yield` of values of the result types; without results, neither has a `tir.yield`.
    """

    name = "tir.if"

    condition = operand_def(I1)
    outputs = var_result_def()
    then_body = region_def("single_block")
    else_body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        condition: SSAValue | Operation,
        then_body: Region | None = None,
        else_body: Region | None = None,
        result_types: Sequence[Attribute] = (),
    ):
        """A region that is not given is made, empty."""
        regions = [Region(Block()) if body is None else body for body in (then_body, else_body)]
        fill_op(self, (as_value(condition),), result_types, regions=regions)

    @property
    def has_else(self) -> bool:
        """Whether the second region has any ops."""
        return self.else_body.block.first_op is not None

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parse_defined_operand(parser)
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->") is not None:
            results.extend(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        then_body = parser.parse_region(())
        else_body = parser.parse_region(()) if parser.parse_optional_keyword("else") is not None else None
        op = cls(condition, then_body, else_body, results)
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        if self.outputs:
            printer.print_string(" -> ")
            with printer.in_parens():
                printer.print_list(self.outputs.types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.then_body, print_empty_block=False)
        if self.has_else:
            printer.print_string(" else ")
            printer.print_region(self.else_body, print_empty_block=False)

    def verify_(self) -> None:
        expected = tuple(self.outputs.types)
        for name, body in (("then", self.then_body), ("else", self.else_body)):
            last = body.block.last_op
            got = tuple(last.values.types) if isinstance(last, YieldOp) else ()
            if got != expected or (isinstance(last, YieldOp) and not expected):
                raise VerifyException(
                    f"'tir.if' op {name} region expected to yield ({_join(expected)}), got ({_join(got)})"
                )  # C1


def _join(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


@op_definition
class YieldOp(IRDLOperation):
    """Ends a region of a `tir.if` that has results: `tir.yield %x`."""

    name = "tir.yield"

    values = var_operand_def()

    traits = traits_def(Pure(), IsTerminator(), HasParent(IfOp))

    assembly_format = "$values attr-dict"

    def __init__(self, *values: SSAValue | Operation):
        fill_op(self, tuple(map(as_value, values)))


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Repeats the second region while the condition computed by the first one is true.

    ```mlir
    tir.while {
      %x = tir.load %X[%c0]
      %go = arith.cmpi slt, %x, %limit : i32
      tir.condition %go
    } do {
      ...
    }
    ```

    C1: the first region ends in `tir.condition`.
    """

    name = "tir.while"

    before = region_def("single_block")
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, before: Region | None = None, body: Region | None = None):
        """A region that is not given is made, empty."""
        super().__init__(regions=[Region(Block()) if region is None else region for region in (before, body)])

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        attributes = parser.parse_optional_attr_dict_with_keyword()
        before = parser.parse_region(())
        parser.parse_keyword("do")
        op = cls(before, parser.parse_region(()))
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.before, print_empty_block=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_empty_block=False)

    def verify_(self) -> None:
        if not isinstance(self.before.block.last_op, ConditionOp):
            raise VerifyException("'tir.while' op first region expected to end in 'tir.condition'")  # C1


@op_definition
class ConditionOp(IRDLOperation):
    """Ends the first region of a `tir.while`: `tir.condition %go`."""

    name = "tir.condition"

    condition = operand_def(I1)

    traits = traits_def(Pure(), IsTerminator(), HasParent(WhileOp))

    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue | Operation):
        super().__init__(operands=[condition])
