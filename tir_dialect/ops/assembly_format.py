"""Declarative syntax of ops whose operands are printed without types.

An op says its text in xDSL's format language, and `op_definition` makes parser and printer of it:

```python
@op_definition
class PrefetchOp(IRDLOperation):
    assembly_format = "custom<Access>($buffer, $indices) `level` custom<Number>($level) attr-dict"
    custom_directives = (Access, Number)
```

Three things differ from `irdl_op_definition`. An operand `$x` is a value that is defined before its use, so its type is
known when it is read, and is not part of the format. Types are not checked while reading; the verifier reports what is
wrong, with all other errors. And the format is compiled when an op of the class is first read or printed: a build loads
hundreds of op classes and prints few of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TypeVar, cast

from typing_extensions import override
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    CustomDirective,
    FormatDirective,
    FormatProgram,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
)
from xdsl.irdl.declarative_assembly_format_parser import FormatParser
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.new_ops import new_op
from tir_dialect.ops.syntax import parse_defined_operand, parse_defined_operands

OpT = TypeVar("OpT", bound=IRDLOperation)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """As `irdl_op_definition`, for an op with an `assembly_format`, as the module describes."""
    text = cls.assembly_format
    if text is None:
        raise TypeError(f"{cls.__name__} has no assembly_format")
    cls.assembly_format = None  # or xDSL compiles it now
    defined = irdl_op_definition(cls)
    defined.assembly_format = defined.get_irdl_definition().assembly_format = text

    def parse(op: type[OpT], parser: Parser) -> OpT:
        return format_of(op).parse(parser, op)

    def print_(op: OpT, printer: Printer) -> None:
        format_of(type(op)).print(printer, op)

    for name, method in (("parse", classmethod(parse)), ("print", print_)):
        setattr(defined, name, method)
    return defined


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
    """Where the text behind the op's name starts."""
    attributes_start: int
    """Where the dictionary of attributes starts."""

    def __init__(self, op_type: type[IRDLOperation], start: int):
        super().__init__(op_type)
        self.values = [()] * len(self.operands)
        self.start = self.attributes_start = start

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
        op = new_op(
            op_type,
            [value for group in state.values for value in group],
            [type for group in self.resolve_result_types(state, self.definition) for type in group],
            properties,
            regions=[region for group in state.regions for region in cast(Sequence[Region], group)],
        )
        if state.attributes:
            op.attributes.update(state.attributes)
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


class Directive(CustomDirective):
    """A custom directive, whose parameters are its annotated fields: as xDSL's, but no generated dataclass."""

    def __init_subclass__(cls) -> None:
        if own := inspect.get_annotations(cls, eval_str=True):
            cls.parameters = own

    def __init__(self, *arguments: FormatDirective):
        vars(self).update(zip(self.parameters, arguments, strict=True))
