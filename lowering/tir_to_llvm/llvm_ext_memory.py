"""LLVM's masked, gathering and atomic accesses of memory, which xDSL's llvm dialect lacks."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    I32,
    IntegerAttr,
    SignlessIntegerConstraint,
    StringAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tir_dialect.new_ops import fill_op
from vm_dialect.ops.definition import op_definition


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
