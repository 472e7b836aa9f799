"""The eight tile registers of AMX: dot products of sixteen rows with sixteen columns in one instruction.

A register has up to sixteen rows of sixteen groups; a group is 32 bits: an accumulator, four bytes or two `bf16`. What
each register is for is fixed: 0 to 3 have accumulators, 4 and 6 rows and columns of sixteen groups along K, 5 and 7
those of fewer groups, so that any K is a sequence of whole steps and a last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float32Type, IndexType, IntegerAttr, bf16, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import Number, TypeProperty, op_definition
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.effects import UnknownEffects
from tir_dialect.ops.memory import Access
from tir_dialect.ops.vectors import ui8
from tir_dialect.types import BufferType, LoopKind, buffer_type

ACCUMULATORS = range(4)
ROWS, LAST_ROWS, COLUMNS, LAST_COLUMNS = 4, 5, 6, 7
TILE_SIZE = 16
"""Rows of a register, and groups of a row."""


@op_definition
class ConfigureTilesOp(IRDLOperation):
    """Configures the tile registers of the thread that runs this, for last steps of so many groups; all become zero.

    ```mlir
    tir.configure_tiles %rest
    ```

    0 stands for 16, where K is a sequence of whole steps. The other ops of this file are executed between this one and
    `tir.release_tiles`, on the same thread. Native code raises an error where the operating system does not permit a
    process to use the registers, and is only made for targets with `amx-int8` or `amx-bf16`.
    """

    name = "tir.configure_tiles"

    rest = operand_def(IndexType)

    traits = traits_def(UnknownEffects())

    assembly_format = "$rest attr-dict"

    def __init__(self, rest: SSAValue | Operation):
        super().__init__(operands=[rest])


@op_definition
class ReleaseTilesOp(IRDLOperation):
    """Gives the tile registers back: what they have is lost.

    ```mlir
    tir.release_tiles
    ```
    """

    name = "tir.release_tiles"

    traits = traits_def(UnknownEffects())

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@op_definition
class ZeroTileOp(IRDLOperation):
    """Makes the accumulators of a register zero.

    ```mlir
    tir.zero_tile 0
    ```

    C1: the register has accumulators: it is 0, 1, 2 or 3.
    C2: the registers have been configured before, on the same thread, and not been released since.
    """

    name = "tir.zero_tile"

    tile = prop_def(IntegerAttr)

    traits = traits_def(UnknownEffects())

    assembly_format = "custom<Number>($tile) attr-dict"
    custom_directives = (Number,)

    def __init__(self, tile: int):
        super().__init__(properties={"tile": IntegerAttr(tile, i64)})

    def verify_(self) -> None:
        _check_accumulators(self, self.tile)  # C1
        _check_configured(self)  # C2


class TileAccessOp(IRDLOperation):
    """An access to memory of as many rows and groups as the register has.

    Consecutive rows of the register are consecutive in the second dimension from the end of the buffer, and groups in
    the last one, from the element at the indices on.

    C1: there is one index per dimension, of which there are at least two.
    C2: the elements are `i32` or `f32`.
    """

    tile = prop_def(IntegerAttr)
    buffer = operand_def(BufferType)
    indices = var_operand_def(IndexType)

    traits = traits_def(UnknownEffects())

    def __init__(self, tile: int, buffer: SSAValue | Operation, indices: Sequence[SSAValue | Operation]):
        super().__init__(operands=[buffer, indices], properties={"tile": IntegerAttr(tile, i64)})

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    def _check_access(self) -> None:
        rank, dtype = self.buffer_type.rank, self.buffer_type.dtype
        if rank < 2 or len(self.indices) != rank:
            got = f"{len(self.indices)} for {rank}"
            raise VerifyException(
                f"'{self.name}' op expected an index for each of at least 2 dimensions, got {got}"
            )  # C1
        if dtype != i32 and not isinstance(dtype, Float32Type):
            raise VerifyException(f"'{self.name}' op expected elements of i32 or f32, got {dtype}")  # C2


@op_definition
class LoadTileOp(TileAccessOp):
    """Reads groups of rows or columns from memory.

    ```mlir
    tir.load_tile 4, %A[%i, %r]
    ```

    C1: there is one index per dimension, of which there are at least two.
    C2: the elements are `i32` or `f32`.
    C3: the register has no accumulators: it is 4, 5, 6 or 7.
    C4: the registers have been configured before, on the same thread, and not been released since.
    """

    name = "tir.load_tile"

    assembly_format = "custom<Number>($tile) `,` custom<Access>($buffer, $indices) attr-dict"
    custom_directives = (Number, Access)

    def verify_(self) -> None:
        self._check_access()
        _check_factor(self, self.tile, range(ROWS, LAST_COLUMNS + 1))  # C3
        _check_configured(self)  # C4


@op_definition
class StoreTileOp(TileAccessOp):
    """Writes accumulators to memory.

    ```mlir
    tir.store_tile 0, %C[%i, %j]
    ```

    C1: there is one index per dimension, of which there are at least two.
    C2: the elements are `i32` or `f32`.
    C3: the register has accumulators: it is 0, 1, 2 or 3.
    C4: the registers have been configured before, on the same thread, and not been released since.
    """

    name = "tir.store_tile"

    assembly_format = "custom<Number>($tile) `,` custom<Access>($buffer, $indices) attr-dict"
    custom_directives = (Number, Access)

    def verify_(self) -> None:
        self._check_access()
        _check_accumulators(self, self.tile)  # C3
        _check_configured(self)  # C4


@op_definition
class DotTilesOp(IRDLOperation):
    """Adds dot products of groups to accumulators: of each row of a register with each column of another one.

    ```mlir
    tir.dot_tiles 0, ui8 4, i8 6
    ```

    `acc[i, j] += sum(rows[i, r] . columns[r, j])`, with products of groups as `tir.dot` has them.

    C1: the dtypes are each one of `i8` and `ui8`, or both `bf16`.
    C2: the first register has accumulators, the second one rows and the third one columns. Of these all have sixteen
        groups where K is a sequence of whole steps; otherwise 4 is multiplied with 6, and 5 with 7.
    C3: the registers have been configured before, on the same thread, and not been released since.
    """

    name = "tir.dot_tiles"

    acc = prop_def(IntegerAttr)
    lhs_dtype = prop_def(Attribute)
    lhs = prop_def(IntegerAttr)
    rhs_dtype = prop_def(Attribute)
    rhs = prop_def(IntegerAttr)

    traits = traits_def(UnknownEffects())

    assembly_format = (
        "custom<Number>($acc) `,` custom<TypeProperty>($lhs_dtype) custom<Number>($lhs) `,` "
        "custom<TypeProperty>($rhs_dtype) custom<Number>($rhs) attr-dict"
    )
    custom_directives = (Number, TypeProperty)

    def __init__(self, acc: int, dtypes: tuple[Attribute, Attribute], lhs: int, rhs: int):
        numbers = {"acc": acc, "lhs": lhs, "rhs": rhs}
        super().__init__(
            properties={
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
                "lhs_dtype": dtypes[0],
                "rhs_dtype": dtypes[1],
            }
        )

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floats."""
        return self.lhs_dtype == bf16

    def verify_(self) -> None:
        left, right = self.lhs_dtype, self.rhs_dtype
        if not ({i8, ui8}.issuperset((left, right)) or left == right == bf16):
            raise VerifyException(f"'{self.name}' op expected two of i8 and ui8, or bf16 twice, got {left} and {right}")
            # C1
        _check_accumulators(self, self.acc)  # C2
        _check_factor(self, self.lhs, (ROWS, LAST_ROWS))
        _check_factor(self, self.rhs, (COLUMNS, LAST_COLUMNS))
        _check_configured(self)  # C3


def _check_configured(op: Operation) -> None:
    """Whether the registers are configured where an op is, on the thread that runs it."""
    around: Operation | None = op
    while around is not None:
        before = around.prev_op
        while before is not None and not isinstance(before, ConfigureTilesOp | ReleaseTilesOp):
            before = before.prev_op
        if isinstance(before, ConfigureTilesOp):
            return
        around = None if before is not None else around.parent_op()
        if isinstance(around, ForOp) and around.kind.data is LoopKind.PARALLEL:
            break
    raise VerifyException(f"'{op.name}' op expected 'tir.configure_tiles' before it, on the same thread")


def _check_accumulators(op: Operation, tile: IntegerAttr) -> None:
    if tile.value.data not in ACCUMULATORS:
        raise VerifyException(f"'{op.name}' op expected a register of accumulators, 0 to 3, got {tile.value.data}")


def _check_factor(op: Operation, tile: IntegerAttr, allowed: Sequence[int]) -> None:
    if tile.value.data not in allowed:
        known = " or ".join(map(str, allowed))
        raise VerifyException(f"'{op.name}' op expected register {known}, got {tile.value.data}")
