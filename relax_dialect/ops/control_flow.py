"""Branches and loops as regions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
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
from xdsl.traits import IsTerminator, Pure, RecursivelySpeculatable, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.syntax import parse_optional_result_types, print_result_types
from relax_dialect.scope import prover_at, symbols_witnessed
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.join import join
from relax_dialect.struct_info.subtype import Verdict, is_subtype
from relax_dialect.struct_info.types import PrimType, TensorType
from relax_dialect.traits import ControlFlow, EndsInYield
from tir_dialect.ops.syntax import parse_defined_operand, parse_defined_operands

CONDITION_TYPES = "a scalar tensor of i1 or a prim of i1"


def is_condition(info: Attribute) -> bool:
    """Whether a value of this type may decide: a truth value, as a tensor of rank 0 or as a prim."""
    if isinstance(info, TensorType):
        return info.rank in (0, None) and info.dtype in (i1, None)
    return isinstance(info, PrimType) and info.dtype == i1


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """The values with which a region ends; none while it has no terminator."""
    terminator = region.blocks.first and region.block.last_op
    return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()


def visible_yields(region: Region) -> tuple[StructInfo, ...]:
    """The types with which a region ends, without the symbols that are bound in it."""
    bound = {name for op in region.block.ops for name in symbols_witnessed(op)}
    return tuple(erase_symbols(info, bound) for info in as_struct_infos(value.type for value in yielded(region)))


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs one of two regions and has the values with which that region ends.

    ```mlir
    %r = relax.if %c {
      %0 = relax.exp %x
      relax.yield %0
    } else {
      relax.yield %x
    }
    ```

    Result types that are not written are the joins of what the regions yield.

    C1: the condition is a truth value: a scalar tensor of `i1` or a prim of `i1`.
    C2: both regions yield as many values as there are results.
    C3: what a region yields is of the result's type.
    """

    name = "relax.if"

    condition = operand_def(StructInfo)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    res = var_result_def(StructInfo)

    traits = traits_def(ControlFlow(), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        condition: SSAValue | Operation,
        then_region: Region,
        else_region: Region,
        result_types: Sequence[StructInfo] | None = None,
    ):
        """Without result types they are the joins of what the regions yield."""
        if result_types is None:
            result_types = join_yields(then_region, else_region)
        super().__init__(operands=[condition], regions=[then_region, else_region], result_types=[result_types])

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parse_defined_operand(parser)
        then_region = parser.parse_region()
        parser.parse_keyword("else")
        else_region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        for region in (then_region, else_region):
            if len(region.blocks) != 1 or not isinstance(region.block.last_op, YieldOp):
                parser.raise_error("expected regions of one block that ends in 'relax.yield'")
        op = cls(condition, then_region, else_region, parse_optional_result_types(parser))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region)
        printer.print_string(" else ")
        printer.print_region(self.else_region)
        printer.print_op_attributes(self.attributes)
        if tuple(self.result_types) != join_yields(self.then_region, self.else_region):
            print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        if not is_condition(self.condition.type):
            got = self.condition.type
            raise VerifyException(f"'relax.if' op condition expected {CONDITION_TYPES}, got {got}")  # C1
        for region, label in ((self.then_region, "then"), (self.else_region, "else")):
            types = visible_yields(region)
            if len(types) != len(self.res):
                raise VerifyException(
                    f"'relax.if' op {label} region expected {len(self.res)} values as the op has results, "
                    f"got {len(types)}"
                )  # C2
            for index, (info, result) in enumerate(zip(types, self.result_types, strict=True)):
                if is_subtype(info, result, prover_at(self)) is not Verdict.YES:
                    raise VerifyException(
                        f"'relax.if' op {label} region value #{index} expected {result}, got {info}"
                    )  # C3


def join_yields(then_region: Region, else_region: Region) -> tuple[StructInfo, ...]:
    """The join of what two regions yield, value by value; nothing if they yield different numbers of values."""
    then_types, else_types = visible_yields(then_region), visible_yields(else_region)
    if len(then_types) != len(else_types):
        return ()
    return tuple(join(*pair) for pair in zip(then_types, else_types, strict=True))


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region of a branch or a loop with its values.

    ```mlir
    relax.yield %a, %b
    ```
    """

    name = "relax.yield"

    values = var_operand_def(StructInfo)

    traits = traits_def(IsTerminator(), ReturnLike(), Pure())

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        op = cls(*parse_defined_operands(parser))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        if self.values:
            printer.print_string(" ")
            printer.print_list(self.values, printer.print_operand)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and not (parent.has_trait(ControlFlow) or parent.has_trait(EndsInYield)):
            raise VerifyException(
                f"'relax.yield' op expected to end a region of a branch, loop or group, got '{parent.name}'"
            )
