"""Look-up of bytes in a table that fits into a register, as the shuffle instructions of x86 and Arm do it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, VectorType, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.directives import SameType, TypeOf
from tir_dialect.ops.memory import lanes_of

ENTRIES = 16
"""Of a table: what four bits select one of."""


@op_definition
class LookupOp(IRDLOperation):
    """Replaces each byte of a vector by the entry of a table that its lower four bits select.

    ```mlir
    %y = tir.lookup %x, [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12] : vector<8xi32>
    ```

    C1: the table has 16 entries.
    C2: the vector has one fixed dimension, of `i8` or of `i32`, which are four bytes each.
    """

    name = "tir.lookup"

    table = prop_def(DenseArrayBase.constr(i8))
    bytes = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = (
        "$bytes `,` $table attr-dict `:` custom<TypeOf>(ref($bytes)) custom<SameType>(type($result), ref($bytes))"
    )
    custom_directives = (TypeOf, SameType)

    def __init__(self, bytes: SSAValue | Operation, table: Sequence[int]):
        super().__init__(
            operands=[bytes],
            properties={"table": DenseArrayBase.from_list(i8, table)},
            result_types=[SSAValue.get(bytes).type],
        )

    @property
    def is_of_bytes(self) -> bool:
        """Whether the lanes of the vector are bytes, not words."""
        return self.bytes.type == VectorType(i8, [lanes_of(self.bytes.type) or 0])

    @property
    def entries(self) -> tuple[int, ...]:
        """The table."""
        return tuple(self.table.iter_values())

    def verify_(self) -> None:
        if len(self.entries) != ENTRIES:
            raise VerifyException(f"'tir.lookup' op expected {ENTRIES} entries, got {len(self.entries)}")  # C1
        lanes = lanes_of(self.bytes.type)
        kinds = [] if lanes is None else [VectorType(kind, [lanes]) for kind in (i8, i32)]
        if self.bytes.type not in kinds or self.result.type != self.bytes.type:
            raise VerifyException(f"'tir.lookup' op expected a vector of i8 or i32, got {self.bytes.type}")  # C2
