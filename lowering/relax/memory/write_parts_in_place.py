"""`write-parts-in-place`: what is joined is computed where the joined tensor is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from lowering.locations import inherit_location
from lowering.relax.fusion.inline_blocks import covers
from lowering.relax.memory.plan import lifetimes
from lowering.relax.memory.use_inplace_calls import Variants, rewrite_calls
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp
from relax_dialect.ops.structure import FuncOp
from tir_dialect.analysis.index_space import IndexSpace, extremes
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim, constant
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Region:
    """Where a part is in a whole: from `start` on along an axis of `total` elements; all of the other axes."""

    axis: int
    start: int
    total: int
    length: Dim

    def is_apart(self, other: Region) -> bool:
        """Whether two regions of the same whole have no element in common."""
        if self.axis != other.axis:
            return False
        one, two = self.length.constant_value, other.length.constant_value
        return (one is not None and self.start + one <= other.start) or (
            two is not None and other.start + two <= self.start
        )


@dataclass(frozen=True)
class Copied:
    """A parameter of a kernel that it copies into a slice of a result, and does nothing else with.

    What the kernel does before the copy does not touch the region, so that the copy may as well come first.
    """

    operand: int
    result: int
    region: Region
    store: StoreOp


def copied_parts(func: PrimFuncOp) -> Iterator[Copied]:
    """The operands that a kernel only copies, before it is scheduled."""
    space, params, stores = IndexSpace(func), func.params, dict[SSAValue, Sequence[StoreOp] | None]()
    for store in ops_in(func.body):
        load = store.value.owner if isinstance(store, StoreOp) else None
        if not isinstance(store, StoreOp) or not isinstance(load, LoadOp) or load.buffer not in params:
            continue
        whole, region = store.buffer, _region(store, load, space)
        if region is None or whole not in params or not load.buffer.has_one_use():
            continue
        if whole not in stores:
            stores[whole] = _stores_to(whole)
        if (others := stores[whole]) is not None and _may_come_first(store, region, others, space):
            yield Copied(params.index(load.buffer), params.index(whole), region, store)


def _stores_to(buffer: SSAValue) -> Sequence[StoreOp] | None:
    """The stores to a buffer in program order; `None` if something but stores and loads may write it."""
    users = {use.operation for use in buffer.uses}
    if not all(isinstance(user, LoadOp | StoreOp) for user in users):
        return None
    stores = [user for user in users if isinstance(user, StoreOp)]
    if len(stores) < 2:
        return stores
    func = next(op for op in ancestors(stores[0]) if isinstance(op, PrimFuncOp))
    return [op for op in func.body.walk() if isinstance(op, StoreOp) and op in users]


def _may_come_first(copy: StoreOp, region: Region, stores: Sequence[StoreOp], space: IndexSpace) -> bool:
    """Whether no store that may run before one of a copy touches the region: one before it, or in a common loop."""
    statement, is_before = _statement(copy), True
    for store in stores:
        if store is copy:
            is_before = False
        elif (is_before or _statement(store) is statement) and not _keeps_off(store, region, space):
            return False
    return True


def _statement(op: Operation) -> Operation:
    """The op in the body of the function that an op is in."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, PrimFuncOp):
        op = parent
    return op


def _keeps_off(store: StoreOp, region: Region, space: IndexSpace) -> bool:
    """Whether a store provably never touches a region of the buffer that it writes."""
    # The least and the greatest index along an axis that a store of single elements may write, if
    # they are known.
    dim = None if store.lanes is not None else space.dim_of(store.indices[region.axis])
    loops = [op for op in ancestors(store) if isinstance(op, ForOp)]
    variables = [space.variable(loop.induction_var) for loop in reversed(loops)]
    found = None if dim is None else extremes(dim, variables, space.prover)
    if found is None:
        return False
    end = region.length + region.start
    return space.less_equal(end, found.low) is True or space.less_equal(found.high + 1, region.start) is True


