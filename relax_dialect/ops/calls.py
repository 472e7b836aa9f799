"""Calls of relax functions and closures, and the ops that make function values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import Inference
from relax_dialect.interfaces import InfersResultTypes, verify_result
from relax_dialect.ops.callees import callee_type, find_relax_function, function_value_type
from relax_dialect.ops.syntax import (
    parse_arguments,
    parse_optional_result_types,
    parse_result_types,
    print_arguments,
    print_result_types,
)
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import StructInfo, as_struct_infos, parse_struct_info
from relax_dialect.struct_info.calls import CallOutcome, partial_application
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.types import ObjectType
from relax_dialect.traits import Checked, EffectsOfImpurity, MayBeImpure
from tir_dialect.ops.syntax import parse_defined_operand


@irdl_op_definition
class CallOp(IRDLOperation, MayBeImpure):
    """Calls a function of the module. The symbols of the callee are bound from the arguments.

    ```mlir
    %0 = relax.call @f(%x, %y) : !relax.tensor<[n, m], f32>
    %1 = relax.call @g(%x) impure : !relax.tuple<>
    %2 = relax.call @f(%x, %x)
    ```

    A result type that is not written is what the callee returns for these arguments. What cannot be proved about the
    arguments is checked when the callee is entered.

    C1: the callee is a function of the module.
    C2: the arguments can be of the callee's parameter types.
    C3: the result type says no more than what the callee returns for these arguments.
    C4: the call of an impure function says `impure`.
    """

    name = "relax.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    impure = opt_prop_def(UnitAttr)
    arguments = var_operand_def(StructInfo)
    result = result_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    def __init__(
        self, callee: str | SymbolRefAttr, arguments: Sequence[SSAValue], result_type: StructInfo, *, pure: bool = True
    ):
        super().__init__(
            operands=[arguments],
            properties={
                "callee": SymbolRefAttr(callee) if isinstance(callee, str) else callee,
                "impure": None if pure else UnitAttr(),
            },
            result_types=[result_type],
        )

    @property
    def impurity(self) -> str | None:
        return None if self.impure is None else f"calls @{self.callee.string_value()}, which is impure"

    def outcome(self) -> CallOutcome | None:
        """What the callee returns, and what has to be checked; `None` while the op is in no module."""
        callee = find_relax_function(self, self.callee)  # C1
        if callee is None:
            return None
        if not callee.function_type.pure and self.impure is None:
            raise VerifyException(
                f"'relax.call' op calls @{callee.sym_name.data}, which is impure; write 'impure'"
            )  # C4
        inference = Inference(type(self), self.operand_types, self.properties, prover_at(self))
        return inference.call(callee.function_type, inference.operand_types)  # C2

    @classmethod
    def _derived(cls, parser: Parser, start: int, callee: str, arguments: Sequence[SSAValue]) -> StructInfo:
        """What the callee returns for these arguments, wherever in the text it stands."""
        if (func := callee_type(parser, callee, start)) is None:
            return ObjectType()
        inference = Inference(cls, [value.type for value in arguments], {})
        try:
            return inference.call(func, inference.operand_types).ret
        except VerifyException:
            return erase_symbols(func.ret, func.symbol_names)  # the verifier reports it, with all other errors

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        start = parser.pos
        callee = parser.parse_symbol_name().data
        arguments = parse_arguments(parser)
        pure = not parser.parse_optional_keyword("impure")
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        types = parse_optional_result_types(parser)
        if types is None:
            types = [cls._derived(parser, start, callee, arguments)]
        if len(types) != 1:
            parser.raise_error(f"expected one result type, got {len(types)}", position, parser.pos)
        op = cls(callee, arguments, types[0], pure=pure)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.string_value())
        print_arguments(printer, self.arguments)
        if self.impure is not None:
            printer.print_string(" impure")
        printer.print_op_attributes(self.attributes)
        print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        outcome = self.outcome()
        if outcome is not None:
            verify_result(self, 0, outcome.ret)  # C3


@irdl_op_definition
class CallClosureOp(InfersResultTypes, MayBeImpure):
    """Calls a function value: a closure, a function of the module, or a packed function.

    ```mlir
    %0 = relax.call_closure %f(%x)
    ```

    What cannot be proved about the arguments is checked when the callee is entered.

    C1: the callee is a function.
    C2: the arguments can be of its parameter types.
    """

    name = "relax.call_closure"

    callee = operand_def(FuncType)
    arguments = var_operand_def(StructInfo)
    result = result_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    def __init__(self, callee: SSAValue, arguments: Sequence[SSAValue], result_type: StructInfo | None = None):
        """Without a result type it is inferred; `VerifyException` if the arguments are wrong."""
        types = [value.type for value in (callee, *arguments)]
        results = self.infer_result_types(types) if result_type is None else (result_type,)
        super().__init__(operands=[callee, arguments], result_types=results)

    @property
    def impurity(self) -> str | None:
        func = self.callee.type
        return "calls an impure function value" if isinstance(func, FuncType) and not func.pure else None

    @classmethod
    def infer(cls, inference: Inference) -> tuple[StructInfo]:
        func, *arguments = inference.operand_types
        if not isinstance(func, FuncType):
            inference.fail(f"expected a function as callee, got {func}")  # C1
        return (inference.call(func, arguments).ret,)  # C2

    @classmethod
    def parse(cls, parser: Parser) -> CallClosureOp:
        position = parser.pos
        callee = parse_defined_operand(parser)
        return cls.parse_inferred(parser, (callee, *parse_arguments(parser)), position=position)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.callee)
        print_arguments(printer, self.arguments)
        self.print_inferred(printer)


@irdl_op_definition
class MakeClosureOp(IRDLOperation):
    """A function of the module as a value, its first parameters bound to the captured values.

    ```mlir
    %f = relax.make_closure @f(%x) : !relax.func<(!relax.object) -> !relax.object, pure>
    %g = relax.make_closure @tir_exp() :
        !relax.func<[n](!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) -> !relax.tuple<>, impure>
    ```

    A type that is not written is what is left of the function's. A PrimFunc is a function of its buffers and scalars
    that writes some of the tensors and returns an empty tuple; the symbols that no buffer determines are its last
    parameters.

    C1: the callee is a relax function or PrimFunc of the module, and has the captured and the remaining parameters.
    C2: the captured values can be of the types of the first parameters.
    C3: the result type says no more than what is left of the callee's type.
    """

    name = "relax.make_closure"

    callee = prop_def(FlatSymbolRefAttrConstr)
    captured = var_operand_def(StructInfo)
    result = result_def(FuncType)

    traits = traits_def(Checked())

    def __init__(self, callee: str | SymbolRefAttr, captured: Sequence[SSAValue], result_type: FuncType):
        super().__init__(
            operands=[captured],
            properties={"callee": SymbolRefAttr(callee) if isinstance(callee, str) else callee},
            result_types=[result_type],
        )

    @classmethod
    def _derived(cls, parser: Parser, start: int, callee: str, captured: Sequence[SSAValue]) -> FuncType:
        """What is left of the function, wherever in the text it stands."""
        if (func := callee_type(parser, callee, start)) is None:
            return FuncType(None, pure=True)
        if len(func.params) < len(captured):
            return FuncType(None, pure=func.pure)  # the verifier reports it, with all other errors
        try:
            return partial_application(func, as_struct_infos(value.type for value in captured))
        except Mismatch:
            return FuncType(None, erase_symbols(func.ret, func.symbol_names), pure=func.pure)  # likewise

    @classmethod
    def parse(cls, parser: Parser) -> MakeClosureOp:
        start = parser.pos
        callee = parser.parse_symbol_name().data
        captured = parse_arguments(parser)
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":"):
            position = parser.pos
            info = parse_struct_info(parser)
            if not isinstance(info, FuncType):
                parser.raise_error(f"expected a function type, got {info}", position, parser.pos)
        else:
            info = cls._derived(parser, start, callee, captured)
        op = cls(callee, captured, info)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.string_value())
        print_arguments(printer, self.captured)
        printer.print_op_attributes(self.attributes)
        print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        if (func := function_value_type(self, self.callee)) is None:
            return
        if len(func.params) < len(self.captured):
            raise VerifyException(
                f"'relax.make_closure' op captures {len(self.captured)} values, but @{self.callee.string_value()} has "
                f"{len(func.params)} parameters"
            )  # C1
        try:
            rest = partial_application(func, as_struct_infos(self.captured.types), prover_at(self))
        except Mismatch as mismatch:
            raise VerifyException(f"'relax.make_closure' op captured value {mismatch}") from mismatch  # C2
        verify_result(self, 0, rest)  # C3


@irdl_op_definition
class ExternFuncOp(IRDLOperation):
    """A packed function as a value, looked up by name when the module is loaded.

    ```mlir
    %f = relax.extern_func "my.function" : !relax.func<* -> !relax.object, impure>
    ```

    C1: the type is opaque: nothing is known of the parameters of a packed function.
    """

    name = "relax.extern_func"

    symbol = prop_def(StringAttr)
    result = result_def(FuncType)

    traits = traits_def(Pure())

    def __init__(self, symbol: str | StringAttr, result_type: FuncType | None = None):
        super().__init__(
            properties={"symbol": StringAttr(symbol) if isinstance(symbol, str) else symbol},
            result_types=[FuncType(None) if result_type is None else result_type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ExternFuncOp:
        symbol = parser.parse_str_literal(" as the name of a packed function")
        attributes = parser.parse_optional_attr_dict()
        types = parse_result_types(parser)
        return cls.create(properties={"symbol": StringAttr(symbol)}, attributes=attributes, result_types=types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.symbol.data)
        printer.print_op_attributes(self.attributes)
        print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        info = self.result.type
        if not info.opaque:
            raise VerifyException(f"'relax.extern_func' op expected an opaque function type, got {info}")  # C1
