"""Calls of relax functions and closures, and the ops that make function values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import Inference, InfersResultTypes, verify_result
from relax_dialect.ops.callees import callee_type, find_relax_function, function_value_type
from relax_dialect.ops.directives import InferredTypes, PackedName, ResultTypes, symbol_of, values_of
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.match import CallOutcome, Mismatch, partial_application
from relax_dialect.struct_info.symbols import erase_symbols
from relax_dialect.struct_info.types import FuncType, ObjectType, StructInfo, as_struct_infos, parse_struct_info
from relax_dialect.syntax import (
    parse_optional_result_types,
    print_result_types,
)
from relax_dialect.traits import Checked, EffectsOfImpurity, MayBeImpure
from tir_dialect.ops.assembly_format import Directive, State, Symbol, op_definition


class CallResult(Directive):
    """The result type: `: T`. If it is not written, it is what the callee returns, wherever in the text that stands."""

    result: TypeDirective
    callee: AttributeVariable
    arguments: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        types = parse_optional_result_types(parser)
        if types is None:
            types = [self._derived(parser, state)]
        if len(types) != 1:
            parser.raise_error(f"expected one result type, got {len(types)}", position, parser.pos)
        self.result.set(state, types)

    def _derived(self, parser: Parser, state: ParsingState) -> StructInfo:
        func = callee_type(parser, symbol_of(self.callee, state), State.of(state).start)
        if func is None:
            return ObjectType()
        inference = Inference(state.op_type, [value.type for value in values_of(self.arguments, state)], {})
        try:
            return inference.call(func, inference.operand_types).ret
        except VerifyException:
            return erase_symbols(func.ret, func.symbol_names)  # the verifier reports it, with all other errors

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_result_types(printer, self.result.get(op))


@op_definition
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

    assembly_format = (
        "custom<Symbol>($callee) `(` $arguments `)` (`impure` $impure^)? attr-dict "
        "custom<CallResult>(type($result), ref($callee), ref($arguments))"
    )
    custom_directives = (Symbol, CallResult)

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

    def verify_(self) -> None:
        outcome = self.outcome()
        if outcome is not None:
            verify_result(self, 0, outcome.ret)  # C3


@op_definition
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

    assembly_format = "$callee `(` $arguments `)` attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (InferredTypes,)

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


class ClosureType(Directive):
    """The type of a function value: `: T`. If it is not written, it is what is left of the function's."""

    result: TypeDirective
    callee: AttributeVariable
    captured: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation(":") is None:
            self.result.set(state, (self._derived(parser, state),))
            return
        position = parser.pos
        info = parse_struct_info(parser)
        if not isinstance(info, FuncType):
            parser.raise_error(f"expected a function type, got {info}", position, parser.pos)
        self.result.set(state, (info,))

    def _derived(self, parser: Parser, state: ParsingState) -> FuncType:
        captured = values_of(self.captured, state)
        func = callee_type(parser, symbol_of(self.callee, state), State.of(state).start)
        if func is None:
            return FuncType(None, pure=True)
        if len(func.params) < len(captured):
            return FuncType(None, pure=func.pure)  # the verifier reports it, with all other errors
        try:
            return partial_application(func, as_struct_infos(value.type for value in captured))
        except Mismatch:
            return FuncType(None, erase_symbols(func.ret, func.symbol_names), pure=func.pure)  # likewise

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_result_types(printer, self.result.get(op))


@op_definition
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

    assembly_format = (
        "custom<Symbol>($callee) `(` $captured `)` attr-dict "
        "custom<ClosureType>(type($result), ref($callee), ref($captured))"
    )
    custom_directives = (Symbol, ClosureType)

    def __init__(self, callee: str | SymbolRefAttr, captured: Sequence[SSAValue], result_type: FuncType):
        super().__init__(
            operands=[captured],
            properties={"callee": SymbolRefAttr(callee) if isinstance(callee, str) else callee},
            result_types=[result_type],
        )

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


@op_definition
class ExternFuncOp(IRDLOperation):
    """A packed function as a value, looked up by name when the module is loaded.

    ```mlir
    %f = relax.extern_func "my.function" : !relax.func<* -> !relax.object, impure>
    ```

    C1: the type is opaque: nothing is known about the parameters of a packed function.
    """

    name = "relax.extern_func"

    symbol = prop_def(StringAttr)
    result = result_def(FuncType)

    traits = traits_def(Pure())

    assembly_format = "custom<PackedName>($symbol) attr-dict custom<ResultTypes>(type($result))"
    custom_directives = (PackedName, ResultTypes)

    def __init__(self, symbol: str | StringAttr, result_type: FuncType | None = None):
        super().__init__(
            properties={"symbol": StringAttr(symbol) if isinstance(symbol, str) else symbol},
            result_types=[FuncType(None) if result_type is None else result_type],
        )

    def verify_(self) -> None:
        info = self.result.type
        if not info.opaque:
            raise VerifyException(f"'relax.extern_func' op expected an opaque function type, got {info}")  # C1
