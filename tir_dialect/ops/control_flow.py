"""Structured control flow: conditionals and while loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    NoTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from tir_dialect.new_ops import as_value, fill_op
from tir_dialect.ops.assembly_format import op_definition, parse_defined_operand

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
