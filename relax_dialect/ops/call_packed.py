"""Calls of packed functions: functions of the run-time registry, which the compiler cannot look into."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from relax_dialect.ops.call_tir import DestinationPassing, parse_tensor_types
from relax_dialect.ops.syntax import (
    parse_arguments,
    parse_optional_arguments,
    parse_optional_result_types,
    print_arguments,
    print_result_types,
)
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import ObjectType, TensorType
from relax_dialect.traits import Checked, EffectsOfImpurity, MayBeImpure


def _symbol(name: str | StringAttr) -> StringAttr:
    return StringAttr(name) if isinstance(name, str) else name


@irdl_op_definition
class CallPackedOp(IRDLOperation, MayBeImpure):
    """Calls a packed function, which may do anything, also change the tensors that it is given.

    ```mlir
    relax.call_packed "custom_print"(%x)
    %0 = relax.call_packed "custom_add"(%x, %y) : !relax.tensor<[m, k], f32>
    ```

    The function is looked up by name when the module is loaded. Without a result type the result is dropped; with
    one, the result is checked to be of it at run time.
    """

    name = "relax.call_packed"

    symbol = prop_def(StringAttr)
    arguments = var_operand_def(StructInfo)
    result = opt_result_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    def __init__(self, symbol: str | StringAttr, arguments: Sequence[SSAValue], result_type: StructInfo | None = None):
        super().__init__(operands=[arguments], properties={"symbol": _symbol(symbol)}, result_types=[result_type])

    @property
    def impurity(self) -> str:
        return f'calls the packed function "{self.symbol.data}", which may have any effect'

    @classmethod
    def parse(cls, parser: Parser) -> CallPackedOp:
        symbol = parser.parse_str_literal(" as the name of a packed function")
        arguments = parse_arguments(parser)
        attributes = parser.parse_optional_attr_dict()
        types = parse_optional_result_types(parser) or []
        return cls.create(
            operands=arguments, properties={"symbol": StringAttr(symbol)}, attributes=attributes, result_types=types
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.symbol.data)
        print_arguments(printer, self.arguments)
        printer.print_op_attributes(self.attributes)
        print_result_types(printer, self.result_types)


@irdl_op_definition
class CallPurePackedOp(IRDLOperation):
    """Calls a packed function of which the program promises that it is pure.

    ```mlir
    %0 = relax.call_pure_packed "my_shape"(%s) : !relax.shape<*>
    ```

    The result is checked to be of the declared type at run time.
    """

    name = "relax.call_pure_packed"

    symbol = prop_def(StringAttr)
    arguments = var_operand_def(StructInfo)
    result = result_def(StructInfo)

    traits = traits_def(Checked())

    def __init__(self, symbol: str | StringAttr, arguments: Sequence[SSAValue], result_type: StructInfo | None = None):
        super().__init__(
            operands=[arguments], properties={"symbol": _symbol(symbol)}, result_types=[result_type or ObjectType()]
        )

    @classmethod
    def parse(cls, parser: Parser) -> CallPurePackedOp:
        symbol = parser.parse_str_literal(" as the name of a packed function")
        arguments = parse_arguments(parser)
        attributes = parser.parse_optional_attr_dict()
        types = parse_optional_result_types(parser) or [ObjectType()]
        return cls.create(
            operands=arguments, properties={"symbol": StringAttr(symbol)}, attributes=attributes, result_types=types
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.symbol.data)
        print_arguments(printer, self.arguments)
        printer.print_op_attributes(self.attributes)
        if self.result.type != ObjectType():
            print_result_types(printer, self.result_types)


@irdl_op_definition
class CallDPSPackedOp(DestinationPassing):
    """Calls a packed function in destination passing style: it writes tensors that are made for it, and does nothing
    else.

    ```mlir
    %0 = relax.call_dps_packed "custom_tile"(%x) : !relax.tensor<[m, 2 * k], f32>
    %1 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<[_], f32>
    ```

    C1: dtype and dimensions of each result are known, or its shape is an operand.
    C2: there are no shape operands, or one for each result.
    """

    name = "relax.call_dps_packed"

    symbol = prop_def(StringAttr)

    traits = traits_def(Checked())

    def __init__(
        self,
        symbol: str | StringAttr,
        arguments: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        *,
        shapes: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[arguments, shapes], properties={"symbol": _symbol(symbol)}, result_types=[result_types]
        )

    @classmethod
    def parse(cls, parser: Parser) -> CallDPSPackedOp:
        symbol = parser.parse_str_literal(" as the name of a packed function")
        arguments = parse_arguments(parser)
        shapes = parse_optional_arguments(parser, "shape")
        attributes = parser.parse_optional_attr_dict()
        op = cls(symbol, arguments, parse_tensor_types(parser), shapes=shapes)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.symbol.data)
        self.print_arguments(printer)
        printer.print_op_attributes(self.attributes)
        print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        self.verify_results()  # C1, C2
