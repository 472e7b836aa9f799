"""`lower-call-tir`: calls that return new tensors become allocations and calls that write them; `hoist-branch-results`:
both branches of an `if` write their result into memory that is made before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.convert_dataflow import refuse_pure_regions
from lowering.relax.lower_shapes import FreshSymbols
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.aliases import leaves, origin, who_else_sees
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallDPSPackedOp, CallPackedOp, CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.callees import find_prim_func, match_prim_func
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp, CheckApartOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import ShapeType, TensorType, as_struct_infos
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import messages


class LowerCallTIRPass(Pass):
    """Makes the allocation of results explicit.

    Before:

    ```mlir
    %y = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    %z = relax.call_dps_packed "tile"(%y) shape(%s) : !relax.tensor<[_], f32>
    %a = relax.call_tir_inplace @add_to(%p, %q) inplace [0] : !relax.tensor<[n], f32>
    ```

    After:

    ```mlir
    %y = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %y) sizes [n]
    %s_1, %s0 = relax.match_cast %s : !relax.shape<[s0]> binds [s0]
    %z = relax.alloc_tensor : !relax.tensor<[s0], f32>
    relax.call_packed "tile"(%y, %z)
    relax.check_apart %p, %q, "add_to: argument #0 (p): overlaps argument #1 (q): pass a copy"
    relax.call_kernel @add_to(%p, %q) sizes [n]
    ```

    An argument that is written is checked against every other one that may be the same memory, unless the PrimFunc says
    `may_alias`.

    Expects `to-non-dataflow` and `fuse-tir`: calls in regions of pure ops are refused. Pure functions are marked
    `force_pure`: writing a tensor that was just made cannot be seen from outside. A PrimFunc whose sizes are not known
    where it is called is an error at the call. Idempotent.
    """

    name = "lower-call-tir"
    removes = ("relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every call in every function."""
        functions = {func: _calls(func) for func in op.ops if isinstance(func, FuncOp)}
        refuse_pure_regions((call for calls in functions.values() for call in calls), "its result is to be written")
        for func, calls in functions.items():
            if calls:
                _lower_function(func, calls)


def _calls(func: FuncOp) -> list[CallTIROp | CallTIRInplaceOp | CallDPSPackedOp]:
    return [op for op in func.walk() if isinstance(op, CallTIROp | CallTIRInplaceOp | CallDPSPackedOp)]


def _lower_function(func: FuncOp, calls: Sequence[CallTIROp | CallTIRInplaceOp | CallDPSPackedOp]) -> None:
    names = FreshSymbols(func)
    for call in calls:
        # Before any call is lowered: the results of calls are still known to be new memory.
        if isinstance(call, CallTIRInplaceOp):
            _check_apart(call)
    apply_patterns(func, [LowerPackedCall(names), LowerKernelCall(names)])
    if func.function_type.pure:
        func.properties["force_pure"] = UnitAttr()


@dataclass(frozen=True)
class LowerPackedCall(RewritePattern):
    """A callee writes into what is allocated: `call_dps_packed "f"(x)  ->  y = alloc_tensor; call_packed "f"(x, y)`."""

    names: FreshSymbols

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallDPSPackedOp, rewriter: PatternRewriter) -> None:
        outputs = _allocate(op, self.names, [-1] * len(op.res), rewriter)
        rewriter.replace(op, CallPackedOp(op.symbol, [*op.arguments, *outputs]), outputs)


@dataclass(frozen=True)
class LowerKernelCall(RewritePattern):
    """A kernel writes into what is allocated: `call_tir @f(x)  ->  y = alloc_tensor; call_kernel @f(x, y)`."""

    names: FreshSymbols

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallTIROp | CallTIRInplaceOp, rewriter: PatternRewriter) -> None:
        func = find_prim_func(op, op.callee)
        if func is None:
            fail(op, "is in no module")
        targets = op.targets if isinstance(op, CallTIRInplaceOp) else [-1] * len(op.res)
        outputs = _allocate(op, self.names, targets, rewriter)
        operands = [*op.arguments, *(out for out, target in zip(outputs, targets, strict=True) if target < 0)]
        match = match_prim_func(op, func, as_struct_infos(value.type for value in operands), op.tir_dims)
        sizes = [match.bindings[name] for name in func.symbol_names]
        if any(not size.symbols.isdisjoint(match.slots) for size in sizes):
            fail(op, "has an argument whose shape is not known here", "bind its dimensions with 'relax.match_cast'")
        rewriter.replace(op, CallKernelOp(op.callee, operands, sizes), outputs)


def _check_apart(call: CallTIRInplaceOp) -> None:
    """Inserts checks of what only the run decides: whether arguments that are written overlap others."""
    func = find_prim_func(call, call.callee)
    if func is None or func.may_alias is not None:
        return
    shared = {index for index, value in enumerate(call.arguments) if _may_be_shared(value)}
    written = shared.intersection(call.targets)
    for index in sorted(shared):
        for other in sorted(shared):
            if other < index and not written.isdisjoint((index, other)):
                message = messages.overlapping(
                    f"{func.sym_name.data}: {_described(func, index)}", _described(func, other)
                )
                op = CheckApartOp(call.arguments[index], call.arguments[other], message)
                inherit_location(call, op)
                Rewriter.insert_op(op, InsertPoint.before(call))


