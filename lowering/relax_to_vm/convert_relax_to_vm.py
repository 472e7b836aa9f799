"""`convert-relax-to-vm`: relax functions with explicit memory and checks become functions of the machine.
There is a pattern for every relax op with explicit memory and checks.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import Finding, refuse
from lowering.registry import Pass
from lowering.relax.lower_shapes import implicit_checks
from lowering.relax_to_vm.control_flow import (
    ConvertCall,
    ConvertCallClosure,
    ConvertCallPacked,
    ConvertCallPurePacked,
    ConvertExternFunc,
    ConvertFor,
    ConvertIf,
    ConvertMakeClosure,
    ConvertReturn,
    ConvertWhile,
    ConvertYield,
    convert_function,
)
from lowering.relax_to_vm.converter import Constants, ConvertCheckArgs, ConvertGuard, ConvertMatchCast
from lowering.relax_to_vm.values import (
    ConvertAllocStorage,
    ConvertAllocTensor,
    ConvertAssert,
    ConvertCallKernel,
    ConvertCheckApart,
    ConvertConstant,
    ConvertDType,
    ConvertKill,
    ConvertNull,
    ConvertPrim,
    ConvertPrint,
    ConvertReshape,
    ConvertShape,
    ConvertShapeGet,
    ConvertShapeOf,
    ConvertShapeToTensor,
    ConvertSize,
    ConvertStorageTensor,
    ConvertString,
    ConvertTensorToShape,
    ConvertTuple,
    ConvertTupleGet,
    ConvertView,
)
from lowering.rewriting import PatternIndex
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbol_name

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


class ConvertRelaxToVMPass(Pass):
    """Converts every `relax.func` to a `vm.func`; PrimFuncs stay, as targets of `vm.call_kernel`.

    Before:

    ```mlir
    relax.func @main(%x: !relax.object) -> !relax.tensor<[_], f32> force_pure {
      %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "main"
      %out = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @exp(%x_1, %out) sizes [n]
      relax.return %out
    }
    ```

    After:

    ```mlir
    vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["x"]} {
      %x_1 = vm.check_tensor %x rank 1 dtype f32 as "main: argument #0 (x)"
      %n = vm.tensor_dim %x_1[0]
      %out = vm.new_tensor [%n] f32
      vm.call_kernel @exp[%n](%x_1, %out)
      vm.ret %out
    }
    ```

    Expects `lower-shapes`, and refuses a function whose signature says shapes. Dimensions become `i64` registers, each
    computed once in its scope; structured control flow becomes blocks and jumps. An op without a form in the machine is
    an error at the op, and so is a storage that would leave its call. Idempotent.
    """

    name = "convert-relax-to-vm"
    removes = ("relax.func",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts the functions in their order."""
        refuse(
            Finding.at(each, "has a signature with checks that are not explicit", "run 'lower-shapes' before")
            for each in implicit_checks(op)
        )
        functions = [func for func in op.ops if isinstance(func, FuncOp)]
        constants = Constants({name for inner in op.ops if (name := symbol_name(inner)) is not None})
        converted = [convert_function(func, constants, PATTERNS) for func in functions]
        Rewriter.insert_op(list(constants), InsertPoint.at_start(op.body.block))
        for func, replacement in zip(functions, converted, strict=True):
            Rewriter.replace_op(func, replacement, [])
