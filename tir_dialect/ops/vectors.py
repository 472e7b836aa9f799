"""Comparison and selection of vectors (xDSL's `arith` has them for scalars), and search in masks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, StringAttr, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import OperandVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.new_ops import new_op
from tir_dialect.ops.assembly_format import Directive, op_definition
from tir_dialect.ops.convert import KIND_OF, ConvertOp
from tir_dialect.ops.directives import SameType, TypeOf, Word, value_of
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
