"""Calls of packed functions whose arguments lie in memory already."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.effects import UnknownEffects
from tir_dialect.ops.syntax import parse_defined_operand


@irdl_op_definition
class CallBoxedOp(IRDLOperation):
    """Calls a function of the tvm-ffi registry with boxed values.

    ```mlir
    tir.call_boxed "my_sort"(%values, 2)
    ```

    At the address `%values` lie so many values, each a `TVMFFIAny` of 16 bytes, and behind them room for one more, the
    result. If that is an object, the program owns it. The function gets a tensor object for the address of a
    `DLTensor`, and must not keep it. An error of the function is one of the program.

    C1: the number of values is not negative.
    """

    name = "tir.call_boxed"

    function = prop_def(StringAttr)
    values = operand_def(i64)
    count_attr = prop_def(IntegerAttr, prop_name="count")

    traits = traits_def(UnknownEffects())

    def __init__(self, function: str, values: SSAValue | Operation, count: int):
        properties = {"function": StringAttr(function), "count": IntegerAttr(count, i64)}
        super().__init__(operands=[values], properties=properties)

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.count_attr.value.data

    @classmethod
    def parse(cls, parser: Parser) -> CallBoxedOp:
        function = parser.parse_str_literal()
        with parser.in_parens():
            values = parse_defined_operand(parser)
            parser.parse_punctuation(",")
            op = cls(function, values, parser.parse_integer())
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.function.data)
        with printer.in_parens():
            printer.print_ssa_value(self.values)
            printer.print_string(f", {self.count}")
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if self.count < 0:
            raise VerifyException(f"'tir.call_boxed' op expected a number of values, got {self.count}")  # C1
