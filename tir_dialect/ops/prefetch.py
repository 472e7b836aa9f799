"""Prefetch hints."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.accesses import Access
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.directives import Number
from tir_dialect.ops.effects import FillsCaches
from tir_dialect.types import BufferType, buffer_type

LEVELS = (1, 2, 3)
"""Of caches: 1 is the nearest."""


@op_definition
class PrefetchOp(IRDLOperation):
    """Requests the cache line of an element that will soon be read or written.

    ```mlir
    tir.prefetch %A[%i, %j] level 2
    ```

    This is a hint: it changes no value and raises no error. The indices may be out of bounds, as at the end of a loop
    that prefetches for its next iteration. Level 1 loads the line into all caches, level 3 only into the last one.

    C1: there is one index per dimension.
    C2: the level is 1, 2 or 3.
    """

    name = "tir.prefetch"

    buffer = operand_def(BufferType)
    indices = var_operand_def(IndexType)
    level = prop_def(IntegerAttr)

    traits = traits_def(FillsCaches())

    assembly_format = "custom<Access>($buffer, $indices) `level` custom<Number>($level) attr-dict"
    custom_directives = (Access, Number)

    def __init__(self, buffer: SSAValue | Operation, indices: Sequence[SSAValue | Operation], level: int):
        super().__init__(operands=[buffer, indices], properties={"level": IntegerAttr(level, i64)})

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    def verify_(self) -> None:
        rank = self.buffer_type.rank
        if len(self.indices) != rank:
            raise VerifyException(f"'{self.name}' op expected {rank} indices, got {len(self.indices)}")  # C1
        if self.level.value.data not in LEVELS:
            raise VerifyException(f"'{self.name}' op expected level 1, 2 or 3, got {self.level.value.data}")  # C2
