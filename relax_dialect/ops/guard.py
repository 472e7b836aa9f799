"""`relax.guard`: a run-time check of dimensions that a value depends on."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.struct_info.types import TensorType
from relax_dialect.traits import AliasesOperand, Checked
from tir_dialect.attributes import DimAttr, parse_dim_expr, print_dim
from tir_dialect.ops.syntax import parse_defined_operand


class Relation(StrEnum):
    """What a guard demands of two dimensions."""

    EQUAL = "equal"
    BROADCAST = "broadcast"
    AT_MOST = "at_most"


@irdl_attr_definition
class RelationAttr(EnumAttribute[Relation], SpacedOpaqueSyntaxAttribute):
    """`#relax<relation equal>`."""

    name = "relax.relation"


@irdl_op_definition
class GuardOp(IRDLOperation):
    """The value, after a condition on dimensions has been checked.

    ```mlir
    %y = relax.guard %x, equal n, m, "dimension 0 of operand #1"
    ```

    `equal`: both are the same; `broadcast`: or one of them is 1; `at_most`: the first is not greater. The check belongs
    to the uses of the result: it may be dropped with them, and never comes after them.

    C1: the result has the type of the value.
    """

    name = "relax.guard"

    value = operand_def(TensorType)
    relation = prop_def(RelationAttr)
    lhs = prop_def(DimAttr)
    rhs = prop_def(DimAttr)
    message = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Checked(), AliasesOperand())

    def __init__(self, value: SSAValue | Operation, relation: Relation, lhs: DimAttr, rhs: DimAttr, message: str):
        super().__init__(
            operands=[value],
            properties={
                "relation": RelationAttr(relation),
                "lhs": lhs,
                "rhs": rhs,
                "message": StringAttr(message),
            },
            result_types=[SSAValue.get(value).type],
        )

    @staticmethod
    def of(value: SSAValue, check: DimCheck) -> GuardOp:
        """The guard that makes a check that inference could not decide."""
        return GuardOp(value, _RELATIONS[check.relation], DimAttr(check.left), DimAttr(check.right), check.message)

    def makes(self, check: DimCheck) -> bool:
        """Whether this is the guard of a check."""
        return check == self.check

    @property
    def check(self) -> DimCheck:
        """What is checked."""
        relation = next(key for key, relation in _RELATIONS.items() if relation == self.relation.data)
        return DimCheck(relation, self.lhs.data, self.rhs.data, self.message.data)

    def verify_(self) -> None:
        if self.result.type != self.value.type:
            raise VerifyException(
                f"'relax.guard' op expected a result of type {self.value.type}, got {self.result.type}"
            )  # C1

    @classmethod
    def parse(cls, parser: Parser) -> GuardOp:
        value = parse_defined_operand(parser)
        parser.parse_punctuation(",")
        relation = parser.parse_str_enum(Relation)
        lhs = parse_dim_expr(parser)
        parser.parse_punctuation(",")
        rhs = parse_dim_expr(parser)
        parser.parse_punctuation(",")
        op = cls(value, relation, DimAttr(lhs), DimAttr(rhs), parser.parse_str_literal())
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(f", {self.relation.data.value} ")
        print_dim(printer, self.lhs.data)
        printer.print_string(", ")
        print_dim(printer, self.rhs.data)
        printer.print_string(", ")
        printer.print_string_literal(self.message.data)
        printer.print_op_attributes(self.attributes)


_RELATIONS = {
    DimRelation.EQUAL: Relation.EQUAL,
    DimRelation.BROADCAST: Relation.BROADCAST,
    DimRelation.AT_MOST: Relation.AT_MOST,
}