def _region(store: StoreOp, load: LoadOp, space: IndexSpace) -> Region | None:
    """Where a copy of all of a buffer goes; `None` if it is no such copy."""
    block, part, whole = store.parent_op(), load.buffer_type.shape, store.buffer_type.shape
    if not isinstance(block, BlockOp) or block.condition is not None or load.parent_op() is not block:
        return None
    if not all(op is store or _leaves_memory(op) for op in block.body.walk()):
        return None
    if store.mask is not None or load.mask is not None or not covers(block, load) or len(part) != len(whole):
        return None
    changed = [axis for axis, (a, b) in enumerate(zip(part, whole, strict=True)) if a is not b]
    total = whole[changed[0]].constant_value if len(changed) == 1 else None
    starts = [
        None if to is None or at is None else (to - at).constant_value
        for to, at in zip(map(space.dim_of, store.indices), map(space.dim_of, load.indices), strict=True)
    ]
    start = starts[changed[0]] if total is not None else None
    if total is None or start is None or any(step != 0 for axis, step in enumerate(starts) if axis != changed[0]):
        return None
    return Region(changed[0], start, total, part[changed[0]])


def only_copies(func: PrimFuncOp, operands: Collection[int]) -> bool:
    """Whether all that a kernel does is to copy these operands."""
    copies = {copied.store for copied in copied_parts(func) if copied.operand in operands}
    return all(op in copies or _leaves_memory(op) for op in func.body.walk() if not op.regions)


def _leaves_memory(op: Operation) -> bool:
    """Whether an op without regions writes nowhere, and does nothing else outside of its results."""
    effects = get_effects(op)
    return op.has_trait(IsTerminator) or (
        effects is not None
        and all(effect.kind in (MemoryEffectKind.READ, MemoryEffectKind.ALLOC) for effect in effects)
    )


def without_copies(func: PrimFuncOp, operands: Collection[int], name: str) -> PrimFuncOp:
    """The kernel without some operands that it only copies."""
    made = func.clone()
    made.sym_name = StringAttr(name)
    for copied in [each for each in copied_parts(made) if each.operand in operands]:
        # The outermost of the loops around a block that hold nothing else.
        nest = copied.store.parent_op()
        assert nest is not None  # the block that was found to copy
        while (
            isinstance(parent := nest.parent_op(), ForOp)
            and parent.body.block.first_op is nest
            and nest.next_op is None
        ):
            nest = parent
        Rewriter.erase_op(nest)
    for param in [made.params[number] for number in operands]:
        made.body.block.erase_arg(param)
    return made


def can_be_part(func: PrimFuncOp, number: int) -> bool:
    """Whether a kernel can do as well with a part of larger memory: maps can, and products with what follows them
    where they write. Others would have to look for rows and borders where there are none.
    """
    param, patterns = func.params[number], computation_patterns(func)
    kind, users = param.type, [use.operation for use in param.uses]
    if not isinstance(kind, BufferType) or kind != BufferType(kind.shape, kind.dtype):
        return False
    if any(isinstance(user, StoreOp) for user in users):
        return OpPattern.REDUCTION not in patterns and all(isinstance(user, LoadOp | StoreOp) for user in users)
    return max(patterns) <= OpPattern.INJECTIVE and all(isinstance(user, LoadOp) for user in users)


def in_place_of(func: PrimFuncOp, number: int, region: Region, name: str) -> PrimFuncOp:
    """The same kernel, one of whose parameters is the whole of which it was given a part."""
    made = func.clone()
    made.sym_name = StringAttr(name)
    param = made.params[number]
    kind = param.type
    assert isinstance(kind, BufferType)  # as asked before
    shape = [*kind.shape]
    shape[region.axis] = constant(region.total)
    for use in list(param.uses):
        _shift(use.operation, use.index + 1 + region.axis, region.start)
    Rewriter.replace_value_with_new_type(param, BufferType(shape, kind.dtype))
    return made


