"""Definitions of ops whose assembly format is compiled when an op of the class is first read or printed.

xDSL compiles a format when the class is defined, which is half of the time that takes. A build loads hundreds of op
classes and prints few of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import CustomDirective, FormatDirective, FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer

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
