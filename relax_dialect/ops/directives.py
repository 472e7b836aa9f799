"""Custom directives of assembly formats of relax ops: result types, dimensions and names."""

from __future__ import annotations

import re
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, VariadicDef
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.fields import parse_fields, print_fields
from relax_dialect.struct_info.types import ObjectType, TensorType, parse_struct_info
from relax_dialect.syntax import (
    parse_optional_result_types,
    parse_result_types,
    print_arguments,
    print_result_types,
)
from tir_dialect.ops.assembly_format import Directive, State, Text, parse_defined_operand, parse_defined_operands
from tir_dialect.types import DimAttr, parse_optional_dim_list, print_dim_list


class InferredTypes(Directive):
    """The end of an op whose result types are inferred: `: T` where they are other ones."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        op, read = inferring_op(state), State.of(state)
        op.refuse_properties(parser, read.attributes, read.attributes_start)
        operands = [value.type for group in read.values for value in group]
        read.types = op.parse_result_types(parser, operands, read.properties, read.start)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if not (isinstance(op, InfersResultTypes) and op.types_follow()):
            print_result_types(printer, self.types.get(op))


_WRONG_OPERAND = re.compile(r"%[\w$.-]++(?!(?::\d+)?\s*[=,])|(?!loc\b)[A-Za-z_]\w*+(?!\s*=)|\[|-?\d\S*")


class Operands(Directive):
    """All operands: `%x, %y`."""

    ALL_OPERANDS = True

    def parse(self, parser: Parser, state: ParsingState) -> None:
        op, read = state.op_type, State.of(state)
        around = "parentheses" if parser.parse_optional_punctuation("(") is not None else ""
        if around or parser.parse_optional_punctuation("[") is not None:
            written = _unwrapped(parser.lexer.input.content[parser.pos :])
            message = f"expected operands without {around or 'brackets'}: {op.name} {written}"
            parser.raise_error(f"'{op.name}' op {message}", read.start, parser.pos)
        operands = parse_defined_operands(parser)
        # What stands after the operands in the line of the last one and is none: a value without a comma, a word, ...
        text = parser.lexer.input.content
        before = parser.pos - 1
        while before >= 0 and text[before] in " \t":
            before -= 1
        wrong = None if before < 0 or text[before] == "\n" else _WRONG_OPERAND.match(text, parser.pos)
        if wrong is not None and wrong[0][0] == "%":
            parser.raise_error(f"'{op.name}' op expected ',' before {wrong[0]}", wrong.start(), wrong.end())
        definitions = op.get_irdl_definition().operands
        variadic = any(isinstance(definition, VariadicDef) for _, definition in definitions)
        if not variadic and len(operands) != len(definitions):
            if wrong is not None and len(operands) < len(definitions):
                parser.raise_error("expected a value", wrong.start(), wrong.end())
            names = ", ".join(name for name, _ in definitions)
            plural = "" if len(definitions) == 1 else "s"
            message = f"'{op.name}' op expected {len(definitions)} operand{plural} ({names}), got {len(operands)}"
            parser.raise_error(message, read.start, read.start + 1)
        read.values = [operands]

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if op.operands:
            state.print_whitespace(printer)
            printer.print_list(op.operands, printer.print_operand)


def _unwrapped(text: str) -> str:
    """Operands and attributes as they are written without the brackets that open before `text`."""
    parts = [part.strip() for part in re.split(r"[)\]\n]", text, maxsplit=1)[0].split(",")]
    operands = [part for part in parts if re.fullmatch(r"%[\w$.#-]+", part)]
    attributes = [" = ".join(map(str.strip, part.split("="))) for part in parts if re.fullmatch(r"\w+\s*=\s*\S+", part)]
    whole = len(operands) + len(attributes) == len(parts)
    return " ".join([", ".join(operands), *attributes]) if operands and whole else "%x, ..."


class Fields(Directive):
    """All properties that are not as they are by default, by name: `axis = 1 keepdims`."""

    ALL_PROPERTIES = True

    def parse(self, parser: Parser, state: ParsingState) -> None:
        state.properties |= parse_fields(parser, state.op_type)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_fields(printer, type(op), op.properties)


class FollowingType(Directive):
    """Nothing: the result type is the inferred one."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operands = [value.type for group in State.of(state).values for value in group]
        self.type.set(state, inferring_op(state).infer_result_types(operands, state.properties))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


