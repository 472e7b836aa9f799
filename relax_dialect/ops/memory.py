"""Explicit memory: allocation, destination-passing calls of PrimFuncs, their condition, and end of life.

These ops appear when a program is lowered (`lower-call-tir`, `plan-memory`, `insert-kills`). Their
sizes are dimensions, so the rule of symbols holds for them as for types: a symbol is used only where a witness
dominates.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, FlatSymbolRefAttrConstr, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.callees import check_layouts
from relax_dialect.ops.directives import Arguments, Message, NamedDims, TensorResult
from relax_dialect.scope import find_function, prover_at
from relax_dialect.struct_info.types import ObjectType, ShapeType, TensorType
from relax_dialect.traits import EffectsOfImpurity, MayBeImpure, OnlyReadsTensors
from tir_dialect.dims import Dim, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.assembly_format import DimExpr, Symbol, op_definition
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import DimAttr


def _verify_allocatable(op: Operation, tensor: TensorType) -> None:
    if tensor.known_dims is None or tensor.dtype is None:
        raise VerifyException(f"'{op.name}' op expected a tensor type with known shape and dtype, got {tensor}")


@op_definition
class AllocTensorOp(IRDLOperation):
    """A new tensor with memory of its own; its elements are not initialised.

    ```mlir
    %t = relax.alloc_tensor : !relax.tensor<[n, 4], f32>
    %u = relax.alloc_tensor shape(%s) : !relax.tensor<[_], f32>
    ```

    C1: the dtype is known, and the shape too unless it is an operand.
    """

    name = "relax.alloc_tensor"

    shape = opt_operand_def(ShapeType)
    result = result_def(TensorType)

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "(`shape` `(` $shape^ `)`)? attr-dict `:` custom<TensorResult>(type($result))"
    custom_directives = (TensorResult,)

    def __init__(self, result_type: TensorType, shape: SSAValue | Operation | None = None):
        super().__init__(operands=[shape], result_types=[result_type])

    def verify_(self) -> None:
        if self.shape is None:
            _verify_allocatable(self, self.result.type)  # C1
        elif self.result.type.dtype is None:
            raise VerifyException(f"'{self.name}' op expected a known dtype, got {self.result.type}")  # C1


@op_definition
class AllocStorageOp(IRDLOperation):
    """Raw memory of `size` bytes that lives until it is killed: the arena of one call.

    ```mlir
    %s = relax.alloc_storage size 64 * n
    ```
    """

    name = "relax.alloc_storage"

    size = prop_def(DimAttr)
    result = result_def(ObjectType)

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "`size` custom<DimExpr>($size) attr-dict"
    custom_directives = (DimExpr,)

    def __init__(self, size: Dim | DimAttr):
        size = size if isinstance(size, DimAttr) else DimAttr(size)
        super().__init__(properties={"size": size}, result_types=[ObjectType()])


@op_definition
class StorageTensorOp(IRDLOperation):
    """A tensor at `offset` bytes in a storage.

    Tensors that overlap are not in use at the same time. The storage ends with the call: what is returned, captured or
    passed on, so that somebody may keep it, gets memory of its own in the virtual machine.

    ```mlir
    %t = relax.storage_tensor %s at 64 * n : !relax.tensor<[n, 4], f32>
    ```

    C1: shape and dtype are known.
    C2: the storage does not provably end before the tensor; what is left open is checked at run time.
    """

    name = "relax.storage_tensor"

    storage = operand_def(ObjectType)
    offset = prop_def(DimAttr)
    result = result_def(TensorType)

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "$storage `at` custom<DimExpr>($offset) attr-dict `:` custom<TensorResult>(type($result))"
    custom_directives = (DimExpr, TensorResult)

    def __init__(self, storage: SSAValue | Operation, offset: Dim | DimAttr, result_type: TensorType):
        offset = offset if isinstance(offset, DimAttr) else DimAttr(offset)
        super().__init__(operands=[storage], properties={"offset": offset}, result_types=[result_type])

    def verify_(self) -> None:
        _verify_allocatable(self, self.result.type)  # C1
        owner = self.storage.owner
        if isinstance(owner, AllocStorageOp) and prover_at(self).less_equal(self._end, owner.size.data) is False:
            raise VerifyException(
                f"'{self.name}' op expected a storage of {self._end} bytes, got {owner.size.data}"
            )  # C2

    @property
    def _end(self) -> Dim:
        """The byte after the last one."""
        info = self.result.type
        if info.known_dims is None or info.dtype is None:
            return self.offset.data
        return self.offset.data + byte_size(info.dtype) * product(info.known_dims)


@op_definition
class CallKernelOp(IRDLOperation):
    """Calls a PrimFunc in destination-passing style; the sizes are the values of its symbols, in order.

    ```mlir
    relax.call_kernel @matmul(%x, %w, %out) sizes [n, k, m]
    ```

    C1: the buffers of the PrimFunc have the layout of tensors: default strides, and the offset 0.
    """

    name = "relax.call_kernel"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    sizes = prop_def(ArrayAttr[DimAttr])

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    assembly_format = "custom<Symbol>($callee) custom<Arguments>($arguments) custom<NamedDims>($sizes) attr-dict"
    custom_directives = (Symbol, Arguments, NamedDims)

    def __init__(
        self, callee: str | SymbolRefAttr, arguments: Sequence[SSAValue | Operation], sizes: Sequence[Dim] = ()
    ):
        super().__init__(
            operands=[arguments],
            properties={
                "callee": SymbolRefAttr(callee) if isinstance(callee, str) else callee,
                "sizes": ArrayAttr([DimAttr(size) for size in sizes]),
            },
        )

    def verify_(self) -> None:
        func = find_function(self, self.callee.string_value())
        if isinstance(func, PrimFuncOp):
            check_layouts(f"'relax.call_kernel' op calls @{func.sym_name.data}", func)  # C1


@op_definition
class CheckApartOp(IRDLOperation, MayBeImpure):
    """Raises `ValueError` with the message if two tensors have memory in common.

    ```mlir
    relax.check_apart %y, %x, "add_to: argument #1 (y): overlaps argument #0 (x): pass a copy"
    ```

    C1: rank and dtype of both are known.
    """

    name = "relax.check_apart"

    first = operand_def(TensorType)
    second = operand_def(TensorType)
    message = prop_def(StringAttr)

    traits = traits_def(EffectsOfImpurity(), OnlyReadsTensors())

    assembly_format = "$first `,` $second `,` custom<Message>($message) attr-dict"
    custom_directives = (Message,)

    def __init__(self, first: SSAValue | Operation, second: SSAValue | Operation, message: str):
        super().__init__(operands=[first, second], properties={"message": StringAttr(message)})

    @property
    def impurity(self) -> str:
        return "may end the program with an error"

    def verify_(self) -> None:
        for info in self.operand_types:
            if not isinstance(info, TensorType) or info.rank is None or info.dtype is None:
                raise VerifyException(f"'{self.name}' op expected tensors of known rank and dtype, got {info}")  # C1


@op_definition
class KillOp(IRDLOperation):
    """The value is not used any more: its memory may be freed.

    ```mlir
    relax.kill %t
    ```
    """

    name = "relax.kill"

    value = operand_def()

    traits = traits_def(MemoryFreeEffect())

    assembly_format = "$value attr-dict"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])


__all__ = [
    "AllocStorageOp",
    "AllocTensorOp",
    "CallKernelOp",
    "CheckApartOp",
    "KillOp",
    "StorageTensorOp",
]
