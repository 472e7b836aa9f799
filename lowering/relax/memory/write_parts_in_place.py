"""`write-parts-in-place`: what is joined is computed where the joined tensor is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.memory.lifetime import lifetimes
from lowering.relax.memory.parts import (
    Copied,
    Place,
    can_be_part,
    copied_parts,
    in_place_of,
    only_copies,
    without_copies,
)
from lowering.relax.memory.variants import Variants
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp
from relax_dialect.ops.prim_func import find_prim_func
from relax_dialect.ops.structure import FuncOp
from tir_dialect.ops.function import PrimFuncOp


class WritePartsInPlacePass(ModulePass):
    """Lets the producers of a concatenation write directly into slices of its result.

    Before:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n, 4], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    %b = relax.alloc_tensor : !relax.tensor<[n, 8], f32>
    relax.call_kernel @sin(%y, %b) sizes [n]
    %c = relax.alloc_tensor : !relax.tensor<[n, 12], f32>
    relax.call_kernel @concat(%a, %b, %c) sizes [n]
    ```

    After:

    ```mlir
    %c = relax.alloc_tensor : !relax.tensor<[n, 12], f32>
    relax.call_kernel @exp_part(%x, %c) sizes [n]
    relax.call_kernel @sin_part(%y, %c) sizes [n]
    ```

    A part is memory that the function made in the same block. A kernel does nothing with it but copy all of it to a
    place that is known when the program is compiled, and has written nothing there before; that is its last use. The
    others are by kernels, which get a variant whose parameter is the whole: maps, products that write it, and copies.
    None of them may use another part, since two parameters are never the same memory. Before the copy nobody uses the
    whole but at the places of other parts. A joined tensor may be a part of another. The whole lives from when the
    first of its parts does, so that the function may need more memory for some time.

    Expects `lower-call-tir`, before `use-inplace-calls`. Idempotent.
    """

    name = "write-parts-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Every function by itself, calls from the last to the first."""
        kernels = _Kernels(op)
        for func in op.ops:
            if isinstance(func, FuncOp):
                _Function(func, kernels).rewrite()
        kernels.remove_unused()


@dataclass
class _Kernels(Variants):
    """The kernels of a module, what they copy, and those that are made of them."""

    _copied: dict[PrimFuncOp, tuple[Copied, ...]] = field(default_factory=dict[PrimFuncOp, tuple[Copied, ...]])

    def copied(self, func: PrimFuncOp) -> tuple[Copied, ...]:
        """The parameters that a kernel only copies."""
        if func not in self._copied:
            self._copied[func] = tuple(copied_parts(func))
        return self._copied[func]


@dataclass(frozen=True)
class _Use:
    """A call that uses a part, as an argument of some number."""

    call: CallKernelOp
    kernel: PrimFuncOp
    number: int


class _Function:
    """One function whose calls are rewritten."""

    def __init__(self, func: FuncOp, kernels: _Kernels):
        self._kernels = kernels
        self._steps = lifetimes(func.body).steps
        self._calls = {step: op for op, step in self._steps.items() if isinstance(op, CallKernelOp)}
        self._places: dict[tuple[Operation, SSAValue], Place] = {}
        """The places of parts, by the call that uses one and the whole that it is in."""

    def rewrite(self) -> None:
        """All calls, from the last to the first."""
        for step in sorted(self._calls, reverse=True):
            call = self._calls[step]
            if (kernel := find_prim_func(call, call.callee)) is not None:
                self._join(call, kernel)

    def _join(self, call: CallKernelOp, kernel: PrimFuncOp) -> None:
        """Moves the parts that a call copies to their places, and leaves out the copies."""
        moved = dict[int, Operation]()
        for copied in self._kernels.copied(kernel):
            part, whole = (call.arguments[number].owner for number in (copied.operand, copied.result))
            if not isinstance(part, AllocTensorOp) or not isinstance(whole, AllocTensorOp) or part is whole:
                continue
            uses = self._other_uses(call, part, whole)
            if uses is not None and self._is_free(call, whole, copied.place):
                self._move(part, whole, copied.place, uses)
                moved[copied.operand] = part
        if not moved:
            return
        if only_copies(kernel, moved):
            Rewriter.erase_op(call)
        else:
            rest = self._kernels.of(kernel, frozenset(moved), "rest", partial(without_copies, kernel, moved))
            self._replace(call, rest, [value for number, value in enumerate(call.arguments) if number not in moved])
        for part in moved.values():
            Rewriter.erase_op(part)

    def _is_free(self, call: CallKernelOp, whole: AllocTensorOp, place: Place) -> bool:
        """Whether nobody uses a place of a whole before a call, which has the whole as one argument only."""
        if list(call.arguments).count(whole.result) != 1:
            return False
        for use in whole.result.uses:
            user = use.operation
            if user is not call and self._steps[user] < self._steps[call]:
                other = self._places.get((user, whole.result))
                if other is None or not other.is_apart(place):
                    return False
        return True

    def _other_uses(self, call: CallKernelOp, part: AllocTensorOp, whole: AllocTensorOp) -> list[_Use] | None:
        """The uses of a part beside the call that joins it; `None` if it cannot have its memory in the whole."""
        if part.shape is not None or whole.shape is not None or not part.parent is whole.parent is call.parent:
            return None
        if not _symbols(whole) <= _symbols(part):  # which are known where the part is made
            return None
        uses = [self._use(use, call, whole) for use in part.result.uses if use.operation is not call]
        known = [use for use in uses if use is not None]
        return known if len(known) == len(uses) and list(call.arguments).count(part.result) == 1 else None

    def _use(self, use: Use, call: CallKernelOp, whole: AllocTensorOp) -> _Use | None:
        """A use before the call, in the same block, by a kernel that can do with a part; else `None`."""
        user = use.operation
        if not isinstance(user, CallKernelOp) or user.parent is not call.parent:
            return None
        if self._steps[user] > self._steps[call]:
            return None
        kernel, values = find_prim_func(user, user.callee), list(user.arguments)
        shared = whole.result in values or values.count(values[use.index]) != 1
        if kernel is None or shared or not can_be_part(kernel, use.index):
            return None
        return _Use(user, kernel, use.index)

    def _move(self, part: AllocTensorOp, whole: AllocTensorOp, place: Place, uses: Sequence[_Use]) -> None:
        """Lets all who use a part use its place in the whole, which is made in time."""
        if self._steps[part] < self._steps[whole]:
            whole.detach()
            Rewriter.insert_op(whole, InsertPoint.before(part))
            self._steps[whole] = self._steps[part]
        for use in uses:
            make = partial(in_place_of, use.kernel, use.number, place)
            variant = self._kernels.of(use.kernel, (use.number, place), "part", make)
            values = [whole.result if value is part.result else value for value in use.call.arguments]
            made = self._replace(use.call, variant, values)
            self._places[made, whole.result] = place

    def _replace(self, call: CallKernelOp, kernel: PrimFuncOp, values: Sequence[SSAValue]) -> CallKernelOp:
        made = CallKernelOp(kernel.sym_name.data, values, [size.data for size in call.sizes])
        made.attributes |= call.attributes
        inherit_location(call, made)
        step = self._steps[made] = self._steps[call]
        self._calls[step] = made
        for value in set(values):
            if (place := self._places.get((call, value))) is not None:
                self._places[made, value] = place
        Rewriter.replace_op(call, made, [])
        return made


def _symbols(alloc: AllocTensorOp) -> set[str]:
    return {name for dim in alloc.result.type.known_dims or () for name in dim.symbols}
