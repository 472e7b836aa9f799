"""How calls of PrimFuncs of a program, and checks of types, may be shared.

CT1: `call_tir` along the dimensions that the same loop variables index in all accesses of the PrimFunc, alone, from 0
to the end, and that nothing else depends on: so elementwise functions, transpositions, broadcasts, products.
CT2: along such dimensions that all results reduce in the same way: each worker has a term. A sum has to start with 0.
A worker calls the PrimFunc itself if the sizes of these dimensions are symbols that it has for nothing else, or a copy
whose loops run over tiles.
CT3: `call_tir_inplace` likewise. What it writes into a tensor of its caller has to be in the tiles that workers have:
written into one that was moved, it would be lost.
MC1: `match_cast` of a tensor whose dimensions are all known, along each of them. The sizes of the whole are compared,
and give the new symbols; tiles follow from these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.distributed.factors import Factors, Labels, named, shards
from lowering.distributed.local_shapes import LocalShapes, tiled_function
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.callees import explicit_symbols, find_prim_func, match_prim_func
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import ShapeType, TensorType, as_struct_infos
from tir_dialect.analysis.loop_groups import LoopGroup, loop_groups
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp


@shards(MatchCastOp)
def match_cast(op: MatchCastOp) -> Factors | None:
    """MC1."""
    old, new = op.value.type, op.result.type
    if not isinstance(old, TensorType) or not isinstance(new, TensorType):
        return None
    if old.known_dims is None or new.known_dims is None:
        return None
    labels = named("d", len(old.known_dims))
    on_tiles = partial(_restated, op, new, old.known_dims, new.known_dims)
    return Factors(
        [labels], [labels, *(() for _ in op.witnesses)], equal=frozenset(filter(None, labels)), on_tiles=on_tiles
    )


def _restated(
    op: MatchCastOp,
    info: TensorType,
    old: Sequence[Dim],
    new: Sequence[Dim],
    operands: Sequence[SSAValue],
    _: Collection[str],
    shapes: LocalShapes,
) -> Sequence[SSAValue]:
    """The symbols of the whole, and the tile in terms of them.

    ```mlir
    %whole = relax.shape [n, 4]
    %0, %m = relax.match_cast %whole : !relax.shape<[m, 4]> binds [m]
    %1 = relax.match_cast %tile : !relax.tensor<[m_x, 4], f32>
    ```
    """
    (x,) = operands
    whole = ShapeOp(old)
    found = MatchCastOp(whole.result, ShapeType(new), op.symbols)
    found.attributes |= op.attributes  # what its error calls the value
    shapes.insert(whole)
    shapes.insert(found)
    tile = MatchCastOp(x, shapes.of(info))
    shapes.insert(tile)
    return [tile.result, *found.witnesses]


@shards(CallTIROp)
def call_tir(op: CallTIROp) -> Factors | None:
    """CT1, CT2."""
    func = find_prim_func(op, op.callee)
    return None if func is None else _factors(op, func, func.params[len(op.arguments) :])


@shards(CallTIRInplaceOp)
def call_tir_inplace(op: CallTIRInplaceOp) -> Factors | None:
    """CT3."""
    func = find_prim_func(op, op.callee)
    if func is None:
        return None
    fresh = iter(func.params[len(op.arguments) :])
    return _factors(op, func, [next(fresh) if target < 0 else func.params[target] for target in op.targets])


def _factors(op: CallTIROp | CallTIRInplaceOp, func: PrimFuncOp, written: Sequence[SSAValue]) -> Factors | None:
    """The factors of a call of a function, of which the parameters `written` are the results."""
    infos = [value.type for value in (*op.arguments, *op.res)]
    if op.shapes or any(isinstance(info, TensorType) and info.known_dims is None for info in infos):
        return None
    groups = loop_groups(func, written)
    by_name = {f"d{at}": group for at, group in enumerate(groups)}

    def labels(param: SSAValue, value: SSAValue) -> Labels:
        rank = len(value.type.dims or ()) if isinstance(value.type, TensorType) else 0
        names = {group.dims[param]: name for name, group in by_name.items() if param in group.dims}
        return tuple(names.get(at) for at in range(rank))

    arguments = [labels(*pair) for pair in zip(func.params, op.arguments, strict=False)]
    results = [labels(*pair) for pair in zip(written, op.res, strict=True)]
    reduced = {name: group.reduced for name, group in by_name.items() if group.reduced is not None}
    return Factors(arguments, results, reduced, on_tiles=partial(_on_tiles, op, func, by_name))


def _on_tiles(
    op: CallTIROp | CallTIRInplaceOp,
    func: PrimFuncOp,
    groups: dict[str, LoopGroup],
    operands: Sequence[SSAValue],
    factors: Collection[str],
    shapes: LocalShapes,
) -> Sequence[SSAValue]:
    """A call of a function of tiles. Symbols that no buffer determines, or no longer does, are those of the whole."""
    callee = tiled_function(func, [groups[name] for name in groups if name in factors])
    targets = op.targets if isinstance(op, CallTIRInplaceOp) else [-1] * len(op.res)
    fresh = [info for info, target in zip(op.res.types, targets, strict=True) if target < 0]
    known = match_prim_func(op, func, as_struct_infos((*op.arguments.types, *fresh)), op.tir_dims).bindings
    results = [info for info in map(shapes.of, op.res.types) if isinstance(info, TensorType)]
    values, name = [known[name] for name in explicit_symbols(callee)], callee.sym_name.data
    if isinstance(op, CallTIRInplaceOp):
        made = CallTIRInplaceOp(name, operands, targets, results, tir_vars=values)
    else:
        made = CallTIROp(name, operands, results, tir_vars=values)
    shapes.insert(made)
    return made.res
