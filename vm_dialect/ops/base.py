"""What the ops that stand for one call of the run-time library have in common; their assembly formats are compiled when
an op of the class is first read or printed.

xDSL compiles a format when the class is defined, which is half of the time that takes. A build loads hundreds of op
classes and prints few of them.

Operands print without their type. A use that stands before its definition in the text, which only block order can
cause, prints as `(%v : type)`, so that every text parses back.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    FormatDirective,
    FormatProgram,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    SuccessorVariable,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource
from xdsl.utils.exceptions import VerifyException

from vm_dialect.types import OBJECT, ShapeType, TensorType, is_subtype


@dataclass(frozen=True)
class FunctionRef:
    """Bytecode argument: a function of the executable, by name."""

    name: str


@dataclass(frozen=True)
class DTypeRef:
    """Bytecode argument: an element type, by its name in `vm_dialect.dtypes`."""

    name: str


@dataclass(frozen=True)
class TensorRef:
    """Bytecode argument: a constant tensor, by name."""

    name: str


Argument: TypeAlias = SSAValue | bool | int | float | str | FunctionRef | DTypeRef | TensorRef | None
"""An argument of a bytecode call: a value, an immediate or a constant; `None` is the void operand."""


class BuiltinOp(IRDLOperation, ABC):
    """An op that is one call of a function of the run-time library.

    In bytecode it is `call vm.builtin.<BUILTIN>`, with `bytecode_args` as arguments and the result, if any, as
    destination.
    """

    BUILTIN: ClassVar[str] = ""

    @property
    def builtin_name(self) -> str:
        """The name in the table of `vm_dialect.builtins`, without the prefix `vm.builtin.`."""
        return self.BUILTIN

    def bytecode_args(self) -> Sequence[Argument]:
        """The arguments of the call; the operands in order, unless the op says otherwise."""
        return self.operands


class ConstantOp(IRDLOperation, ABC):
    """An op whose result is known at build time: it takes no register, its uses name the constant."""

    def bytecode_value(self) -> Argument:
        """The immediate or constant."""
        raise NotImplementedError


class RunTimeErrors(Resource):
    """The fact that a program goes on: a check may change it."""

    def name(self) -> str:
        """As effects print it."""
        return "vm.errors"


class MayRaise(MemoryEffect):
    """A check: it touches no memory, but it must run, in order."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `vm.errors`."""
        return frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=RunTimeErrors()),))


class CallsUnknownCode(MemoryEffect):
    """A call: it may read, write, allocate and free anything."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Every kind of effect."""
        return frozenset(EffectInstance(kind) for kind in MemoryEffectKind)


class FreshMemory(MemoryEffect):
    """The results are memory that nobody else has."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """An allocation for each result."""
        return frozenset(EffectInstance(MemoryEffectKind.ALLOC, value=result) for result in op.results)


def verify_arguments(op: Operation, callee: str, operands: Sequence[SSAValue], expected: Sequence[Attribute]) -> None:
    """Checks number and types of the arguments of a call; `VerifyException` says which one is wrong."""
    if len(operands) != len(expected):
        raise VerifyException(f"'{op.name}' op @{callee} expected {len(expected)} arguments, got {len(operands)}")
    for index, (operand, wanted) in enumerate(zip(operands, expected, strict=True)):
        if not is_subtype(operand.type, wanted):
            raise VerifyException(
                f"'{op.name}' op @{callee} argument #{index} expected type {wanted}, got {operand.type}"
            )


def verify_boxable(op: Operation, operands: Sequence[SSAValue]) -> None:
    """Checks that every operand may leave the call as a run-time value."""
    for index, operand in enumerate(operands):
        if not is_subtype(operand.type, OBJECT):
            raise VerifyException(f"'{op.name}' op argument #{index} of type {operand.type} cannot leave its call")


OpT = TypeVar("OpT", bound=IRDLOperation)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """As `irdl_op_definition`, for an op with an `assembly_format`, which is compiled on first use."""
    return define_op(cls, _format_of)


def define_op(cls: type[OpT], format_of: Callable[[type[IRDLOperation]], FormatProgram]) -> type[OpT]:
    """Defines an op that is read and printed by the program that `format_of` makes of its `assembly_format`."""
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
def _format_of(op: type[IRDLOperation]) -> FormatProgram:
    """The compiled format of an op; `ParseError` if it is malformed."""
    return FormatProgram.from_str(op.assembly_format or "", op.get_irdl_definition())


class Directive(CustomDirective):
    """A custom directive, whose parameters are its annotated fields: as xDSL's, but no generated dataclass."""

    parameters = {}

    def __init_subclass__(cls) -> None:
        own = inspect.get_annotations(cls, eval_str=True)
        if parameters := {name: kind for name, kind in own.items() if isinstance(kind, type)}:
            cls.parameters = parameters

    def __init__(self, *arguments: FormatDirective):
        vars(self).update(zip(self.parameters, arguments, strict=True))

    def is_present(self, op: IRDLOperation) -> bool:
        return self._first.is_present(op)

    def is_anchorable(self) -> bool:
        return self._first.is_anchorable()

    @property
    def _first(self) -> FormatDirective:
        """The parameter that decides whether an optional group with the directive is there."""
        return vars(self)[next(iter(self.parameters))]


class TypedOperand(NamedTuple):
    """An operand as parsed, with its type."""

    operand: UnresolvedOperand
    type: Attribute