def _may_be_shared(value: SSAValue) -> bool:
    """Whether some other value of the program may be the memory of an argument; that of a constant is nobody else's."""
    if not isinstance(value.type, TensorType) or isinstance(origin(value).owner, ConstantOp):
        return False
    return who_else_sees(value) is not None


def _described(func: PrimFuncOp, index: int) -> str:
    return messages.describe_argument(index, func.params[index].name_hint or f"p{index}")


def _allocate(
    call: DestinationPassing, names: FreshSymbols, targets: Sequence[int], rewriter: PatternRewriter
) -> list[SSAValue]:
    """The tensors that the results become: new ones, or arguments that are written in place."""
    outputs: list[SSAValue] = []
    for index, (result, target) in enumerate(zip(call.res, targets, strict=True)):
        if target >= 0:
            outputs.append(call.arguments[target])
            continue
        info: TensorType = result.type
        shape = call.shapes[index] if call.shapes else None
        if shape is not None and info.known_dims is None:
            info, shape = _name_dims(call, info, shape, names, rewriter)
        alloc = AllocTensorOp(info, None if info.known_dims is not None else shape)
        alloc.result.name_hint = result.name_hint
        rewriter.insert(alloc, InsertPoint.before(call))
        outputs.append(alloc.result)
    return outputs


def _name_dims(
    call: Operation, info: TensorType, shape: SSAValue, names: FreshSymbols, rewriter: PatternRewriter
) -> tuple[TensorType, SSAValue]:
    """Binds the dimensions of a run-time shape to new symbols, if its rank is known."""
    shape_type = shape.type
    rank = info.rank if info.rank is not None or not isinstance(shape_type, ShapeType) else shape_type.rank
    if rank is None:
        return info, shape
    symbols = names.take(rank)
    cast = MatchCastOp(shape, ShapeType(symbols), symbols)
    rewriter.insert(cast, InsertPoint.before(call))
    return info.with_shape(cast.result.type.dims if isinstance(cast.result.type, ShapeType) else None), cast.result


class HoistBranchResultsPass(Pass):
    """Hoists the allocation of a branch's result out of the branch, so that `plan-memory` can place it.

    Before:

    ```mlir
    %r = relax.if %c {
      %a = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @exp(%x, %a) sizes [n]
      relax.yield %a
    } else {
      %b = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @sin(%x, %b) sizes [n]
      relax.yield %b
    }
    relax.call_kernel @sum(%r, %s) sizes [n]
    ```

    After:

    ```mlir
    %r = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.if %c {
      relax.call_kernel @exp(%x, %r) sizes [n]
      relax.yield
    } else {
      relax.call_kernel @sin(%x, %r) sizes [n]
      relax.yield
    }
    relax.call_kernel @sum(%r, %s) sizes [n]
    ```

    Both branches yield a tensor that they make, each once and of the result's own type, and nobody else may keep the
    result; then it needs no memory of its own. An `if` whose results witness symbols stays, and so do results that
    leave the function: where these are returned at once, a branch returns by itself. Inner branches come first.
    Expects `lower-call-tir`, before `use-inplace-calls`. Idempotent.
    """

    name = "hoist-branch-results"
    requires = ("relax.if",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """From the inside outwards."""
        for inner in list(op.walk(region_first=True)):
            if isinstance(inner, IfOp) and not inner.result_witnesses:
                _hoist(inner)


def _hoist(op: IfOp) -> None:
    hoisted = {result: made for result in op.res if (made := _made(op, result)) is not None}
    if not hoisted:
        return
    for result, made in hoisted.items():
        alloc = AllocTensorOp(made[0].result.type)
        alloc.result.name_hint = result.name_hint
        inherit_location(op, alloc)
        Rewriter.insert_op(alloc, InsertPoint.before(op))
        result.replace_all_uses_with(alloc.result)
        for old in made:
            old.result.replace_uses_with_if(alloc.result, lambda use: not isinstance(use.operation, YieldOp))
    kept = [result for result in op.res if result not in hoisted]
    for region in (op.then_region, op.else_region):
        indices = [result.index for result in kept]
        end = region.block.last_op
        if isinstance(end, YieldOp):
            new = YieldOp(*(end.operands[index] for index in indices))
            inherit_location(end, new)
            Rewriter.replace_op(end, new)
    for old in (each for made in hoisted.values() for each in made):
        Rewriter.erase_op(old)
    types = as_struct_infos(result.type for result in kept)
    one, other = (op.detach_region(region) for region in (op.then_region, op.else_region))
    new = IfOp(op.condition, one, other, types)
    new.attributes |= op.attributes
    inherit_location(op, new)
    for old, result in zip(kept, new.res, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.erase_op(op)


def _made(op: IfOp, result: OpResult) -> tuple[AllocTensorOp, AllocTensorOp] | None:
    """The tensors that the branches make for a result, if it may be made before them."""
    if leaves(result, past_branches=True):
        return None
    found = [_alloc(region, result) for region in (op.then_region, op.else_region)]
    one, other = found
    return None if one is None or other is None else (one, other)


def _alloc(region: Region, result: OpResult) -> AllocTensorOp | None:
    end = region.block.last_op
    value: SSAValue | None = end.operands[result.index] if isinstance(end, YieldOp) else None
    made = None if value is None else value.owner
    if not isinstance(made, AllocTensorOp) or made.shape is not None or made.result.type != result.type:
        return None
    once = sum(isinstance(use.operation, YieldOp) for use in made.result.uses) == 1
    return made if once and made.parent is region.block else None
