"""Declarative syntax: directives for properties and types, ops whose operands are printed without types, the parsing of
operands that are defined already, and the text of annotations on loops, blocks and allocations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from numbers import Integral, Real
from typing import ClassVar, TypeAlias, TypeVar, cast

from typing_extensions import override
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    AttributeVariable,
    FormatDirective,
    FormatProgram,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.irdl.declarative_assembly_format_parser import FormatParser
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.fast_ops import new_op
from tir_dialect.types import DimAttr, parse_dim_expr, parse_dim_list, print_dim, print_dim_list
from vm_dialect.ops.base import Directive as BaseDirective
from vm_dialect.ops.base import define_op

_INDEX = IndexType()


def parse_optional_defined_operand(parser: Parser) -> SSAValue | None:
    """Parses `%x` or `%x#1` if present; the value must be defined already, so its type need not be written."""
    unresolved = parser.parse_optional_unresolved_operand()
    if unresolved is None:
        return None
    values = parser.ssa_values.get(unresolved.operand_name)
    if values is None:
        parser.raise_error(f"value %{unresolved.operand_name} is used before its definition", unresolved.span)
    if unresolved.index >= len(values):
        parser.raise_error(
            f"value %{unresolved.operand_name} has {len(values)} results, got index {unresolved.index}", unresolved.span
        )
    return values[unresolved.index]


def parse_defined_operand(parser: Parser) -> SSAValue:
    """Parses `%x` or `%x#1`; the value has to be defined already, so its type need not be written."""
    return parser.expect(lambda: parse_optional_defined_operand(parser), "expected a value")


def parse_index(parser: Parser) -> SSAValue:
    """Parses `%i`, or a number: a constant that stands nowhere yet (`tir_dialect.ops.control_flow.insert_numbers`)."""
    number = parser.parse_optional_integer(allow_boolean=False)
    return parse_defined_operand(parser) if number is None else ConstantOp.from_int_and_width(number, _INDEX).result


def parse_defined_operands(parser: Parser) -> list[SSAValue]:
    """Parses `%x, %y`, possibly nothing; the values have to be defined already."""
    first = parse_optional_defined_operand(parser)
    if first is None:
        return []
    operands = [first]
    while parser.parse_optional_punctuation(","):
        operands.append(parse_defined_operand(parser))
    return operands


OpT = TypeVar("OpT", bound=IRDLOperation)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """As `irdl_op_definition`, for an op with an `assembly_format`, as the module describes."""
    return define_op(cls, format_of)


@cache
def format_of(op: type[IRDLOperation]) -> Format:
    """The compiled format of an op; `ParseError` if it is malformed."""
    definition = op.get_irdl_definition()
    return Format(_FormatParser(op.assembly_format or "", definition).parse_format().stmts, definition)


class State(ParsingState):
    """What has been read of an op."""

    values: list[Sequence[SSAValue]]
    """The operands, one entry for each of the definition."""
    start: int
    """Where the text after the op's name starts."""
    attributes_start: int
    """Where the dictionary of attributes starts."""
    types: Sequence[Attribute] | None
    """The types of all results, if they are read together."""
    result_names: dict[int, str | None]
    """What results are called if the text has no names for them, by index."""

    def __init__(self, op_type: type[IRDLOperation], start: int):
        super().__init__(op_type)
        self.values = [()] * len(self.operands)
        self.start = self.attributes_start = start
        self.types = None
        self.result_names = {}

    @staticmethod
    def of(state: ParsingState) -> State:
        """The state that a directive is given; `TypeError` in a format that is not from here."""
        if not isinstance(state, State):
            raise TypeError("expected an op of 'op_definition'")
        return state


