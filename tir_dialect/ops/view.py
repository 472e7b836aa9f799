"""Views of a buffer's memory with another shape or dtype."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, Prover, floordiv
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.accesses import Buffer, BufferResult
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.buffer_views import BufferViewOp
from tir_dialect.types import BufferType


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
