"""`use-inplace-calls`: results of kernels take the memory of operands that die there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Generic, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.fusion.inline_blocks import covers
from lowering.relax.memory.plan import Lifetimes, lifetimes
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.aliases import Summaries, leaking_uses, leaves
from relax_dialect.analysis.effects import may_be_written
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.manipulation import BroadcastToOp
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import called_functions, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.traits import AliasesOperand
from tir_dialect.analysis.dependence import Axis, determine
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim
from tir_dialect.fast_ops import ops_in, walked
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp

FactT = TypeVar("FactT")


@dataclass
class Variants(Generic[FactT]):
    """The kernels of a module, what a pass asks of each, and those that it makes of others."""

    module: ModuleOp
    find: Callable[[PrimFuncOp], Iterable[FactT]]
    """What the pass asks of a kernel."""
    _found: dict[PrimFuncOp, tuple[FactT, ...]] = field(default_factory=dict[PrimFuncOp, tuple[FactT, ...]])
    _made: dict[tuple[PrimFuncOp, Hashable], PrimFuncOp] = field(
        default_factory=dict[tuple[PrimFuncOp, Hashable], PrimFuncOp]
    )

    def facts(self, func: PrimFuncOp) -> tuple[FactT, ...]:
        """What is found in a kernel, which is looked at once."""
        if func not in self._found:
            self._found[func] = tuple(self.find(func))
        return self._found[func]

    def of(self, func: PrimFuncOp, key: Hashable, suffix: str, make: Callable[[str], PrimFuncOp]) -> PrimFuncOp:
        """The variant of a kernel that a key stands for; `make` is given its name, when it is asked for first."""
        if (func, key) not in self._made:
            names = {found for op in self.module.ops if (found := symbol_name(op)) is not None}
            made = self._made[func, key] = make(fresh_name(f"{func.sym_name.data}_{suffix}", names))
            Rewriter.insert_op(made, InsertPoint.after(func))
        return self._made[func, key]

    def remove_unused(self) -> None:
        """Erases the kernels, and variants, of which only variants are called."""
        if not self._made:
            return
        used = {name for op in walked(self.module) for name in called_functions(op)}
        for func in {*(func for func, _ in self._made), *self._made.values()}:
            if func.sym_name.data not in used:
                Rewriter.erase_op(func)


def rewrite_calls(
    module: ModuleOp,
    find: Callable[[PrimFuncOp], Iterable[FactT]],
    rewrite: Callable[[FuncOp, Variants[FactT]], None],
) -> None:
    """Rewrites every function by itself, and erases kernels of which only variants are called then."""
    variants = Variants(module, find)
    for func in module.ops:
        if isinstance(func, FuncOp):
            rewrite(func, variants)
    variants.remove_unused()


class CopyConstantsPass(Pass):
    """Copies constants where others get hold of their memory.

    Before:

    ```mlir
    %c = relax.constant dense<0.0> : tensor<4xf32>
    %0 = relax.add %x, %c
    %1 = relax.tuple(%0, %c)
    relax.return %1
    ```

    After:

    ```mlir
    %c = relax.constant dense<0.0> : tensor<4xf32>
    %0 = relax.add %x, %c
    %shape = relax.shape [4]
    %copy = relax.broadcast_to %c, %shape
    %1 = relax.tuple(%0, %copy)
    relax.return %1
    ```

    A constant is the program's own: each run has to find it as it was. Others get hold of it where a function returns
    it or a closure captures it, where a packed function that may have effects gets it, and where `call_tir_inplace`
    writes into it, here or in a function that is called. Operators, kernels and pure packed functions only read. Where
    somebody may write into it before the function returns, all uses are of one copy: what is read after a write is what
    was written.

    Expects that constants are folded already, which would undo it. Idempotent.
    """

    name = "copy-constants"
    requires = ("relax.constant",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [CopyLeakingConstant()])


class CopyLeakingConstant(RewritePattern):
    """Who may write into a constant or keep it gets a copy: `return c  ->  return broadcast_to(c, shape of c)`."""

    def __init__(self) -> None:
        self._summaries = Summaries()

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstantOp, rewriter: PatternRewriter) -> None:
        """Copies at each use, so that what only reads goes on with the constant."""
        uses = list(leaking_uses(op.result, self._summaries))
        if uses and may_be_written(op.result):
            uses = list(op.result.uses)
            copy = _copy(op, InsertPoint.after(op), rewriter)
            for use in uses:
                use.operation.operands[use.index] = copy
            return
        for use in uses:
            use.operation.operands[use.index] = _copy(op, InsertPoint.before(use.operation), rewriter)


def _copy(constant: ConstantOp, where: InsertPoint, rewriter: PatternRewriter) -> SSAValue:
    shape = ShapeOp(constant.result.type.known_dims or ())
    copy = BroadcastToOp(constant.result, shape)
    copy.result.name_hint = constant.result.name_hint
    made: list[Operation] = [shape, copy]
    inherit_location(constant, made)
    rewriter.insert(made, where)
    return copy.result


Pair = tuple[int, int]
"""The numbers of two parameters: an operand and the result that may take its memory."""


def inplace_pairs(func: PrimFuncOp) -> tuple[Pair, ...]:
    """The pairs of parameters that may be the same memory, before the function is scheduled.

    So it is where a computation, elementwise or not, writes every element of the result once, and the function reads
    the operand nowhere but at the element that it is about to write; what was computed before, such as a product to
    which the operand is added, goes elsewhere, and what is computed after, as another result of the same block, has
    read the operand before. Both have the same shape and dtype.
    """
    patterns = computation_patterns(func)
    if OpPattern.OPAQUE in patterns:
        return ()
    stores = [op for op in ops_in(func.body) if isinstance(op, StoreOp) and not isinstance(op.parent_op(), InitOp)]
    maps = [store for store, pattern in zip(stores, patterns, strict=True) if pattern <= OpPattern.INJECTIVE]
    space = IndexSpace(func)
    return tuple(pair for store in maps for pair in _pairs_of(func, store, space))


def _pairs_of(func: PrimFuncOp, store: StoreOp, space: IndexSpace) -> Iterator[Pair]:
    """The pairs of the result that a computation writes and nothing else touches."""
    block, target, params = store.parent_op(), store.buffer, func.params
    if not isinstance(block, BlockOp) or block.condition is not None or store.mask is not None:
        return
    if not isinstance(target, BlockArgument) or target not in params or not target.has_one_use():
        return
    if covers(block, store) and _has_distinct_instances(block, space):
        position = [space.dim_of(index) for index in store.indices]
        before = set(takewhile(lambda op: op is not store, block.body.block.ops))
        for number, param in enumerate(params):
            if param is not target and param.type == target.type and _reads_only_at(param, before, position, space):
                yield number, params.index(target)


def _has_distinct_instances(block: BlockOp, space: IndexSpace) -> bool:
    """Whether the loops around a block make no instance twice: the second one would read what the first has written."""
    loops = [op for op in ancestors(block) if isinstance(op, ForOp)]
    variables = [space.variable(loop.induction_var).dim for loop in loops]
    rows = [(Axis(space.dim_of(iterator.binding)),) for iterator in block.iterators]
    names = set[str]()
    for variable in variables:
        names |= variable.symbols
        found = space.variables[variable.as_symbol or ""]
        if not (
            found.lower is not None
            and found.upper is not None
            and space.less_equal(found.upper, found.lower + 1) is True
        ) and not determine(space, rows, variable, names):
            return False
    return True


def _reads_only_at(
    param: BlockArgument, ops: Collection[Operation], position: list[Dim | None], space: IndexSpace
) -> bool:
    """Whether all loads of a parameter are among some ops, and at one position."""
    loads = [use.operation for use in param.uses]
    return all(
        isinstance(load, LoadOp) and load in ops and [space.dim_of(index) for index in load.indices] == position
        for load in loads
    )


def write_in_place(func: PrimFuncOp, pair: Pair, name: str) -> PrimFuncOp:
    """The same kernel without the operand: it reads it from the result's memory."""
    operand, result = pair
    made = func.clone()
    made.sym_name = StringAttr(name)
    made.params[operand].replace_all_uses_with(made.params[result])
    made.body.block.erase_arg(made.params[operand])
    return made