class Format(FormatProgram):
    """The program that reads and prints an op."""

    definition: OpDef
    segmented: bool
    """Whether a property has the numbers of operands."""

    def __init__(self, statements: Sequence[FormatDirective], definition: OpDef):
        super().__init__(tuple(statements))
        segmented = any(isinstance(option, AttrSizedOperandSegments) for option in definition.options)
        vars(self).update(definition=definition, segmented=segmented)

    @override
    def parse(self, parser: Parser, op_type: type[OpT]) -> OpT:
        state = State(op_type, parser.pos)
        for statement in self.stmts:
            statement.parse(parser, state)
        properties = state.properties
        if len(properties) > 1:
            properties = {name: properties[name] for name in self.definition.properties if name in properties}
        if self.segmented:
            properties[AttrSizedOperandSegments.attribute_name] = _sizes(*map(len, state.values))
        types = state.types
        if types is None:
            types = [type for group in self.resolve_result_types(state, self.definition) for type in group]
        op = new_op(
            op_type,
            [value for group in state.values for value in group],
            types,
            properties,
            regions=[region for group in state.regions for region in cast("Sequence[Region]", group)],
        )
        if len(properties) < len(op.properties):
            op.properties = properties | op.properties  # those with default values last, as in an op that is made
        if state.attributes:
            op.attributes.update(state.attributes)
        for index, name in state.result_names.items():
            op.results[index].name_hint = name
        return op


@cache
def _sizes(*sizes: int) -> DenseArrayBase:
    """The property that has the numbers of operands."""
    return DenseArrayBase.from_list(i32, sizes)


class _FormatParser(FormatParser):
    """xDSL's parser of formats, whose operands are values that are defined already."""

    @override
    def _parse_optional_operand(
        self, variable_name: str, inside_type: bool, inside_ref: bool
    ) -> OptionalOperandVariable | VariadicOperandVariable | OperandVariable | None:
        match super()._parse_optional_operand(variable_name, inside_type, inside_ref):
            case OptionalOperandVariable(name=name, index=index):
                return _OptionalOperand(name, index)
            case VariadicOperandVariable(name=name, index=index):
                return _Operands(name, index)
            case OperandVariable(name=name, index=index):
                return _Operand(name, index)
            case None:
                return None

    @override
    def parse_custom_directive(self) -> FormatDirective:
        directive = super().parse_custom_directive()
        if isinstance(directive, Directive):
            for index in range(len(self.seen_operands)):
                self.seen_operands[index] |= directive.ALL_OPERANDS
            if directive.ALL_PROPERTIES:
                self.seen_properties.update(self.op_def.properties)
        return directive

    @override
    def verify_operands(self, var_constraint_names: AbstractSet[str]) -> None:
        self.seen_operand_types = [True] * len(self.seen_operand_types)
        super().verify_operands(set())

    @override
    def verify_properties(self, elements: list[FormatDirective], attr_dict_idx: int) -> None:
        super().verify_properties(elements, attr_dict_idx)
        found = elements[attr_dict_idx]
        if isinstance(found, AttrDictDirective):
            elements[attr_dict_idx] = _AttrDict(found.with_keyword, set(), found.expected_properties)


class _Operand(OperandVariable):
    """`%x`."""

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.index] = (parse_defined_operand(parser),)


class _Operands(VariadicOperandVariable):
    """`%x, %y`, or nothing."""

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.index] = parse_defined_operands(parser)


class _OptionalOperand(OptionalOperandVariable):
    """`%x` in an optional group: it is there if what begins the group is."""

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.index] = (parse_defined_operand(parser),)


class _AttrDict(AttrDictDirective):
    """The dictionary of attributes."""

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).attributes_start = parser.pos
        super().parse(parser, state)

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if op.attributes:
            super().print(printer, state, op)


class Directive(BaseDirective):
    """A custom directive of an op of `op_definition`."""

    ALL_OPERANDS: ClassVar[bool] = False
    """Whether it reads and prints all operands, without having them as parameters."""
    ALL_PROPERTIES: ClassVar[bool] = False
    """Whether it reads and prints all properties, without having them as parameters."""


def value_of(operand: OperandVariable, state: ParsingState) -> SSAValue:
    """The operand as it has been read."""
    return State.of(state).values[operand.index][0]


