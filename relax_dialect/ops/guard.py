"""`relax.guard`: a run-time check of dimensions that a value depends on."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.struct_info.types import TensorType
from relax_dialect.traits import AliasesOperand, Checked
from tir_dialect.attributes import DimAttr
from tir_dialect.ops.assembly_format import Directive, op_definition
from tir_dialect.ops.directives import DimExpr, SameType, Text


class Relation(StrEnum):
    """What a guard demands of two dimensions."""

    EQUAL = "equal"
    BROADCAST = "broadcast"
    AT_MOST = "at_most"


@irdl_attr_definition
class RelationAttr(EnumAttribute[Relation], SpacedOpaqueSyntaxAttribute):
    """`#relax<relation equal>`."""

    name = "relax.relation"


class RelationWord(Directive):
    """The relation: `equal`."""

    relation: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.relation.set(state, RelationAttr(parser.parse_str_enum(Relation)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(cast(RelationAttr, self.relation.get(op)).data.value)


@op_definition
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

    assembly_format = (
        "$value `,` custom<RelationWord>($relation) custom<DimExpr>($lhs) `,` custom<DimExpr>($rhs) `,` "
        "custom<Text>($message) attr-dict custom<SameType>(type($result), ref($value))"
    )
    custom_directives = (RelationWord, DimExpr, Text, SameType)

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


_RELATIONS = {
    DimRelation.EQUAL: Relation.EQUAL,
    DimRelation.BROADCAST: Relation.BROADCAST,
    DimRelation.AT_MOST: Relation.AT_MOST,
}
