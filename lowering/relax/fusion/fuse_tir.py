"""`fuse-tir`: a group of calls of kernels becomes the call of one kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.passes import Pass
from lowering.relax.fusion.fused_kernel import FusedKernel, stem
from lowering.relax.fusion.kernel_body import Number
from relax_dialect.ops.fused import FusedOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import called_functions, symbol_name
from tir_dialect.dead_code import erase_dead
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp


class FuseTIRPass(Pass):
    """Merges the PrimFuncs that a `relax.fused` region calls into one PrimFunc; equal groups share it.

    Before:

    ```mlir
    %2 = relax.fused {
      %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 8], f32>
      %1 = relax.call_tir @add(%0, %b) : !relax.tensor<[n, 8], f32>
      %3 = relax.call_tir @relu(%1) : !relax.tensor<[n, 8], f32>
      relax.yield %3
    }
    ```

    After:

    ```mlir
    tir.prim_func @fused_matmul_add_relu[%n](%x: ..., %w: ..., %b: ..., %r: !tir.buffer<[n, 8], f32>) {
      %t = tir.alloc_buffer : !tir.buffer<[n, 8], f32>
      ... tir.block "matmul" ... tir.store %s, %t[%i, %j]
      ... tir.block "relu" ... maximumf(%t[%i, %j] + %b[%j], 0)
    }
    %2 = relax.call_tir @fused_matmul_add_relu(%x, %w, %b) : !relax.tensor<[n, 8], f32>
    ```

    What elementwise functions compute is computed where it is used, unless that would repeat expensive work; the rest
    is kept in buffers of the kernel, which `schedule-cpu` keeps small. A constant of one element is a number in the
    code if all groups that share the kernel have the same. PrimFuncs that only groups called go. Refuses groups of
    other ops. No group is left; idempotent.
    """

    name = "fuse-tir"
    requires = ("relax.fused",)
    removes = ("relax.fused",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces every group."""
        groups = [inner for inner in op.walk() if isinstance(inner, FusedOp)]
        if not groups:
            return
        kernels = _Kernels(op)
        for each, kernel in zip(groups, kernels.prepare(groups), strict=True):
            kernels.replace(each, kernel)
        _remove_unused(op, kernels.merged)


@dataclass
class _Kernels:
    """The kernels that have been made."""

    module: ModuleOp
    merged: dict[str, None] = field(default_factory=dict[str, None])
    """The PrimFuncs that have become part of others."""
    _made: dict[Hashable, tuple[PrimFuncOp, tuple[str, ...]]] = field(
        default_factory=dict[Hashable, tuple[PrimFuncOp, tuple[str, ...]]]
    )
    _known: dict[Hashable, Mapping[str, Dim]] = field(default_factory=dict[Hashable, Mapping[str, Dim]])
    _names: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)

    def prepare(self, groups: Sequence[FusedOp]) -> list[FusedKernel]:
        """The kernels of the groups. What is the same number in all groups of a kernel is a constant of its code."""
        kernels = [FusedKernel(group, self._known) for group in groups]
        agreed: dict[Hashable, tuple[Number | None, ...]] = {}
        for kernel in kernels:
            numbers = kernel.constants()
            known = agreed.setdefault(kernel.key, numbers)
            if known is not numbers:
                agreed[kernel.key] = tuple(a if _same(a, b) else None for a, b in zip(known, numbers, strict=True))
        for kernel in kernels:
            kernel.numbers = agreed[kernel.key]
        return kernels

    def replace(self, group: FusedOp, kernel: FusedKernel) -> None:
        """The call of one kernel instead of a group."""
        kernel.refresh()
        found = self._made.get(kernel.key)
        if found is None:
            name = fresh_name(stem(kernel.callees), self._names)
            self._names.add(name)
            found = self._made[kernel.key] = (kernel.build(name), kernel.symbols)
            Rewriter.insert_op(found[0], self._insert_point(kernel.callees))
        self.merged.update(dict.fromkeys(kernel.callees))
        call = kernel.call(*found)
        constants = [value.owner for value in kernel.omitted if isinstance(value.owner, Operation)]
        Rewriter.replace_op(group, call)
        erase_dead(constants)

    def _insert_point(self, callees: Iterable[str]) -> InsertPoint:
        """After the last kernel that there is."""
        last = None
        for op in self.module.ops:
            last = op if isinstance(op, PrimFuncOp) else last
        return InsertPoint.at_start(self.module.body.block) if last is None else InsertPoint.after(last)


def _same(one: Number | None, other: Number | None) -> bool:
    """Whether two numbers have the same bits; `-0.0` and `0.0` have not."""
    return repr(one) == repr(other)


def _remove_unused(module: ModuleOp, names: Iterable[str]) -> None:
    """Erases those of the PrimFuncs that nothing calls any more."""
    used = {name for op in module.walk() for name in called_functions(op)}
    gone = set(names) - used
    for op in list(module.ops):
        if isinstance(op, PrimFuncOp) and op.sym_name.data in gone:
            Rewriter.erase_op(op)