IN_PLACE = "in_place"
"""The attribute of a call whose result has the memory of an operand."""


class UseInplaceCallsPass(ModulePass):
    """Lets the result of a kernel reuse the memory of an operand that dies there.

    Before:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @matmul(%x, %w, %a) sizes [n]
    %b = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%a, %b) sizes [n]
    relax.return %b
    ```

    After:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @matmul(%x, %w, %a) sizes [n]
    relax.call_kernel @exp_inplace(%a) sizes [n] {in_place}
    relax.return %a
    ```

    The kernel computes each element of the result from the element of the operand at the same position, and reads it
    nowhere else; both have the same type. The operand is memory that the function made in the same block, that nobody
    else may keep, and that no other operand of the call shares: never a parameter or a constant. Values are the same
    bit for bit.

    Expects `lower-call-tir`, before `plan-memory`. Idempotent; the peer is TVM's `DataflowUseInplaceCalls`.
    """

    name = "use-inplace-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Every function by itself, calls in program order."""
        rewrite_calls(op, inplace_pairs, lambda func, kernels: _Function(func, kernels).rewrite())


class _Function:
    """One function whose calls are rewritten."""

    def __init__(self, func: FuncOp, kernels: Variants[Pair]):
        self._func, self._kernels = func, kernels
        self._facts: Lifetimes = lifetimes(func.body)
        self._last: dict[SSAValue, int | None] = {}
        """The last use of each tensor that has been asked for, which many calls may have written in place since."""

    def rewrite(self) -> None:
        """All calls, in program order; the variant that takes one operand's memory may take another's too."""
        for op in list(self._func.body.walk()):
            call = op if isinstance(op, CallKernelOp) else None
            while call is not None:
                kernel = find_prim_func(call, call.callee)
                pair = None if kernel is None else next(self._usable(call, kernel), None)
                call = None if kernel is None or pair is None else self._replace(call, kernel, pair)

    def _usable(self, call: CallKernelOp, kernel: PrimFuncOp) -> Iterator[Pair]:
        for pair in self._kernels.facts(kernel):
            operand, result = (call.arguments[number] for number in pair)
            source, target = _memory(operand), result.owner
            others = [value for value in call.arguments if value is not operand and value is not result]
            if (
                isinstance(source.owner, AllocTensorOp)
                and isinstance(target, AllocTensorOp)
                and operand.type == result.type
                and source.owner.parent is target.parent is call.parent
                and _first_use(target) is call
                and not any(_memory(value) is source for value in others)
                and list(call.arguments).count(operand) == 1
                and self._last_use(source) == self._facts.steps[call]
            ):
                yield pair

    def _last_use(self, tensor: SSAValue) -> int | None:
        """The step of the last use; `None` if it may be after the function has returned."""
        if tensor not in self._last:
            self._last[tensor] = None if leaves(tensor) else self._facts.last_use(tensor)
        return self._last[tensor]

    def _replace(self, call: CallKernelOp, kernel: PrimFuncOp, pair: Pair) -> CallKernelOp:
        operand, result = (call.arguments[number] for number in pair)
        rest = [value for number, value in enumerate(call.arguments) if number != pair[0]]
        values = [operand if value is result else value for value in rest]
        sizes = [size.data for size in call.sizes]
        variant = self._kernels.of(kernel, pair, "inplace", partial(write_in_place, kernel, pair))
        made = CallKernelOp(variant.sym_name.data, values, sizes)
        made.attributes[IN_PLACE] = UnitAttr()
        inherit_location(call, made)
        self._facts.steps[made] = self._facts.ends[made] = self._facts.steps[call]
        Rewriter.replace_op(call, made, [])
        source, last, later = _memory(operand), self._facts.steps[call], self._last_use(result)
        self._last[source] = None if later is None else max(last, later)
        result.replace_all_uses_with(operand)
        if isinstance(result.owner, Operation):
            Rewriter.erase_op(result.owner)
        return made


def _memory(value: SSAValue) -> SSAValue:
    """The value that a view is a view of."""
    while isinstance(owner := value.owner, Operation) and owner.has_trait(AliasesOperand):
        value = owner.operands[0]
    return value


def _first_use(alloc: AllocTensorOp) -> Operation | None:
    """The first op in the block of an allocation that uses it, if no use is in a nested region before."""
    after = alloc.next_op
    while after is not None and not any(alloc.result in op.operands for op in after.walk()):
        after = after.next_op
    return after
