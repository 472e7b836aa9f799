"""Vectors: comparison and selection (xDSL's `arith` has them for scalars), search in masks, look-up in tables that
fit into a register, and dot products of packed words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DenseArrayBase,
    IndexType,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    VectorType,
    bf16,
    f32,
    i8,
    i16,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import OperandVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.fast_ops import new_op
from tir_dialect.ops.arithmetic import KIND_OF, ConvertOp
from tir_dialect.ops.assembly_format import Directive, SameType, TypeOf, TypeProperty, Word, op_definition, value_of
from tir_dialect.ops.memory import lanes_of

I1 = IntegerType(1)


class MaskType(Directive):
    """Nothing: the result is a mask with the lanes of an operand."""

    mask: TypeDirective
    operand: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.mask.set(state, (VectorType(I1, [lanes_of(value_of(self.operand, state).type) or 1]),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


@op_definition
class CompareOp(IRDLOperation):
    """Compares two vectors lane by lane. The result is a mask of the lanes for which the predicate holds.

    ```mlir
    %m = tir.compare olt %a, %b : vector<8xf32>
    ```

    Predicates are those of `arith.cmpf` for floats and of `arith.cmpi` for integers.

    C1: the operands are vectors of numbers with one fixed dimension, of one type.
    C2: the predicate is one for such numbers.
    C3: the result is a mask with as many lanes.
    """

    name = "tir.compare"

    predicate = prop_def(StringAttr)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = (
        "custom<Word>($predicate) $lhs `,` $rhs attr-dict `:` custom<TypeOf>(ref($rhs)) "
        "custom<MaskType>(type($result), ref($lhs))"
    )
    custom_directives = (Word, TypeOf, MaskType)

    def __init__(self, predicate: str, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        lanes = lanes_of(SSAValue.get(lhs).type) or 1
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[VectorType(I1, [lanes])],
        )

    @property
    def is_float(self) -> bool:
        """Whether floats are compared."""
        return isa(self.lhs.type, VectorType) and isinstance(self.lhs.type.element_type, AnyFloat)

    @property
    def number(self) -> int:
        """The number of the predicate in `arith`."""
        return self._predicates().index(self.predicate.data)

    def _predicates(self) -> list[str]:
        known = arith.CMPF_COMPARISON_OPERATIONS if self.is_float else arith.CMPI_COMPARISON_OPERATIONS
        return list(known)

    def verify_(self) -> None:
        lanes = lanes_of(self.lhs.type)
        if lanes is None or self.lhs.type != self.rhs.type or not _has_numbers(self.lhs):
            raise VerifyException(
                "'tir.compare' op expected two vectors of numbers of one type with one fixed dimension, got "
                f"{self.lhs.type} and {self.rhs.type}"
            )  # C1
        if self.predicate.data not in self._predicates():
            raise VerifyException(
                f"'tir.compare' op expected one of {', '.join(self._predicates())}, got {self.predicate.data}"
            )  # C2
        if self.result.type != VectorType(I1, [lanes]):
            raise VerifyException(
                f"'tir.compare' op expected a result of type {VectorType(I1, [lanes])}, got {self.result.type}"
            )  # C3


def _has_numbers(value: SSAValue) -> bool:
    return isa(value.type, VectorType) and isinstance(value.type.element_type, AnyFloat | IntegerType | IndexType)


@op_definition
class SelectOp(IRDLOperation):
    """Selects each lane from the first vector where the mask is set, and from the second one elsewhere.

    ```mlir
    %r = tir.select %mask, %a, %b : vector<8xf32>
    ```

    C1: the vectors and the result have one type.
    C2: the mask is of `i1`, with as many lanes.
    """

    name = "tir.select"

    mask = operand_def(VectorType)
    on = operand_def(VectorType)
    off = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = (
        "$mask `,` $on `,` $off attr-dict `:` custom<TypeOf>(ref($off)) custom<SameType>(type($result), ref($on))"
    )
    custom_directives = (TypeOf, SameType)

    def __init__(self, mask: SSAValue | Operation, on: SSAValue | Operation, off: SSAValue | Operation):
        super().__init__(operands=[mask, on, off], result_types=[SSAValue.get(on).type])

    def verify_(self) -> None:
        if not self.on.type == self.off.type == self.result.type:
            raise VerifyException(
                f"'tir.select' op expected vectors of type {self.result.type}, got {self.on.type} and {self.off.type}"
            )  # C1
        lanes = lanes_of(self.result.type)
        if lanes is None or self.mask.type != VectorType(I1, [lanes]):
            raise VerifyException(
                f"'tir.select' op expected a mask of i1 for {self.result.type}, got {self.mask.type}"
            )  # C2


@op_definition
class FirstLaneOp(IRDLOperation):
    """The index of the first set lane of a mask, or the number of lanes if none is set.

    ```mlir
    %i = tir.first_lane %mask : vector<16xi1>
    ```

    C1: the mask is a vector of `i1` with one fixed dimension.
    """

    name = "tir.first_lane"

    mask = operand_def(VectorType)
    result = result_def(IndexType())

    traits = traits_def(Pure())

    assembly_format = "$mask attr-dict `:` custom<TypeOf>(ref($mask))"
    custom_directives = (TypeOf,)

    def __init__(self, mask: SSAValue | Operation):
        super().__init__(operands=[mask], result_types=[IndexType()])

    def verify_(self) -> None:
        lanes = lanes_of(self.mask.type)
        if lanes is None or self.mask.type != VectorType(I1, [lanes]):
            raise VerifyException(
                f"'tir.first_lane' op expected a vector of i1 with one fixed dimension, got {self.mask.type}"
            )  # C1


def by_lane(op: Operation, operands: Sequence[SSAValue], lanes: int) -> Operation:
    """What `op` of arith or math does with scalars, for vectors; arith compares, chooses and converts scalars only."""
    kind = VectorType(op.results[0].type, [lanes])
    match op:
        case arith.CmpfOp():
            return CompareOp(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], *operands)
        case arith.CmpiOp():
            return CompareOp(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], *operands)
        case arith.SelectOp() if lanes_of(operands[0].type) is not None:
            return SelectOp(*operands)
        case _ if type(op) in KIND_OF:
            return ConvertOp(KIND_OF[type(op)], operands[0], kind)
        case _:
            return new_op(type(op), operands, (kind,), op.properties)


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


ui8 = IntegerType(8, Signedness.UNSIGNED)

PARTS: Mapping[Attribute, int] = {i8: 4, ui8: 4, i16: 2, bf16: 2}
"""How many numbers of a dtype a word of 32 bits has, the first in its lowest bits."""


@op_definition
class DotOp(IRDLOperation):
    """Multiplies the numbers packed into the 32-bit words of two vectors and adds the products, lane by lane, to a sum.

    ```mlir
    %s = tir.dot ui8 %a, i8 %b, %sum : vector<16xi32>
    %t = tir.dot bf16 %a, bf16 %b, %sum : vector<16xf32>
    %u = tir.dot i16 %a, i16 %b, %sum : vector<8xi32>
    %v = tir.dot saturating ui8 %a, i8 %b, %sum : vector<8xi32>
    ```

    A word holds four `i8`/`ui8` or two `i16` or `bf16` numbers. Integer sums wrap around; with `saturating`, sums of
    the first two and of the last two products of bytes are first limited to the range of `i16`, as x86 without dot
    products of bytes does it (`vpmaddubsw`). `bf16` products are accumulated in `f32` in unspecified order, and
    subnormal numbers may be flushed to 0.

    C1: the dtypes are each one of `i8` and `ui8`, or both `i16`, or both `bf16`.
    C2: the sum is a vector with one fixed dimension, of `f32` for `bf16` and of `i32` for integers.
    C3: the words are vectors of `i32` with as many lanes.
    C4: only products of `ui8` with `i8` are saturating.
    """

    name = "tir.dot"

    lhs_dtype = prop_def(Attribute)
    rhs_dtype = prop_def(Attribute)
    saturating = opt_prop_def(UnitAttr)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    sum = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = (
        "(`saturating` $saturating^)? "
        "custom<TypeProperty>($lhs_dtype) $lhs `,` custom<TypeProperty>($rhs_dtype) $rhs `,` $sum attr-dict "
        "`:` custom<TypeOf>(ref($sum)) custom<SameType>(type($result), ref($sum))"
    )
    custom_directives = (TypeProperty, TypeOf, SameType)

    def __init__(
        self,
        dtypes: tuple[Attribute, Attribute],
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        sum: SSAValue | Operation,
        *,
        saturating: bool = False,
    ):
        super().__init__(
            operands=[lhs, rhs, sum],
            properties={
                "lhs_dtype": dtypes[0],
                "rhs_dtype": dtypes[1],
                "saturating": UnitAttr() if saturating else None,
            },
            result_types=[SSAValue.get(sum).type],
        )

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floats."""
        return isinstance(self.lhs_dtype, BFloat16Type)

    def verify_(self) -> None:
        dtypes = (self.lhs_dtype, self.rhs_dtype)
        if dtypes[0] != dtypes[1] if dtypes[0] in (i16, bf16) else not {i8, ui8}.issuperset(dtypes):
            raise VerifyException(
                f"'tir.dot' op expected two of i8 and ui8, or i16 or bf16 twice, got {dtypes[0]} and {dtypes[1]}"
            )  # C1
        lanes, element = lanes_of(self.sum.type), f32 if self.is_float else i32
        if lanes is None or self.sum.type != VectorType(element, [lanes]) or self.result.type != self.sum.type:
            raise VerifyException(f"'tir.dot' op expected a vector of {element} as sum, got {self.sum.type}")  # C2
        words = VectorType(i32, [lanes])
        if self.lhs.type != words or self.rhs.type != words:
            raise VerifyException(
                f"'tir.dot' op expected words of type {words}, got {self.lhs.type} and {self.rhs.type}"
            )  # C3
        if self.saturating is not None and dtypes != (ui8, i8):
            raise VerifyException(
                f"'tir.dot' op expected ui8 and i8 for saturating sums, got {dtypes[0]} and {dtypes[1]}"
            )  # C4
