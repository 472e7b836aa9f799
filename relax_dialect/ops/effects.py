"""Ops that are executed for their effect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, traits_def, var_operand_def
from xdsl.irdl.declarative_assembly_format import ParsingState, PrintingState, VariadicOperandVariable
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.control_flow import CONDITION_TYPES, is_condition
from relax_dialect.ops.directives import Message
from relax_dialect.struct_info.types import StructInfo
from relax_dialect.syntax import print_arguments
from relax_dialect.traits import EffectsOfImpurity, MayBeImpure
from tir_dialect.ops.assembly_format import Directive, State, Text, op_definition, parse_defined_operands


def _verify_format(op: Operation, format: str, count: int) -> None:
    if format.count("{}") != count:
        raise VerifyException(
            f"'{op.name}' op expected {format.count('{}')} values for the marks in its format, got {count}"
        )


class FormatText(Text):
    """A format: `"x = {}"`."""

    CONTEXT = " as the format"


class FormatValues(Directive):
    """The values for the marks of a format: `(%x, %y)`. It may be left out if there are none."""

    values: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation("(") is not None:
            State.of(state).values[self.values.index] = parse_defined_operands(parser)
            parser.parse_punctuation(")")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_arguments(printer, self.values.get(op))


@op_definition
class AssertOp(IRDLOperation, MayBeImpure):
    """Raises `ValueError` with a message unless a condition holds.

    ```mlir
    relax.assert %c, "got {} rows"(%n)
    ```

    Each `{}` of the format stands for a value.

    C1: the condition is a truth value: a scalar tensor of `i1` or a prim of `i1`.
    C2: there are as many values as marks.
    """

    name = "relax.assert"

    condition = operand_def(StructInfo)
    format = prop_def(StringAttr)
    values = var_operand_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    assembly_format = "$condition `,` custom<Message>($format) custom<FormatValues>($values) attr-dict"
    custom_directives = (Message, FormatValues)

    def __init__(self, condition: SSAValue | Operation, format: str, values: Sequence[SSAValue] = ()):
        super().__init__(operands=[condition, values], properties={"format": StringAttr(format)})

    @property
    def impurity(self) -> str:
        return "may end the program with an error"

    def verify_(self) -> None:
        if not is_condition(self.condition.type):
            raise VerifyException(
                f"'relax.assert' op condition expected {CONDITION_TYPES}, got {self.condition.type}"
            )  # C1
        _verify_format(self, self.format.data, len(self.values))  # C2


@op_definition
class PrintOp(IRDLOperation, MayBeImpure):
    """Writes values to the standard output, as text and a newline.

    ```mlir
    relax.print "x = {}"(%x)
    ```

    Each `{}` of the format stands for a value.

    C1: there are as many values as marks.
    """

    name = "relax.print"

    format = prop_def(StringAttr)
    values = var_operand_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    assembly_format = "custom<FormatText>($format) custom<FormatValues>($values) attr-dict"
    custom_directives = (FormatText, FormatValues)

    def __init__(self, format: str, values: Sequence[SSAValue] = ()):
        super().__init__(operands=[values], properties={"format": StringAttr(format)})

    @property
    def impurity(self) -> str:
        return "writes to the standard output"

    def verify_(self) -> None:
        _verify_format(self, self.format.data, len(self.values))  # C1
