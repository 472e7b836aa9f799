"""Alignment of addresses, queried at run time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.accesses import Access
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.directives import Number
from tir_dialect.types import BufferType, buffer_type


@op_definition
class MisalignmentOp(IRDLOperation):
    """The distance of an element, in elements, from the preceding vector-aligned address.

    ```mlir
    %e = tir.misalignment %A[%i] of 16
    ```

    That is the address in units of elements, modulo the given number: a vector of 16 elements at `%i - %e` is aligned.
    The indices may be out of bounds. It may steer how results are computed, but the results must not depend on it.

    C1: there is one index per dimension.
    C2: the number is a power of two.
    """

    name = "tir.misalignment"

    buffer = operand_def(BufferType)
    indices = var_operand_def(IndexType)
    count = prop_def(IntegerAttr)
    result = result_def(IndexType())

    traits = traits_def(Pure())

    assembly_format = "custom<Access>($buffer, $indices) `of` custom<Number>($count) attr-dict"
    custom_directives = (Access, Number)

    def __init__(self, buffer: SSAValue | Operation, indices: Sequence[SSAValue | Operation], count: int):
        super().__init__(
            operands=[buffer, indices], properties={"count": IntegerAttr(count, i64)}, result_types=[IndexType()]
        )

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    def verify_(self) -> None:
        rank, count = self.buffer_type.rank, self.count.value.data
        if len(self.indices) != rank:
            raise VerifyException(f"'{self.name}' op expected {rank} indices, got {len(self.indices)}")  # C1
        if count <= 0 or count & (count - 1):
            raise VerifyException(f"'{self.name}' op expected a power of two, got {count}")  # C2
