"""LLVM instructions that xDSL's llvm dialect lacks, in the same style, until they exist upstream; among them masked,
gathering and atomic accesses of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    I32,
    AnyFloatConstr,
    DenseArrayBase,
    DenseIntElementsAttr,
    IntegerAttr,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.dialects.cf import SwitchOpCases
from xdsl.dialects.llvm import ALL_FCMP_FLAGS, FastMathAttr, LLVMPointerType
from xdsl.ir import Attribute, Block, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    operand_def,
    prop_def,
    result_def,
    successor_def,
    traits_def,
    var_operand_def,
    var_successor_def,
)
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.fast_ops import fill_op
from vm_dialect.ops.base import op_definition


@op_definition
class MaskedLoadOp(IRDLOperation):
    """The elements whose mask bit is set, `passthru` elsewhere; memory under a clear bit is not touched.

    `llvm_ext.masked_load %p, %mask, %passthru {alignment = 4 : i32} : vector<8xi1>, vector<8xf32>`
    """

    name = "llvm_ext.masked_load"
    T: ClassVar = VarConstraint("T", VectorType.constr(AnyAttr()))
    ptr = operand_def(LLVMPointerType())
    mask = operand_def(VectorType.constr(EqAttrConstraint(i1)))
    passthru = operand_def(T)
    alignment = prop_def(IntegerAttr.constr(I32))
    res = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$ptr `,` $mask `,` $passthru attr-dict `:` type($mask) `,` type($res)"

    def __init__(self, ptr: SSAValue, mask: SSAValue, passthru: SSAValue, alignment: int):
        fill_op(self, (ptr, mask, passthru), (passthru.type,), {"alignment": _alignment(alignment)})


@op_definition
class MaskedStoreOp(IRDLOperation):
    """Stores the elements whose mask bit is set; memory under a clear bit is not touched.

    `llvm_ext.masked_store %value, %p, %mask {alignment = 4 : i32} : vector<8xf32>, vector<8xi1>`
    """

    name = "llvm_ext.masked_store"
    value = operand_def(VectorType.constr(AnyAttr()))
    ptr = operand_def(LLVMPointerType())
    mask = operand_def(VectorType.constr(EqAttrConstraint(i1)))
    alignment = prop_def(IntegerAttr.constr(I32))
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $ptr `,` $mask attr-dict `:` type($value) `,` type($mask)"

    def __init__(self, value: SSAValue, ptr: SSAValue, mask: SSAValue, alignment: int):
        fill_op(self, (value, ptr, mask), (), {"alignment": _alignment(alignment)})


@op_definition
class GatherOp(IRDLOperation):
    """Loads `ptr[offset]` for each offset, counted in elements, whose mask bit is set; `passthru` elsewhere.

    `llvm_ext.gather %p, %offsets, %mask, %passthru {alignment = 4 : i32} : vector<8xi64>, vector<8xi1>, vector<8xf32>`
    """

    name = "llvm_ext.gather"
    T: ClassVar = VarConstraint("T", VectorType.constr(AnyAttr()))
    ptr = operand_def(LLVMPointerType())
    offsets = operand_def(VectorType.constr(SignlessIntegerConstraint))
    mask = operand_def(VectorType.constr(EqAttrConstraint(i1)))
    passthru = operand_def(T)
    alignment = prop_def(IntegerAttr.constr(I32))
    res = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$ptr `,` $offsets `,` $mask `,` $passthru attr-dict `:` type($offsets) `,` type($mask) `,` type($res)"
    )

    def __init__(self, ptr: SSAValue, offsets: SSAValue, mask: SSAValue, passthru: SSAValue, alignment: int):
        super().__init__(
            operands=[ptr, offsets, mask, passthru],
            properties={"alignment": IntegerAttr(alignment, i32)},
            result_types=[passthru.type],
        )


@op_definition
class ScatterOp(IRDLOperation):
    """Stores to `ptr[offset]` for each offset, counted in elements, whose mask bit is set, in order of the lanes.

    `llvm_ext.scatter %value, %p, %offsets, %mask {alignment = 4 : i32} : vector<8xf32>, vector<8xi64>, vector<8xi1>`
    """

    name = "llvm_ext.scatter"
    value = operand_def(VectorType.constr(AnyAttr()))
    ptr = operand_def(LLVMPointerType())
    offsets = operand_def(VectorType.constr(SignlessIntegerConstraint))
    mask = operand_def(VectorType.constr(EqAttrConstraint(i1)))
    alignment = prop_def(IntegerAttr.constr(I32))
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $ptr `,` $offsets `,` $mask attr-dict `:` type($value) `,` type($offsets) `,` type($mask)"
    )

    def __init__(self, value: SSAValue, ptr: SSAValue, offsets: SSAValue, mask: SSAValue, alignment: int):
        super().__init__(operands=[value, ptr, offsets, mask], properties={"alignment": IntegerAttr(alignment, i32)})


ATOMIC_OPERATIONS = ("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin")


@op_definition
class AtomicRMWOp(IRDLOperation):
    """Reads, combines and writes back in one step, sequentially consistent; gives the old value.

    `%old = llvm_ext.atomicrmw "add" %p, %x : i64`

    C1: the operation is one of `ATOMIC_OPERATIONS`.
    """

    name = "llvm_ext.atomicrmw"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)
    ptr = operand_def(LLVMPointerType())
    value = operand_def(T)
    operation = prop_def(StringAttr)
    res = result_def(T)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$operation $ptr `,` $value attr-dict `:` type($value)"

    def __init__(self, operation: str, ptr: SSAValue, value: SSAValue):
        super().__init__(
            operands=[ptr, value], properties={"operation": StringAttr(operation)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        """C1."""
        if self.operation.data not in ATOMIC_OPERATIONS:
            expected = ", ".join(ATOMIC_OPERATIONS)
            raise VerifyException(f"'{self.name}' op expected one of {expected}, got {self.operation.data}")  # C1


@cache
def _alignment(size: int) -> IntegerAttr:
    return IntegerAttr(size, i32)


FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)
INT_LIKE = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
BOOL_LIKE = EqAttrConstraint(i1) | VectorType.constr(EqAttrConstraint(i1))
FCMP_PREDICATES: tuple[str, ...] = tuple(str(flag) for flag in ALL_FCMP_FLAGS)


class _CastOp(IRDLOperation):
    """A conversion between equally many floats and integers."""

    traits = traits_def(Pure())
    assembly_format = "$arg attr-dict `:` type($arg) `to` type($result)"

    def __init__(self, arg: SSAValue, result_type: Attribute):
        super().__init__(operands=[arg], result_types=[result_type])

    def verify_(self) -> None:
        """C1."""
        source, target = self.operands[0].type, self.results[0].type
        if _shape(source) != _shape(target):
            raise VerifyException(f"'{self.name}' op expected equally many elements, got {source} and {target}")  # C1


def _shape(type_: Attribute) -> tuple[int, ...]:
    return type_.get_shape() if isa(type_, VectorType) else ()


@op_definition
class UIToFPOp(_CastOp):
    """An unsigned integer as the nearest float: `llvm_ext.uitofp %x : i8 to f32`.

    C1: as many elements in as out.
    """

    name = "llvm_ext.uitofp"
    arg = operand_def(INT_LIKE)
    result = result_def(FLOAT_LIKE)


@op_definition
class FPToSIOp(_CastOp):
    """A float truncated to a signed integer; poison where it does not fit: `llvm_ext.fptosi %x : f32 to i8`.

    C1: as many elements in as out.
    """

    name = "llvm_ext.fptosi"
    arg = operand_def(FLOAT_LIKE)
    result = result_def(INT_LIKE)


@op_definition
class FPToUIOp(_CastOp):
    """A float truncated to an unsigned integer; poison where it does not fit: `llvm_ext.fptoui %x : f32 to i8`.

    C1: as many elements in as out.
    """

    name = "llvm_ext.fptoui"
    arg = operand_def(FLOAT_LIKE)
    result = result_def(INT_LIKE)


@op_definition
class FCmpOp(IRDLOperation):
    """Compares floats or vectors of floats: `llvm_ext.fcmp "olt" %x, %y : vector<8xf32>, vector<8xi1>`.

    C1: the predicate is one of `FCMP_PREDICATES`.
    C2: as many results as elements.
    """

    name = "llvm_ext.fcmp"
    T: ClassVar = VarConstraint("T", FLOAT_LIKE)
    lhs = operand_def(T)
    rhs = operand_def(T)
    predicate = prop_def(StringAttr)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(BOOL_LIKE)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($res)"

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue):
        shape = _shape(lhs.type)
        result_type = VectorType(i1, shape) if shape else i1
        super().__init__(
            operands=[lhs, rhs], properties={"predicate": StringAttr(predicate)}, result_types=[result_type]
        )

    def verify_(self) -> None:
        """C1 and C2."""
        if self.predicate.data not in FCMP_PREDICATES:
            expected = ", ".join(FCMP_PREDICATES)
            raise VerifyException(f"'{self.name}' op expected one of {expected}, got {self.predicate.data}")  # C1
        if _shape(self.lhs.type) != _shape(self.res.type):
            raise VerifyException(
                f"'{self.name}' op expected as many results as elements, got {self.res.type} for {self.lhs.type}"
            )  # C2


@op_definition
class SelectOp(IRDLOperation):
    """`a` where the condition holds, else `b`, element by element.

    `llvm_ext.select %c, %a, %b : vector<4xi1>, vector<4xf32>`

    C1: a vector condition has as many elements as the values.
    """

    name = "llvm_ext.select"
    T: ClassVar = VarConstraint("T", AnyAttr())
    cond = operand_def(BOOL_LIKE)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        """C1."""
        shape = _shape(self.cond.type)
        if shape and shape != _shape(self.res.type):
            raise VerifyException(
                f"'{self.name}' op expected equally many elements, got {self.cond.type} and {self.res.type}"
            )  # C1


@op_definition
class ExtractElementOp(IRDLOperation):
    """One element of a vector: `llvm_ext.extractelement %v[%i : i64] : vector<8xf32>`.

    C1: the result is of the vector's element type.
    """

    name = "llvm_ext.extractelement"
    vector = operand_def(VectorType.constr(AnyAttr()))
    index = operand_def(SignlessIntegerConstraint)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$vector `[` $index `:` type($index) `]` attr-dict `:` type($vector) `->` type($res)"

    def __init__(self, vector: SSAValue, index: SSAValue, result_type: Attribute):
        super().__init__(operands=[vector, index], result_types=[result_type])

    def verify_(self) -> None:
        """C1."""
        vector_type = self.vector.type
        if not isa(vector_type, VectorType) or vector_type.element_type != self.res.type:
            raise VerifyException(f"'{self.name}' op expected an element of {vector_type}, got {self.res.type}")  # C1


@op_definition
class SwitchOp(IRDLOperation):
    """Branches on an integer, in the syntax of `cf.switch`.

    `llvm_ext.switch %x : i32, [default: ^a, 42: ^b(%y : i32)]`

    C1: as many values, and argument counts, as case blocks.
    """

    name = "llvm_ext.switch"
    flag = operand_def(SignlessIntegerConstraint)
    default_operands = var_operand_def()
    case_operands = var_operand_def()
    case_values = prop_def(DenseIntElementsAttr)
    case_operand_segments = prop_def(DenseArrayBase.constr(i32))
    default_block = successor_def()
    case_blocks = var_successor_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = (
        "$flag `:` type($flag) `,` `[` `\\n` custom<SwitchOpCases>(ref(type($flag)), $default_block, $default_operands,"
        " type($default_operands), $case_values, $case_blocks, $case_operands, $case_operand_segments,"
        " type($case_operands)) `\\n` `]` attr-dict"
    )
    custom_directives = (SwitchOpCases,)

    def __init__(
        self,
        flag: SSAValue,
        default: tuple[Block, Sequence[SSAValue]],
        cases: Sequence[tuple[int, Block, Sequence[SSAValue]]],
    ):
        flag_type = flag.type
        if not isa(flag_type, IntegerType):
            raise ValueError(f"'{self.name}' op expected an integer, got {flag_type}")
        values = DenseIntElementsAttr.from_list(VectorType(flag_type, (len(cases),)), [value for value, _, _ in cases])
        segments = DenseArrayBase.from_list(i32, [len(operands) for _, _, operands in cases])
        super().__init__(
            operands=[flag, default[1], [operand for _, _, operands in cases for operand in operands]],
            properties={"case_values": values, "case_operand_segments": segments},
            successors=[default[0], [block for _, block, _ in cases]],
        )

    def verify_(self) -> None:
        """C1."""
        counts = (len(self.case_values), len(self.case_operand_segments))
        if counts != (len(self.case_blocks), len(self.case_blocks)):
            raise VerifyException(
                f"'{self.name}' op expected {len(self.case_blocks)} values and argument counts, got {counts}"
            )  # C1


LLVM_EXT = Dialect(
    "llvm_ext",
    [
        AtomicRMWOp,
        ExtractElementOp,
        FCmpOp,
        FPToSIOp,
        FPToUIOp,
        GatherOp,
        MaskedLoadOp,
        MaskedStoreOp,
        ScatterOp,
        SelectOp,
        SwitchOp,
        UIToFPOp,
    ],
)
