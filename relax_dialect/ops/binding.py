"""Run-time checks that bind symbols or compare dimensions: `relax.match_cast`, `relax.check_args`, `relax.guard`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Operation, OpResult, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
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
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.ops.directives import InfoType, Names
from relax_dialect.scope import BindsResultSymbols, CheckedWitness, prover_at
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.types import (
    PrimType,
    StructInfo,
    TensorType,
    as_struct_infos,
    parse_struct_info,
    parse_symbol_declarations,
    print_symbol_declaration,
)
from relax_dialect.syntax import print_arguments
from relax_dialect.traits import AliasesOperand, Checked
from tir_dialect.ops.assembly_format import (
    DimExpr,
    Directive,
    Number,
    SameType,
    State,
    Text,
    op_definition,
    parse_defined_operand,
)
from tir_dialect.types import DimAttr, SymbolAttr, as_name_hint


class Binds(Directive):
    """The symbols that the op binds, if there are some, each with a witness: `binds [n, m in [1, 64]]`."""

    symbols: AttributeVariable
    witnesses: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        symbols: list[SymbolAttr] = []
        if parser.parse_optional_keyword("binds") is not None:
            symbols = parse_symbol_declarations(parser)
        names = [symbol.symbol.data for symbol in symbols]
        self.symbols.set(state, ArrayAttr(symbols))
        self.witnesses.set(state, [PrimType(value=name) for name in names])
        State.of(state).result_names.update(enumerate(map(as_name_hint, names), start=1))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if symbols := cast("ArrayAttr[SymbolAttr]", self.symbols.get(op)).data:
            printer.print_string(" binds ")
            _print_symbols(printer, symbols)


def _print_symbols(printer: Printer, symbols: Sequence[SymbolAttr]) -> None:
    with printer.in_square_brackets():
        printer.print_list(symbols, lambda symbol: print_symbol_declaration(printer, symbol))


class CheckedArguments(Directive):
    """Arguments, their types and the symbols that these bind: `(%a) : (!relax.tensor<[n], f32>) binds [n]`."""

    arguments: VariadicOperandVariable
    outputs: TypeDirective
    symbols: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.arguments.index] = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_defined_operand(parser)
        )
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_struct_info(parser))
        parser.parse_keyword("binds")
        symbols = parse_symbol_declarations(parser)
        self.symbols.set(state, ArrayAttr(symbols))
        self.outputs.set(state, [*types, *(PrimType(i64, bound.symbol.data) for bound in symbols)])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        arguments = self.arguments.get(op)
        print_arguments(printer, arguments)
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.outputs.get(op)[: len(arguments)], printer.print_attribute)
        printer.print_string(" binds ")
        _print_symbols(printer, cast("ArrayAttr[SymbolAttr]", self.symbols.get(op)).data)


@op_definition
class MatchCastOp(IRDLOperation, BindsResultSymbols, HasFolderInterface):
    """Checks that a value has a type, refines it to that type, and binds the symbols that are new in it.

    ```mlir
    %lv, %m = relax.match_cast %w : !relax.tensor<[k, m], f32> binds [m]
    %n = relax.match_cast %s : !relax.shape<[_, 4]>
    ```

    The first result is the value; then comes one witness per bound symbol. A bound symbol is solved from the value:
    `m`, and also `m + 1` or `4 * m`. Fails at run time with the expected and actual fact (specification, "Evaluating
    MatchCast"). Its message calls the value what the attribute `subject` says, if a pass made the op.

    C1: the value can be of the type.
    C2: every bound symbol can be solved from the value.
    C3: the results are the value of that type and one witness per bound symbol.
    """

    name = "relax.match_cast"

    symbols_attr = prop_def(ArrayAttr[SymbolAttr], prop_name="symbols")
    value = operand_def(StructInfo)
    result = result_def(StructInfo)
    witnesses = var_result_def(PrimType)

    traits = traits_def(CheckedWitness(), AliasesOperand())

    assembly_format = "$value `:` custom<InfoType>(type($result)) custom<Binds>($symbols, type($witnesses)) attr-dict"
    custom_directives = (InfoType, Binds)

    def __init__(
        self, value: SSAValue, info: StructInfo, binds: Sequence[SymbolAttr | str] = (), subject: str | None = None
    ):
        symbols = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in binds]
        super().__init__(
            operands=[value],
            properties={"symbols": ArrayAttr(symbols)},
            attributes={} if subject is None else {"subject": StringAttr(subject)},
            result_types=[info, [PrimType(value=symbol.symbol.data) for symbol in symbols]],
        )
        for witness, symbol in zip(self.witnesses, symbols, strict=True):
            witness.name_hint = as_name_hint(symbol.symbol.data)

    @property
    def symbols(self) -> tuple[SymbolAttr, ...]:
        """The symbols that the op binds, with their bounds."""
        return self.symbols_attr.data

    @property
    def subject(self) -> str:
        """What messages call the value."""
        given = self.attributes.get("subject")
        return given.data if isinstance(given, StringAttr) else "match_cast"

    @property
    def result_witnesses(self) -> dict[str, OpResult]:
        return {symbol.symbol.data: witness for symbol, witness in zip(self.symbols, self.witnesses, strict=True)}

    def match(self) -> Match:
        """How the value meets the type: the bindings, and the checks to make at run time. Raises `Mismatch`."""
        (actual,) = as_struct_infos((self.value.type,))
        return match_types([self.result.type], [actual], self.symbols, prover_at(self))

    def fold(self) -> tuple[SSAValue] | None:
        """A cast to the type that the value has already: `match_cast %x : T  ->  %x`."""
        return (self.value,) if self.value.type == self.result.type and not self.symbols else None

    def verify_(self) -> None:
        expected = [PrimType(value=symbol.symbol.data) for symbol in self.symbols]
        if [witness.type for witness in self.witnesses] != expected:
            raise VerifyException(
                f"'relax.match_cast' op expected the witnesses {', '.join(map(str, expected))}, "
                f"got {', '.join(str(witness.type) for witness in self.witnesses)}"
            )  # C3
        try:
            self.match()
        except Mismatch as mismatch:
            where = f"{mismatch.path.text}: " if mismatch.path.text else ""
            raise VerifyException(
                f"'relax.match_cast' op can never succeed: {where}{mismatch.reason}"
            ) from mismatch  # C1, C2


@op_definition
class CheckArgsOp(IRDLOperation, BindsResultSymbols):
    """The entry check of a function: every argument against its declared type, and the symbols they bind.

    Symbols are bound from the positions where they stand alone or in an expression that can be solved, then everything
    else is checked, in whatever order the arguments come (specification, "Checking Structural Information at the Start
    and End of a Function"). Results: each argument with its type, then a witness for each bound symbol.

    ```mlir
    %x, %w, %n = relax.check_args(%a, %b) : (!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) binds [n]
      names ["x", "w"] of "main"
    ```

    Errors count arguments from 0 after those that closures of the function give: `of "main_f" captured 1`.

    C1: there is one type and one name for each argument.
    C2: no more arguments are captured than there are.
    """

    name = "relax.check_args"

    arguments = var_operand_def()
    symbols = prop_def(ArrayAttr[SymbolAttr])
    arg_names = prop_def(ArrayAttr[StringAttr])
    function = prop_def(StringAttr)
    captured = opt_prop_def(IntegerAttr.constr(i64))
    outputs = var_result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    assembly_format = (
        "custom<CheckedArguments>($arguments, type($outputs), $symbols) `names` custom<Names>($arg_names) "
        "`of` custom<Text>($function) (`captured` custom<Number>($captured)^)? attr-dict"
    )
    custom_directives = (CheckedArguments, Names, Text, Number)

    def __init__(
        self,
        arguments: Sequence[SSAValue | Operation],
        types: Sequence[StructInfo],
        symbols: Sequence[SymbolAttr],
        arg_names: Sequence[str],
        function: str,
        captured: int = 0,
    ):
        witnesses = [PrimType(i64, bound.symbol.data) for bound in symbols]
        super().__init__(
            operands=[arguments],
            properties={
                "symbols": ArrayAttr(symbols),
                "arg_names": ArrayAttr([StringAttr(name) for name in arg_names]),
                "function": StringAttr(function),
                "captured": IntegerAttr(captured, i64) if captured else None,
            },
            result_types=[[*types, *witnesses]],
        )

    @property
    def captured_count(self) -> int:
        """How many of the first arguments are values that a closure has captured."""
        return 0 if self.captured is None else self.captured.value.data

    @property
    def values(self) -> Sequence[OpResult]:
        """The checked arguments."""
        return self.outputs[: len(self.arguments)]

    @property
    def witnesses(self) -> Sequence[OpResult]:
        """The witnesses of the bound symbols."""
        return self.outputs[len(self.arguments) :]

    @property
    def result_witnesses(self) -> Mapping[str, OpResult]:
        """The witnesses by symbol."""
        return {bound.symbol.data: value for bound, value in zip(self.symbols, self.witnesses, strict=True)}

    def verify_(self) -> None:
        expected = len(self.arguments) + len(self.symbols)
        if len(self.outputs) != expected or len(self.arg_names) != len(self.arguments):
            raise VerifyException(  # C1
                f"'{self.name}' op expected {expected} results and {len(self.arguments)} names, "
                f"got {len(self.outputs)} and {len(self.arg_names)}"
            )
        count = len(self.arguments)
        if not 0 <= self.captured_count <= count:
            raise VerifyException(
                f"'{self.name}' op expected 0 to {count} captured arguments, got {self.captured_count}"
            )  # C2


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
        printer.print_string(cast("RelationAttr", self.relation.get(op)).data.value)


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
