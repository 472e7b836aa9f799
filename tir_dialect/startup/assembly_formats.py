"""Assembly formats of ops that are read when such an op is parsed or printed for the first time.

xDSL reads the format of an op when its class is defined, which is half of the time that takes. A small build loads some
200 ops with formats, and neither parses nor prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from xdsl.irdl import IRDLOperation, OpDef
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser
    from xdsl.printer import Printer

Read: TypeAlias = "Callable[[str, OpDef], Any]"

_READER = "from_str"
"""What reads a format, of xDSL's `FormatProgram`."""


@contextmanager
def formats_on_demand() -> Generator[None]:
    """Ops that are defined meanwhile have formats that are read when they are needed; a faulty one fails then."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    read: Read = FormatProgram.from_str
    if read.__module__ == __name__:
        yield
        return
    before: object = vars(FormatProgram)[_READER]
    setattr(FormatProgram, _READER, staticmethod(_later(read)))
    try:
        yield
    finally:
        setattr(FormatProgram, _READER, before)


def _later(read: Read) -> Read:
    """`read`, but with a stand-in for the format."""

    def read_later(text: str, op_def: OpDef) -> _Later:
        return _Later(lambda: read(text, op_def))

    return read_later


class _Later:
    """Stands for a format: what xDSL asks of one."""

    def __init__(self, read: Callable[[], FormatProgram]):
        self._program = cache(read)

    def parse(self, parser: Parser, op_type: type[IRDLOperation]) -> IRDLOperation:
        """An op of this type."""
        return self._program().parse(parser, op_type)

    def print(self, printer: Printer, op: IRDLOperation) -> None:
        """What follows the op's name."""
        self._program().print(printer, op)
