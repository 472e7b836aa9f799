"""The interface of kernels to native code: `i32 f(i64 sizes..., pointers and scalars...)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Operation

from lowering.tir_to_llvm.arithmetic.scalars import llvm_type
from lowering.vm_to_llvm.abi import I32, I64, PTR
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Kernel:
    """One kernel."""

    symbol: str
    """Its name in the objects."""

    parameters: tuple[Attribute, ...]
    """Types: `i64` for sizes, `!llvm.ptr` for tensors, the element type for scalars."""

    @property
    def function_type(self) -> llvm.LLVMFunctionType:
        """As an LLVM function."""
        return llvm.LLVMFunctionType([llvm_type(parameter) for parameter in self.parameters], I32)


def known_kernels(ops: Iterable[Operation], symbols: Mapping[str, str]) -> dict[str, Kernel]:
    """The kernels that `ops` define or declare, as `tir.prim_func` or `llvm.func`, by name.

    `symbols` has the names in the objects of those that are called otherwise there.
    """
    kernels: dict[str, Kernel] = {}
    for op in ops:
        if isinstance(op, PrimFuncOp):
            parameters = [PTR if isinstance(param.type, BufferType) else param.type for param in op.params]
            name, types = op.sym_name.data, (*([I64] * len(op.symbols)), *parameters)
        elif isinstance(op, llvm.FuncOp):
            name, types = op.sym_name.data, op.function_type.inputs.data
        else:
            continue
        kernels[name] = Kernel(symbols.get(name, name), tuple(types))
    return kernels
