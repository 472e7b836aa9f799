"""Kernels as tvm-ffi functions, for callers that are not compiled: sizes, tensors and scalars are all checked."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.relax_to_vm.sizes import Sizes
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType
from vm_dialect import messages
from vm_dialect.ops.calls import CallKernelOp
from vm_dialect.ops.checks import AssertOp, CheckBoolOp, CheckFloatOp, CheckIntOp, CheckTensorOp
from vm_dialect.ops.shapes import TensorDimOp
from vm_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.types import I1, OBJECT, TensorType


def kernel_wrappers(prim_funcs: Iterable[PrimFuncOp]) -> ModuleOp:
    """A module of the vm dialect with one public function for each public prim_func, of the same name.

    ```mlir
    tir.prim_func @exp[%n](%X : !tir.buffer<[n], f32>) { ... }
    // gives
    vm.func @exp(%n : !vm.object, %X : !vm.object) {
      %0 = vm.check_int %n as "exp: argument #0 (n)"
      %1 = vm.check_tensor %X rank 1 dtype f32 as "exp: argument #1 (X)"
      %2 = vm.tensor_dim %1[0]
      %3 = vm.int eq %0, %2
      vm.assert %3, "exp: argument #1 (X) dimension 0: expected n = {}, got {}"(%0, %2)
      vm.call_kernel @exp[%0](%1)
      vm.ret
    }
    ```
    """
    return ModuleOp([_Wrapper(function).build() for function in prim_funcs if not function.is_private])


class _Wrapper:
    """The state of making one wrapper."""

    def __init__(self, function: PrimFuncOp) -> None:
        self.function = function
        self.name = function.sym_name.data
        self.parameters = _parameter_names(function)
        self.wrapper = FuncOp(self.name, ([OBJECT] * len(self.parameters), []), arg_names=self.parameters)
        self.sizes = Sizes(self.emit)

    def emit(self, op: Operation) -> Operation:
        op.location = self.function.location
        self.wrapper.body.block.add_op(op)
        return op

    def build(self) -> FuncOp:
        """The whole function."""
        self.wrapper.location = self.function.location
        arguments = self.wrapper.body.block.args
        count = len(self.function.symbols)
        sizes: list[SSAValue] = []
        for index, name in enumerate(self.function.symbol_names):
            sizes.append(self.emit(CheckIntOp(arguments[index], self.subject(index))).results[0])
            self.sizes.bind(symbol(name), sizes[-1])
        checked = [
            self.emit(_check(arguments[index], param.type, self.subject(index))).results[0]
            for index, param in enumerate(self.function.params, count)
        ]
        for index, (value, param) in enumerate(zip(checked, self.function.params, strict=True), count):
            if isinstance(param.type, BufferType):
                self.check_shape(value, param.type.shape, self.subject(index))
        self.emit(CallKernelOp(self.name, sizes, checked))
        self.emit(ReturnOp())
        return self.wrapper

    def subject(self, index: int) -> str:
        """What errors about an argument begin with."""
        return messages.argument(self.name, index, self.parameters[index])

    def check_shape(self, tensor: SSAValue, shape: Iterable[Dim], subject: str) -> None:
        """A wrong size would make the kernel read or write past the end."""
        for axis, dim in enumerate(shape):
            expected = self.sizes.value(dim)
            got = self.emit(TensorDimOp(tensor, axis)).results[0]
            same = self.sizes.apply("eq", expected, got)
            message = messages.wrong_value(messages.describe_dimension(subject, axis), str(dim))
            self.emit(AssertOp(same, message, [expected, got]))


def _parameter_names(function: PrimFuncOp) -> list[str]:
    """Distinct names of the symbols and parameters, in order."""
    params = [param.name_hint or f"arg{index}" for index, param in enumerate(function.params)]
    names = [*function.symbol_names, *params]
    return names if len(set(names)) == len(names) else [f"{name}_{index}" for index, name in enumerate(names)]


def _check(argument: SSAValue, kind: Attribute, subject: str) -> Operation:
    if isinstance(kind, BufferType):
        return CheckTensorOp(argument, TensorType(kind.rank, kind.dtype), subject)
    if kind == I1:
        return CheckBoolOp(argument, subject)
    return (CheckIntOp if isinstance(kind, IntegerType) else CheckFloatOp)(argument, subject)
