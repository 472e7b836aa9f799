"""One-dimensional views of compact buffers."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import OperandVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import product
from tir_dialect.new_ops import fill_op
from tir_dialect.ops.accesses import Buffer
from tir_dialect.ops.assembly_format import Directive, op_definition
from tir_dialect.ops.buffer_views import BufferViewOp
from tir_dialect.ops.directives import value_of
from tir_dialect.types import BufferType, buffer_type


def flat_type(buffer: BufferType) -> BufferType:
    """The type of a buffer flattened to one dimension."""
    return BufferType([product(buffer.shape)], buffer.dtype, scope=buffer.scope, align=buffer.align)


class FlatType(Directive):
    """Nothing: the result is a buffer, flattened."""

    view: TypeDirective
    buffer: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.view.set(state, (flat_type(buffer_type(value_of(self.buffer, state))),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


@op_definition
class FlattenOp(BufferViewOp):
    """A one-dimensional view of a compact buffer: its elements in row-major order.

    ```mlir
    %F = tir.flatten %A    // of !tir.buffer<[m, n], f32> is !tir.buffer<[m * n], f32>
    ```

    Element `[i * n + j]` of the view is element `[i, j]` of the buffer.

    C1: the buffer is compact: it has default strides and the offset 0.
    C2: the view has one dimension, as long as the buffer has elements, and the buffer's dtype, scope and alignment.
    """

    name = "tir.flatten"

    assembly_format = "custom<Buffer>($buffer) attr-dict custom<FlatType>(type($view), ref($buffer))"
    custom_directives = (Buffer, FlatType)

    def __init__(self, buffer: SSAValue | Operation):
        buffer = SSAValue.get(buffer, type=BufferType)
        fill_op(self, (buffer,), (flat_type(buffer.type),))

    def verify_(self) -> None:
        source = self.buffer_type
        if not source.is_compact:
            raise VerifyException(f"'tir.flatten' op expected a buffer without gaps, got {source}")  # C1
        if self.view_type != flat_type(source):
            raise VerifyException(
                f"'tir.flatten' op expected a view of type {flat_type(source)}, got {self.view_type}"
            )  # C2
