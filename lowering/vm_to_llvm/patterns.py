"""The patterns of `convert-vm-to-llvm`: what every op of a `vm.func` becomes."""

from __future__ import annotations

from lowering.rewriting import PatternIndex
from lowering.vm_to_llvm.ops.calls import (
    LowerCall,
    LowerCallClosure,
    LowerCallKernel,
    LowerCallPacked,
    LowerMakeClosure,
)
from lowering.vm_to_llvm.ops.checks import (
    LowerAssert,
    LowerCheckApart,
    LowerCheckBool,
    LowerCheckFloat,
    LowerCheckFunc,
    LowerCheckInt,
    LowerCheckShape,
    LowerCheckTensor,
    LowerCheckTuple,
)
from lowering.vm_to_llvm.ops.constants import LowerConst, LowerConstantTensor, LowerDtype, LowerNull, LowerStr
from lowering.vm_to_llvm.ops.containers import LowerMakeTuple, LowerTupleGet
from lowering.vm_to_llvm.ops.control import LowerGoto, LowerIf, LowerReturn
from lowering.vm_to_llvm.ops.integers import LowerInt
from lowering.vm_to_llvm.ops.memory import (
    LowerAllocStorage,
    LowerAllocTensor,
    LowerKill,
    LowerNewTensor,
    LowerReadCond,
    LowerView,
)
from lowering.vm_to_llvm.ops.shapes import LowerMakeShape, LowerReadInt, LowerShapeDim, LowerShapeOf, LowerTensorDim

PATTERNS = PatternIndex(
    [
        LowerConst(),
        LowerStr(),
        LowerDtype(),
        LowerNull(),
        LowerConstantTensor(),
        LowerInt(),
        LowerCheckTensor(),
        LowerCheckShape(),
        LowerCheckTuple(),
        LowerCheckFunc(),
        LowerCheckApart(),
        LowerCheckInt(),
        LowerCheckBool(),
        LowerCheckFloat(),
        LowerAssert(),
        LowerTensorDim(),
        LowerShapeDim(),
        LowerReadInt(),
        LowerShapeOf(),
        LowerMakeShape(),
        LowerAllocStorage(),
        LowerAllocTensor(),
        LowerNewTensor(),
        LowerView(),
        LowerReadCond(),
        LowerKill(),
        LowerMakeTuple(),
        LowerTupleGet(),
        LowerCall(),
        LowerCallKernel(),
        LowerCallPacked(),
        LowerCallClosure(),
        LowerMakeClosure(),
        LowerGoto(),
        LowerIf(),
        LowerReturn(),
    ]
)
"""Patterns of the conversion, by op class."""
