"""`bind-unknown-dims`: an unknown dimension gets a symbol, so that kernels can be made for it."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.infer_struct_info import ResultTypes
from lowering.relax.lower_shapes import FreshSymbols, bind_call
from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import DestinationPassing
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import symbol


class BindUnknownDimsPass(ModulePass):
    """Binds every unknown dimension of a value of known rank to a new symbol, where an operator uses the value.

    Before:

    ```mlir
    %y = relax.unique %x : !relax.tensor<[_], f32>
    %z = relax.exp %y : !relax.tensor<[_], f32>
    ```

    After:

    ```mlir
    %y = relax.unique %x : !relax.tensor<[_], f32>
    %y_1, %s0 = relax.match_cast %y : !relax.tensor<[s0], f32> binds [s0]
    %z = relax.exp %y_1 : !relax.tensor<[s0], f32>
    ```

    Results are inferred anew on the way, so that what becomes known is known to all later ops. A value of unknown rank
    is left alone, unless a PrimFunc takes it: then its buffer says the rank and dtype. Idempotent.
    """

    name = "bind-unknown-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every function in program order."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _bind_block(func.body.block, FreshSymbols(func), ResultTypes())


def _bind_block(block: Block, symbols: FreshSymbols, types: ResultTypes) -> None:
    for argument in block.args:
        _bind(argument, InsertPoint.at_start(block), None, symbols)
    for op in list(block.ops):
        for inner in (inner for region in op.regions for inner in region.blocks):
            _bind_block(inner, symbols, types)
        try:
            if isinstance(op, DestinationPassing):
                bind_call(op, symbols)
            types.infer(op)
        except (VerifyException, ValueError) as error:
            fail(op, str(error))
        for result in op.results:
            _bind(result, InsertPoint.after(op), op, symbols)


def _bind(value: SSAValue, insert_point: InsertPoint, source: Operation | None, symbols: FreshSymbols) -> None:
    info = value.type
    if not isinstance(info, TensorType | ShapeType) or info.dims is None or info.known_dims is not None:
        return
    if not any(isinstance(use.operation, InfersResultTypes) for use in value.uses):
        return
    names = iter(symbols.take(sum(dim is None for dim in info.dims)))
    dims = [symbol(next(names)) if dim is None else dim for dim in info.dims]
    new = [dim.as_symbol for dim, old in zip(dims, info.dims, strict=True) if old is None]
    refined = info.with_shape(dims) if isinstance(info, TensorType) else ShapeType(dims)
    cast = MatchCastOp(value, refined, [name for name in new if name is not None])
    cast.result.name_hint = value.name_hint
    if source is not None:
        inherit_location(source, cast)
    Rewriter.insert_op(cast, insert_point)
    value.replace_uses_with_if(
        cast.result, lambda use: use.operation is not cast and not use.operation.has_trait(IsTerminator)
    )
