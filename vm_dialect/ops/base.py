"""What the ops that stand for one call of the run-time library have in common; their assembly formats are compiled when
an op of the class is first read or printed.

xDSL compiles a format when the class is defined, which is half of the time that takes. A build loads hundreds of op
classes and prints few of them.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypeAlias, TypeVar

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import CustomDirective, FormatDirective, FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource
from xdsl.utils.exceptions import VerifyException

from vm_dialect.types import OBJECT, is_subtype


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
