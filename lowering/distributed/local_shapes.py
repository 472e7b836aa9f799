"""The shapes that one worker has, in the symbols of its own program.

The program of a worker starts with the sizes of the whole, and with its place in the mesh: from these follow the sizes
of its tiles. A tile whose size is an expression that all workers have in common (`n` of `2 * n` rows) is written so;
any other gets a symbol, `n_x` for the tile of `n` along the axis `x`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.sharding import MeshAxis, own_tile
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, symbol


class LocalShapes:
    """The tiles of one function."""

    def __init__(self, mesh: Sequence[MeshAxis], taken: set[str], insert: Callable[[Operation], object]):
        """New symbols are none of `taken`; `insert` puts ops where those of the worker are made."""
        self.mesh = tuple(mesh)
        self._taken = taken
        self.insert = insert
        self.indices = {axis.name: symbol(self._fresh(f"{axis.name}_index")) for axis in mesh}
        """The index of this worker along each axis."""
        self._symbols: dict[tuple[Dim, str], Dim] = {}
        self._bound: set[Dim] = set()

    def _fresh(self, base: str) -> str:
        name = fresh_name(base, self._taken)
        self._taken.add(name)
        return name

    def exact(self, size: Dim, axis: MeshAxis) -> Dim:
        """The tile of a dimension along an axis, as an expression."""
        return own_tile(size, axis.size, self.indices[axis.name])

    def tile(self, size: Dim, axis: MeshAxis) -> Dim:
        """The tile of a dimension along an axis: a symbol where it is not the same for all workers."""
        exact = self.exact(size, axis)
        if exact.symbols.isdisjoint({str(self.indices[axis.name])}):
            return exact
        key = (size, axis.name)
        if key not in self._symbols:
            self._symbols[key] = symbol(self._fresh(f"{size.as_symbol or 'tile'}_{axis.name}"))
        found = self._symbols[key]
        if found not in self._bound:
            self._bound.add(found)
            shape = ShapeOp([exact])
            self.insert(shape)
            self.insert(MatchCastOp(shape.result, ShapeType([found]), [str(found)]))
        return found

    @contextmanager
    def scope(self) -> Generator[None]:
        """A region: symbols that are bound in it are not visible after it."""
        symbols, bound = dict(self._symbols), set(self._bound)
        yield
        self._symbols, self._bound = symbols, bound

    def of(self, info: StructInfo) -> StructInfo:
        """The type of a worker's part of a value."""
        return self._localized(info, self.tile)

    def exactly(self, info: StructInfo) -> StructInfo:
        """The type of a worker's part of a value, with expressions only."""
        return self._localized(info, self.exact)

    def _localized(self, info: StructInfo, tile: Callable[[Dim, MeshAxis], Dim]) -> StructInfo:
        if isinstance(info, TupleType):
            return TupleType(self._localized(field, tile) for field in info.fields)
        if not isinstance(info, TensorType) or info.sharding is None:
            return info
        if info.dims is None:
            raise VerifyException(f"expected a tensor of known rank, got {info}")
        dims = list(info.dims)
        for at, axis in info.sharding.shards.items():
            size = dims[at]
            if size is None:
                raise VerifyException(f"expected dimension {at} to be known, of which workers have tiles, got {info}")
            dims[at] = tile(size, axis)
        return TensorType(dims, info.dtype, info.device)