class Text(Directive):
    """A string: `"erff"`."""

    CONTEXT = ""
    """What an error says of the string that was expected."""

    text: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.text.set(state, StringAttr(parser.parse_str_literal(self.CONTEXT)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string_literal(cast("StringAttr", self.text.get(op)).data)


class Word(Directive):
    """A string that is written as a word: `olt`."""

    word: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.word.set(state, StringAttr(parser.parse_identifier(f" as the {self.word.name}")))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(cast("StringAttr", self.word.get(op)).data)


class Number(Directive):
    """An integer of `i64`: `16`."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.number.set(state, IntegerAttr(parser.parse_integer(), i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_int(cast("IntegerAttr", self.number.get(op)).value.data)


class Symbol(Directive):
    """A reference to a function of the module: `@f`."""

    symbol: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.symbol.set(state, SymbolRefAttr(parser.parse_symbol_name()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_symbol_name(cast("SymbolRefAttr", self.symbol.get(op)).string_value())


class DimExpr(Directive):
    """A dimension: `4 * n + 1`."""

    dim: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.dim.set(state, DimAttr(parse_dim_expr(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        print_dim(printer, cast("DimAttr", self.dim.get(op)).data)


class Dims(Directive):
    """A list of dimensions: `[n, 4 * m]`."""

    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.dims.set(state, ArrayAttr([DimAttr(dim) for dim in parse_dim_list(parser)]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        print_dim_list(printer, [dim.data for dim in cast("ArrayAttr[DimAttr]", self.dims.get(op))])


class ResultType(Directive):
    """The type of a result: `f32`. In an optional group, the result is there if its type is."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, (parser.parse_type(),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)

    def set_empty(self, state: ParsingState) -> None:
        self.type.set(state, ())


class TypeOf(Directive):
    """The type of an operand, for the reader: `vector<8xf32>`. Any other type is an error."""

    operand: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        wanted, start = value_of(self.operand, state).type, parser.pos
        written = parser.parse_type()
        if written != wanted:
            what = self.operand.name if self.operand.name == "sum" else "operand"
            parser.raise_error(f"expected {wanted}, the type of the {what}, got {written}", start, parser.pos)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(self.operand.get(op).type)


class SameType(Directive):
    """Nothing: the result has the type of an operand."""

    result: TypeDirective
    operand: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.result.set(state, (value_of(self.operand, state).type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


class TypeProperty(Directive):
    """A type that is a property: `bf16`."""

    type: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, parser.parse_type())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(cast("Attribute", self.type.get(op)))


Note: TypeAlias = "bool | float | str | Sequence[Note] | Mapping[str, Note]"
"""What an annotation says."""


def note_attr(value: object) -> Attribute:
    """The attribute of a `Note`; TypeError for anything else."""
    match value:
        case bool():
            return BoolAttr.from_bool(value)
        case Integral():
            return IntegerAttr(int(value), i64)
        case Real():
            return FloatAttr(float(value), f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([note_attr(each) for each in cast("Sequence[object]", value)])
        case dict():
            entries = cast("dict[object, object]", value)
            return DictionaryAttr({str(key): note_attr(each) for key, each in entries.items()})
        case _:
            raise TypeError(f"expected truth values, numbers or strings, got {type(value).__name__}")


def note_of(attribute: Attribute) -> Note:
    """The `Note` of an attribute made by `note_attr`; TypeError for any other attribute."""
    match attribute:
        case IntegerAttr():
            is_truth = isinstance(attribute.type, IntegerType) and attribute.type.width.data == 1
            return bool(attribute.value.data) if is_truth else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [note_of(each) for each in attribute]
        case DictionaryAttr():
            return {key: note_of(each) for key, each in attribute.data.items()}
        case _:
            raise TypeError(f"expected truth values, numbers or strings, got {attribute}")


def annotations_attr(annotations: Mapping[str, Attribute] | None) -> DictionaryAttr | None:
    """The property that holds `annotations`: absent if there are none."""
    return DictionaryAttr(dict(annotations)) if annotations else None


class Annotations(Directive):
    """The annotations, if there are some: `annotations {key = value}`."""

    annotations: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if (annotations := parse_annotations(parser)) is not None:
            self.annotations.set(state, annotations)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_annotations(printer, cast("DictionaryAttr | None", self.annotations.get(op)))


def parse_annotations(parser: Parser) -> DictionaryAttr | None:
    """Parses `annotations {key = value}` if present."""
    if parser.parse_optional_keyword("annotations") is None:
        return None
    return annotations_attr(parser.parse_optional_dictionary_attr_dict())


def print_annotations(printer: Printer, annotations: DictionaryAttr | None) -> None:
    """Prints ` annotations {key = value}` if there are some."""
    if annotations is not None:
        printer.print_string(" annotations ")
        printer.print_attr_dict(annotations.data)
