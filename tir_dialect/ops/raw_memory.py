"""Addresses: raw memory at addresses (`i64`), which TVM's calling conventions pass as pointers, their alignment, and
prefetch hints.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import Number, Text, op_definition
from tir_dialect.ops.effects import FillsCaches, UnknownEffects
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import Access, BufferResult
from tir_dialect.types import BufferType, buffer_type


@op_definition
class MemoryAtOp(IRDLOperation):
    """The memory at an address, as a buffer.

    ```mlir
    %A = tir.memory_at %address : !tir.buffer<[n, 4], f32>
    ```

    Nothing is read by the op itself: the address may be null, or the memory smaller than the type says, as long as
    there is no such access. The interpreter raises an error for an access through a null address; native code has no
    such check.

    C1: the buffer starts at the address: its offset is 0.
    C2: the function is `may_alias`, since two addresses may refer to the same memory.
    """

    name = "tir.memory_at"

    address = operand_def(i64)
    view = result_def(BufferType)

    traits = traits_def(NoMemoryEffect())

    assembly_format = "$address attr-dict `:` custom<BufferResult>(type($view))"
    custom_directives = (BufferResult,)

    def __init__(self, address: SSAValue | Operation, type: BufferType):
        super().__init__(operands=[address], result_types=[type])

    @property
    def view_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.view)

    def verify_(self) -> None:
        if self.view_type.offset.terms:
            raise VerifyException(f"'tir.memory_at' op expected a buffer without an offset, got {self.view_type}")  # C1
        outer = self.parent_op()
        while outer is not None and not isinstance(outer, PrimFuncOp):
            outer = outer.parent_op()
        if outer is not None and outer.may_alias is None:
            raise VerifyException(
                f"'tir.memory_at' op expected that @{outer.sym_name.data} says may_alias, as addresses may be equal"
            )  # C2


@op_definition
class AddressOfOp(IRDLOperation):
    """The address of an element: `%p = tir.address_of %A[%i, %j]`, an `i64`.

    The memory may be read and written through it elsewhere during the lifetime of the buffer.

    C1: there is one index per dimension.
    """

    name = "tir.address_of"

    buffer = operand_def(BufferType)
    indices = var_operand_def(IndexType)
    address = result_def(i64)

    traits = traits_def(UnknownEffects())

    assembly_format = "custom<Access>($buffer, $indices) attr-dict"
    custom_directives = (Access,)

    def __init__(self, buffer: SSAValue | Operation, indices: Sequence[SSAValue | Operation]):
        super().__init__(operands=[buffer, indices], result_types=[i64])

    def verify_(self) -> None:
        rank = SSAValue.get(self.buffer, type=BufferType).type.rank
        if len(self.indices) != rank:
            raise VerifyException(
                f"'tir.address_of' op expected {rank} {'index' if rank == 1 else 'indices'}, got {len(self.indices)}"
            )  # C1


@op_definition
class TextAddressOp(IRDLOperation):
    """The address of a constant, null-terminated string: `%p = tir.text "echo"`, an `i64`."""

    name = "tir.text"

    text = prop_def(StringAttr)
    address = result_def(i64)

    traits = traits_def(Pure())

    assembly_format = "custom<Text>($text) attr-dict"
    custom_directives = (Text,)

    def __init__(self, text: str):
        super().__init__(properties={"text": StringAttr(text)}, result_types=[i64])


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
            raise VerifyException(
                f"'{self.name}' op expected {rank} {'index' if rank == 1 else 'indices'}, got {len(self.indices)}"
            )  # C1
        if count <= 0 or count & (count - 1):
            raise VerifyException(f"'{self.name}' op expected a power of two, got {count}")  # C2


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
            raise VerifyException(
                f"'{self.name}' op expected {rank} {'index' if rank == 1 else 'indices'}, got {len(self.indices)}"
            )  # C1
        if self.level.value.data not in LEVELS:
            raise VerifyException(f"'{self.name}' op expected level 1, 2 or 3, got {self.level.value.data}")  # C2