def _shift(access: Operation, number: int, start: int) -> None:
    """Adds to an index of an access."""
    if start == 0:
        return
    first = arith.ConstantOp(IntegerAttr(start, IndexType()))
    moved = arith.AddiOp(access.operands[number], first)
    for op in (first, moved):
        op.location = access.location
    Rewriter.insert_op([first, moved], InsertPoint.before(access))
    access.operands[number] = moved.result


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
    whole but at the regions of other parts. A joined tensor may be a part of another. The whole lives from when the
    first of its parts does, so that the function may need more memory for some time.

    Expects `lower-call-tir`, before `use-inplace-calls`. Idempotent.
    """

    name = "write-parts-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Every function by itself, calls from the last to the first."""
        rewrite_calls(op, copied_parts, lambda func, kernels: _Function(func, kernels).rewrite())


@dataclass(frozen=True)
class _Use:
    """A call that uses a part, as an argument of some number."""

    call: CallKernelOp
    kernel: PrimFuncOp
    number: int


class _Function:
    """One function whose calls are rewritten."""

    def __init__(self, func: FuncOp, kernels: Variants[Copied]):
        self._kernels = kernels
        self._steps = lifetimes(func.body).steps
        self._calls = {step: op for op, step in self._steps.items() if isinstance(op, CallKernelOp)}
        self._regions: dict[tuple[Operation, SSAValue], Region] = {}
        """The regions of parts, by the call that uses one and the whole that it is in."""

    def rewrite(self) -> None:
        """All calls, from the last to the first."""
        for step in sorted(self._calls, reverse=True):
            call = self._calls[step]
            if (kernel := find_prim_func(call, call.callee)) is not None:
                self._join(call, kernel)

    def _join(self, call: CallKernelOp, kernel: PrimFuncOp) -> None:
        """Moves the parts that a call copies to their regions, and leaves out the copies."""
        moved = dict[int, Operation]()
        for copied in self._kernels.facts(kernel):
            part, whole = (call.arguments[number].owner for number in (copied.operand, copied.result))
            if not isinstance(part, AllocTensorOp) or not isinstance(whole, AllocTensorOp) or part is whole:
                continue
            uses = self._other_uses(call, part, whole)
            if uses is not None and self._is_free(call, whole, copied.region):
                # Lets all who use a part use its region of the whole, which is made in time.
                if self._steps[part] < self._steps[whole]:
                    whole.detach()
                    Rewriter.insert_op(whole, InsertPoint.before(part))
                    self._steps[whole] = self._steps[part]
                for use in uses:
                    make = partial(in_place_of, use.kernel, use.number, copied.region)
                    variant = self._kernels.of(use.kernel, (use.number, copied.region), "part", make)
                    values = [whole.result if value is part.result else value for value in use.call.arguments]
                    made = self._replace(use.call, variant, values)
                    self._regions[made, whole.result] = copied.region
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

    def _is_free(self, call: CallKernelOp, whole: AllocTensorOp, region: Region) -> bool:
        """Whether nobody uses a region of a whole before a call, which has the whole as one argument only."""
        if list(call.arguments).count(whole.result) != 1:
            return False
        for use in whole.result.uses:
            user = use.operation
            if user is not call and self._steps[user] < self._steps[call]:
                other = self._regions.get((user, whole.result))
                if other is None or not other.is_apart(region):
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

    def _replace(self, call: CallKernelOp, kernel: PrimFuncOp, values: Sequence[SSAValue]) -> CallKernelOp:
        made = CallKernelOp(kernel.sym_name.data, values, [size.data for size in call.sizes])
        made.attributes |= call.attributes
        inherit_location(call, made)
        step = self._steps[made] = self._steps[call]
        self._calls[step] = made
        for value in set(values):
            if (region := self._regions.get((call, value))) is not None:
                self._regions[made, value] = region
        Rewriter.replace_op(call, made, [])
        return made


def _symbols(alloc: AllocTensorOp) -> set[str]:
    return {name for dim in alloc.result.type.known_dims or () for name in dim.symbols}
