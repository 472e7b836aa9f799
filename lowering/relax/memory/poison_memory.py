"""`poison-memory`: tensors in an arena hold NaN before they are written and after their last use."""

from __future__ import annotations

from math import nan

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from lowering.locations import inherit_location
from relax_dialect.analysis.aliases import views
from relax_dialect.ops.memory import CallKernelOp, StorageTensorOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect import te
from tir_dialect.dims import symbol
from tir_dialect.dtypes import dtype_name, is_bool, is_float, is_unsigned
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te.coerce import integer_range


class PoisonMemoryPass(ModulePass):
    """Fills planned tensors with NaN, or the minimum of an integer dtype, while they hold no value.

    Before:

    ```mlir
    %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_kernel @sum(%a, %y) sizes [n]
    ```

    After:

    ```mlir
    %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
    relax.call_kernel @poison_1_f32(%a) sizes [n]
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_kernel @sum(%a, %y) sizes [n]
    relax.call_kernel @poison_1_f32(%a) sizes [n]
    ```

    For tests, between `plan-memory` and `insert-kills`: a program that reads a tensor too early or too late, or whose
    tensors overlap, gives NaN instead of numbers that happen to be right.
    """

    name = "poison-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Surrounds the uses of every tensor in a storage."""
        kernels = _Poison(op)
        for func in [each for each in op.ops if isinstance(each, FuncOp)]:
            for tensor in [each for each in func.walk() if isinstance(each, StorageTensorOp)]:
                last = _last_use(tensor)
                Rewriter.insert_op(kernels.call(tensor), InsertPoint.after(tensor))
                if last is not None and not last.has_trait(IsTerminator):
                    Rewriter.insert_op(kernels.call(tensor), InsertPoint.after(last))


class _Poison:
    """The kernels that fill, one for each rank and dtype."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._made: dict[tuple[int, Attribute], str] = {}
        self._names = {name for op in module.ops if (name := symbol_name(op)) is not None}

    def call(self, tensor: StorageTensorOp) -> CallKernelOp:
        """A call that fills a tensor."""
        info = tensor.result.type
        if info.known_dims is None or info.dtype is None:
            raise ValueError(f"a tensor in a storage has a known shape and dtype, got {info}")
        key = (len(info.known_dims), info.dtype)
        if key not in self._made:
            name = fresh_name(f"poison_{key[0]}_{dtype_name(key[1])}", self._names)
            self._names.add(name)
            self._made[key] = name
            self._module.body.block.add_op(_fill(name, *key))
        call = CallKernelOp(self._made[key], [tensor.result], info.known_dims)
        inherit_location(tensor, call)
        return call


def _fill(name: str, rank: int, dtype: Attribute) -> PrimFuncOp:
    """A PrimFunc that writes what no computation gives."""
    shape = [symbol(f"d{axis}") for axis in range(rank)]
    value = te.const(_poison(dtype), dtype_name(dtype))
    return te.create_prim_func([te.compute(shape, lambda *i: value, name="poison")], name=name)


def _poison(dtype: Attribute) -> float:
    if is_float(dtype):
        return nan
    if is_bool(dtype):
        return True
    typed = te.const(0, dtype_name(dtype)).dtype
    least, greatest = (0, 0) if isinstance(typed, IndexType) else integer_range(typed)
    return greatest if is_unsigned(dtype) else least


def _last_use(tensor: StorageTensorOp) -> Operation | None:
    """The last op of the tensor's block that uses it, itself or inside of its regions; `None` if there is none."""
    block = tensor.parent
    if block is None:
        return None
    order = {op: index for index, op in enumerate(block.ops)}
    users = [
        user
        for alias in views(tensor.result)
        for use in alias.uses
        if (user := block.find_ancestor_op_in_block(use.operation)) is not None
    ]
    return max(users, key=lambda user: order[user], default=None)
