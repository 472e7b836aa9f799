"""The base class of ops that make a view of a buffer."""

from __future__ import annotations

from abc import ABC

from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect

from tir_dialect.types import BufferType, buffer_type


class BufferViewOp(IRDLOperation, ABC):
    """A buffer, `view`, over memory that belongs to another one, `buffer`."""

    buffer = operand_def(BufferType)
    view = result_def(BufferType)

    traits = traits_def(NoMemoryEffect())

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def view_type(self) -> BufferType:
        """The type of the view."""
        return buffer_type(self.view)
