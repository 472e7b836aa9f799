"""The patterns of `convert-relax-to-vm`: what every relax op with explicit memory and checks becomes."""

from __future__ import annotations

from lowering.relax_to_vm.binding import ConvertCheckArgs, ConvertMatchCast
from lowering.relax_to_vm.calls import (
    ConvertCall,
    ConvertCallClosure,
    ConvertCallPacked,
    ConvertCallPurePacked,
    ConvertExternFunc,
    ConvertMakeClosure,
    ConvertReturn,
)
from lowering.relax_to_vm.control_flow import ConvertFor, ConvertIf, ConvertWhile, ConvertYield
from lowering.relax_to_vm.effects import ConvertAssert, ConvertPrint
from lowering.relax_to_vm.guards import ConvertGuard
from lowering.relax_to_vm.manipulation import ConvertReshape, ConvertView
from lowering.relax_to_vm.memory import (
    ConvertAllocStorage,
    ConvertAllocTensor,
    ConvertCallKernel,
    ConvertCheckApart,
    ConvertKill,
    ConvertStorageTensor,
)
from lowering.relax_to_vm.shapes import (
    ConvertShape,
    ConvertShapeGet,
    ConvertShapeOf,
    ConvertShapeToTensor,
    ConvertSize,
    ConvertTensorToShape,
    ConvertTuple,
    ConvertTupleGet,
)
from lowering.relax_to_vm.values import ConvertConstant, ConvertDType, ConvertNull, ConvertPrim, ConvertString
from lowering.rewriting import PatternIndex

PATTERNS = PatternIndex(
    [
        ConvertCheckArgs(),
        ConvertMatchCast(),
        ConvertCall(),
        ConvertCallClosure(),
        ConvertMakeClosure(),
        ConvertExternFunc(),
        ConvertIf(),
        ConvertYield(),
        ConvertWhile(),
        ConvertFor(),
        ConvertPrint(),
        ConvertAssert(),
        ConvertGuard(),
        ConvertView(),
        ConvertReshape(),
        ConvertAllocTensor(),
        ConvertAllocStorage(),
        ConvertStorageTensor(),
        ConvertCallKernel(),
        ConvertCheckApart(),
        ConvertKill(),
        ConvertCallPacked(),
        ConvertCallPurePacked(),
        ConvertShape(),
        ConvertShapeOf(),
        ConvertShapeGet(),
        ConvertSize(),
        ConvertShapeToTensor(),
        ConvertTensorToShape(),
        ConvertTuple(),
        ConvertTupleGet(),
        ConvertReturn(),
        ConvertConstant(),
        ConvertPrim(),
        ConvertString(),
        ConvertDType(),
        ConvertNull(),
    ]
)
"""Patterns of the conversion, by op class."""
