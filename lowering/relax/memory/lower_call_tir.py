"""`lower-call-tir`: calls that return new tensors become allocations and calls that write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.convert_dataflow import refuse_pure_regions
from lowering.relax.lower_shapes import FreshSymbols
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.aliases import origin, who_else_sees
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallDPSPackedOp, CallPackedOp, CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.callees import find_prim_func, match_prim_func
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