def parse_optional_value(parser: Parser) -> TypedOperand | None:
    """`%v` or `(%v : type)`, if the text goes on with one."""
    if parser.parse_optional_punctuation("(") is not None:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(")")
        return TypedOperand(operand, value_type)
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return None
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(
            f"'%{operand.operand_name}' is used before its definition: write (%{operand.operand_name} : type)",
            operand.span,
        )
    if operand.index >= len(values):
        parser.raise_error(f"'%{operand.operand_name}' has {len(values)} values", operand.span)
    return TypedOperand(operand, values[operand.index].type)


def parse_value(parser: Parser) -> TypedOperand:
    """`%v` or `(%v : type)`."""
    value = parse_optional_value(parser)
    if value is None:
        parser.raise_error("expected an operand")
    return value


def parse_values(parser: Parser) -> list[TypedOperand]:
    """`%a, %b)`: the rest of a list in parentheses, the closing one included."""
    first = parse_optional_value(parser)
    values = [] if first is None else [first]
    while values and parser.parse_optional_punctuation(",") is not None:
        values.append(parse_value(parser))
    parser.parse_punctuation(")")
    return values


def resolve(parser: Parser, values: Sequence[TypedOperand]) -> list[SSAValue]:
    """The SSA values of parsed operands."""
    return [parser.resolve_operand(value.operand, value.type) for value in values]


def print_value(printer: Printer, value: SSAValue, user: Operation) -> None:
    """The value's name, with its type if `user` stands before the definition."""
    if _is_defined_before(value, user):
        printer.print_ssa_value(value)
        return
    with printer.in_parens():
        printer.print_ssa_value(value)
        printer.print_string(" : ")
        printer.print_attribute(value.type)


def print_values(printer: Printer, values: Sequence[SSAValue], user: Operation) -> None:
    """`(%a, %b)`."""
    with printer.in_parens():
        printer.print_list(values, lambda value: print_value(printer, value, user))


def _is_defined_before(value: SSAValue, user: Operation) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    use_block = user.parent
    if block is None or use_block is None or block is use_block:
        return True
    region = block.parent
    if region is None or region is not use_block.parent:
        return True
    return region.get_block_index(block) < region.get_block_index(use_block)


class Value(Directive):
    """One operand, without its type."""

    value: OperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `%v`."""
        operand, value_type = parse_value(parser)
        self.value.set(state, operand)
        self.type.set(state, (value_type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `%v`."""
        state.print_whitespace(printer)
        print_value(printer, self.value.get(op), op)


class OptionalValue(Directive):
    """An operand that may be absent, without its type."""

    value: OptionalOperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `%v`, or nothing."""
        parsed = parse_optional_value(parser)
        self.value.set(state, None if parsed is None else parsed.operand)
        self.type.set(state, () if parsed is None else (parsed.type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `%v`, or nothing."""
        value = self.value.get(op)
        if value is not None:
            state.print_whitespace(printer)
            print_value(printer, value, op)


class Values(Directive):
    """The operands in parentheses, without their types."""

    values: VariadicOperandVariable
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `(%a, %b)`."""
        parser.parse_punctuation("(")
        values = parse_values(parser)
        self.values.set(state, [value.operand for value in values])
        self.types.set(state, [value.type for value in values])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `(%a, %b)`."""
        print_values(printer, self.values.get(op), op)
        state.should_emit_space = True
        state.last_was_punctuation = False


class RankAndDtype(Directive):
    """A tensor type as `rank 2 dtype f32`; a part that is unknown is left out."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `rank 2 dtype f32`."""
        rank = parser.parse_integer() if parser.parse_optional_keyword("rank") is not None else None
        dtype = parser.parse_type() if parser.parse_optional_keyword("dtype") is not None else None
        self.type.set(state, (TensorType(rank, dtype),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `rank 2 dtype f32`."""
        (tensor,) = self.type.get(op)
        if not isinstance(tensor, TensorType):
            return
        if tensor.rank is not None:
            state.print_whitespace(printer)
            printer.print_string(f"rank {tensor.rank}")
        if not isinstance(tensor.dtype, NoneAttr):
            state.print_whitespace(printer)
            printer.print_string("dtype ")
            printer.print_attribute(tensor.dtype)


class Rank(Directive):
    """A shape type as `rank 2`; nothing if unknown."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `rank 2`."""
        rank = parser.parse_integer() if parser.parse_optional_keyword("rank") is not None else None
        self.type.set(state, (ShapeType(rank),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `rank 2`."""
        (shape,) = self.type.get(op)
        if isinstance(shape, ShapeType) and shape.rank is not None:
            state.print_whitespace(printer)
            printer.print_string(f"rank {shape.rank}")


class Target(Directive):
    """A successor and what its block arguments receive: `^b` or `^b(%a, %b)`."""

    block: SuccessorVariable
    values: VariadicOperandVariable
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `^b(%a)`."""
        self.block.set(state, parser.parse_successor())
        values = parse_values(parser) if parser.parse_optional_punctuation("(") is not None else []
        self.values.set(state, [value.operand for value in values])
        self.types.set(state, [value.type for value in values])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `^b(%a)`."""
        state.print_whitespace(printer)
        printer.print_block_name(self.block.get(op))
        if values := self.values.get(op):
            print_values(printer, values, op)
