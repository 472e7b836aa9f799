"""Views of buffers: of another shape, dtype or rank."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_operand_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import OperandVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, Prover, floordiv, product
from tir_dialect.dtypes import byte_size
from tir_dialect.new_ops import fill_op
from tir_dialect.ops.accesses import Buffer, BufferResult
from tir_dialect.ops.assembly_format import Directive, op_definition
from tir_dialect.ops.directives import value_of
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


@op_definition
class ViewOp(BufferViewOp):
    """Reinterprets the memory of a buffer: its bytes are accessed as elements of the view's dtype and shape.

    ```mlir
    %V = tir.view %A : !tir.buffer<[n, 4], i8>
    %W = tir.view %A at %i : !tir.buffer<[16], f32>
    ```

    The view starts at the base address of the buffer, or `at` so many elements (of the view's dtype) after it. A view
    with strides of its own skips elements.

    C1: the buffer has default strides, and both the offset 0.
    C2: both have one scope.
    C3: the view is not provably larger than the buffer. (For a view with `at`, that is part of C6 of `tir.prim_func`.)
    """

    name = "tir.view"

    # again, to come first
    buffer = operand_def(BufferType)
    start = opt_operand_def(IndexType)

    assembly_format = "custom<Buffer>($buffer) (`at` $start^)? attr-dict `:` custom<BufferResult>(type($view))"
    custom_directives = (Buffer, BufferResult)

    def __init__(self, buffer: SSAValue | Operation, type: BufferType, start: SSAValue | Operation | None = None):
        super().__init__(operands=[buffer, start], result_types=[type])

    @property
    def room(self) -> Dim:
        """How many elements of the view's dtype the memory of the buffer can hold."""
        return floordiv(_bytes(self.buffer_type), byte_size(self.view_type.dtype))

    def verify_(self) -> None:
        source, view = self.buffer_type, self.view_type
        if not source.is_compact:
            raise VerifyException(f"'tir.view' op expected a buffer without gaps, got {source}")  # C1
        if view.offset.terms:
            raise VerifyException(f"'tir.view' op expected a view without an offset, got {view}")  # C1
        if source.scope != view.scope:
            raise VerifyException(f"'tir.view' op expected one scope, got {source} and {view}")  # C2
        if Prover().less_equal(_bytes(view), _bytes(source)) is False:
            raise VerifyException(f"'tir.view' op expected a view that is not larger than {source}, got {view}")  # C3


def _bytes(kind: BufferType) -> Dim:
    return kind.span * byte_size(kind.dtype)


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
