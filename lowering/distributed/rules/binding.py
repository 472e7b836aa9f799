"""How checks of types may be shared.

MC1: `match_cast` of a tensor whose dimensions are all known, along each of them. The sizes of the whole are compared,
and give the new symbols; tiles follow from these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.distributed.factors import Factors, named, shards
from lowering.distributed.local_shapes import LocalShapes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim


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
