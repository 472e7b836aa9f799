"""Sizes that are data: a kernel finds them out, and they are bound to new symbols before the op is legalised."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.shapes.fresh import FreshSymbols
from lowering.relax_to_tir.context import SIZES
from lowering.relax_to_tir.kernel import Kernel, Kernels
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.shapes import TensorToShapeOp
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, symbol


def stem(op: Operation) -> str:
    """What the kernel of an op is called: `nn_softmax`."""
    return op.name.removeprefix("relax.").replace(".", "_")


def measure(op: Operation, kernels: Kernels, names: FreshSymbols) -> Sequence[SSAValue]:
    """Makes the dimensions of the results known; gives the tensors that are kept for the op's own kernel."""
    rule = SIZES[type(op)]
    unknown = [result for result in op.results if _unknown(result)]
    if rule is None or not unknown:
        return ()
    kernel = Kernel(op, ())
    call = kernels.call(kernel, lambda: rule(kernel, op), f"{stem(op)}_sizes")
    Rewriter.insert_op(call, InsertPoint.before(op))
    numbers, *kept = call.res
    dims = _bind(op, numbers, names)
    each = iter(dims)
    for result in unknown:
        info = result.type
        if isinstance(info, TensorType) and info.dims is not None:
            shape = [(dims[0] if len(dims) == 1 else next(each)) if dim is None else dim for dim in info.dims]
            Rewriter.replace_value_with_new_type(result, info.with_shape(shape))
    return kept


def _unknown(result: OpResult) -> bool:
    return isinstance(result.type, TensorType) and result.type.dims is not None and result.type.known_dims is None


def _bind(op: Operation, numbers: SSAValue, names: FreshSymbols) -> Sequence[Dim]:
    """New symbols for the elements of a tensor of sizes."""
    shape = TensorToShapeOp(numbers)
    inherit_location(op, shape)
    symbols = names.take(shape.result.type.rank or 0)
    cast = MatchCastOp(shape.result, ShapeType(symbols), symbols)
    inherit_location(op, cast)
    Rewriter.insert_op([shape, cast], InsertPoint.before(op))
    return [symbol(name) for name in symbols]