def inferring_op(state: ParsingState) -> type[InfersResultTypes]:
    """The op that is read; `TypeError` for one that does not infer its result types."""
    if not issubclass(state.op_type, InfersResultTypes):
        raise TypeError(f"expected an op that infers its result types, got {state.op_type.name}")
    return state.op_type


class ResultTypes(Directive):
    """The result types: `: T, ...`."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.types.set(state, parse_result_types(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_result_types(printer, self.types.get(op))


class OptionalType(ResultTypes):
    """The type of a result that may be absent: `: T`."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.types.set(state, parse_optional_result_types(parser) or ())


class TypeOrObject(ResultTypes):
    """The type of a result, unless it is any object: `: T`."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.types.set(state, parse_optional_result_types(parser) or (ObjectType(),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if tuple(types := self.types.get(op)) != (ObjectType(),):
            print_result_types(printer, types)


class TensorResults(ResultTypes):
    """The types of results that are tensors: `: T, ...`."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        types = parse_result_types(parser)
        for info in types:
            if not isinstance(info, TensorType):
                parser.raise_error(f"expected tensor types, got {info}", position, parser.pos)
        self.types.set(state, types)


class TensorResult(Directive):
    """The type of a result that is a tensor: `!relax.tensor<[n], f32>`."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        parsed = parser.parse_type()
        if not isinstance(parsed, TensorType):
            parser.raise_error("expected a tensor type", position)
        self.type.set(state, (parsed,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


class InfoType(Directive):
    """The type of a result: a relax type."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, (parse_struct_info(parser),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


class Arguments(Directive):
    """Operands in parentheses: `(%x, %y)`."""

    arguments: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.arguments.index] = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_defined_operand(parser)
        )

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_arguments(printer, self.arguments.get(op))


class NamedDims(Directive):
    """Dimensions after the name of the property, if there are some: `tir_vars [n, 2 * m]`."""

    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        dims = ()
        if parser.parse_optional_keyword(self.dims.name) is not None:
            dims = parser.expect(lambda: parse_optional_dim_list(parser), "expected a list of dimensions")
        self.dims.set(state, ArrayAttr([DimAttr(dim) for dim in dims]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if dims := cast("ArrayAttr[DimAttr]", self.dims.get(op)).data:
            printer.print_string(f" {self.dims.name} ")
            print_dim_list(printer, [dim.data for dim in dims])


class PackedName(Text):
    """The name of a packed function: `"my.function"`."""

    CONTEXT = " as the name of a packed function"


class Message(Text):
    """The message of an error: `"got {} rows"`."""

    CONTEXT = " as the message"


class Index(Directive):
    """The index of a field or a dimension: `1`."""

    index: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        index = parser.parse_integer(allow_boolean=False, allow_negative=False)
        self.index.set(state, IntegerAttr(index, i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_int(cast("IntegerAttr", self.index.get(op)).value.data)


def symbol_of(symbol: AttributeVariable, state: ParsingState) -> str:
    """The function of the module that has been read."""
    return cast("SymbolRefAttr", state.properties[symbol.name]).string_value()


def values_of(operands: VariadicOperandVariable, state: ParsingState) -> list[SSAValue]:
    """The operands that have been read."""
    return list(State.of(state).values[operands.index])


class Names(Directive):
    """Strings in brackets: `["x", "w"]`."""

    names: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        self.names.set(state, ArrayAttr([StringAttr(name) for name in names]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        names = cast("ArrayAttr[StringAttr]", self.names.get(op))
        with printer.in_square_brackets():
            printer.print_list(names, lambda name: printer.print_string_literal(name.data))
