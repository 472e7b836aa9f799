"""How the workers of a mesh share a tensor: an attribute of its type, `sharding<x = 2: S[0], y = p: R>`.

The workers of a mesh are numbered along named axes, the last of which counts fastest. For each axis a *placement* says
what the workers along it have: each its tile of a dimension, all the same, or terms whose sum is the tensor. Tiles may
consist of whole units, as of the features of a head: `S[1:64]`. A sharding says where the elements of a tensor are,
never what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, DimLike, ceildiv, constant, floordiv, maximum, minimum, to_dim
from tir_dialect.types import parse_dim_expr

REDUCTIONS = ("sum", "prod", "min", "max")
"""What terms on several workers may be combined by."""


@dataclass(frozen=True)
class Shard:
    """The workers have tiles of a dimension, in their order: `S[0]`; of whole units, `S[0:64]`."""

    dim: int
    unit: int = 1
    """How many elements stay on one worker."""

    def __str__(self) -> str:
        return f"S[{self.dim}]" if self.unit == 1 else f"S[{self.dim}:{self.unit}]"


@dataclass(frozen=True)
class Replicate:
    """All workers have the same; `R`."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial:
    """The workers have terms, which are to be combined; `P` for their sum, `P[max]`."""

    by: str = "sum"

    def __str__(self) -> str:
        return "P" if self.by == "sum" else f"P[{self.by}]"


Placement = Shard | Replicate | Partial
REPLICATE = Replicate()


@dataclass(frozen=True)
class MeshAxis:
    """One axis of a mesh: its name, and how many workers there are along it."""

    name: str
    size: Dim

    def __str__(self) -> str:
        return f"{self.name} = {self.size}"


@irdl_attr_definition
class ShardingAttr(Data[tuple[tuple[MeshAxis, Placement], ...]]):
    """A mesh with a placement for each of its axes: `#relax.sharding<x = 2: S[0], y = p: P[max]>`.

    The axes have different names, constant sizes are at least 1, no dimension is sharded twice, and terms are combined
    by `sum`, `prod`, `min` or `max`.
    """

    name = "relax.sharding"

    @staticmethod
    def of(axes: Mapping[str, DimLike], placements: str | Sequence[Placement]) -> ShardingAttr:
        """The attribute for sizes by name and placements, which may be text: `S[0], R`. Raises `VerifyException`."""
        given = placements_of(placements) if isinstance(placements, str) else tuple(placements)
        if len(given) != len(axes):
            raise VerifyException(f"expected a placement for each of {len(axes)} axes of the mesh, got {len(given)}")
        mesh = (MeshAxis(name, to_dim(size)) for name, size in axes.items())
        return ShardingAttr(tuple(zip(mesh, given, strict=True)))

    @property
    def mesh(self) -> tuple[MeshAxis, ...]:
        """The axes of the mesh."""
        return tuple(axis for axis, _ in self.data)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement for each axis."""
        return tuple(placement for _, placement in self.data)

    @property
    def symbols(self) -> Iterator[str]:
        """The symbols in the sizes of the mesh."""
        for axis in self.mesh:
            yield from axis.size.symbols

    @property
    def shards(self) -> dict[int, MeshAxis]:
        """The dimensions of which workers have tiles, each with the axis along which the workers are."""
        return {placement.dim: axis for axis, placement in self.data if isinstance(placement, Shard)}

    @property
    def units(self) -> dict[int, int]:
        """How many elements of each of these dimensions stay on one worker."""
        return {placement.dim: placement.unit for placement in self.placements if isinstance(placement, Shard)}

    @property
    def workers(self) -> int | None:
        """How many workers the mesh has, if that is a number."""
        sizes = [axis.size.constant_value for axis in self.mesh]
        return None if None in sizes else prod(size for size in sizes if size is not None)

    def with_placements(self, placements: Sequence[Placement]) -> ShardingAttr:
        """The same mesh with other placements."""
        return ShardingAttr(tuple(zip(self.mesh, placements, strict=True)))

    def substitute(self, mapping: Mapping[str, Dim]) -> ShardingAttr:
        """The attribute with the symbols of sizes replaced."""
        if not any(name in mapping for name in self.symbols):
            return self
        return ShardingAttr(
            tuple((replace(axis, size=axis.size.substitute(mapping)), placement) for axis, placement in self.data)
        )

    def verify_rank(self, rank: int | None) -> None:
        """Raises `VerifyException` unless each dimension that is sharded is within the rank."""
        for dim in self.shards:
            if rank is not None and dim >= rank:
                raise VerifyException(f"expected a placement within rank {rank}, got S[{dim}]")

    def verify(self) -> None:
        names = [axis.name for axis in self.mesh]
        if len(set(names)) != len(names):
            raise VerifyException(f"expected axes of a mesh with different names, got {', '.join(names)}")
        for axis in self.mesh:
            if axis.size.constant_value is not None and axis.size.constant_value < 1:
                raise VerifyException(f"expected at least one worker along axis {axis.name}, got {axis.size}")
        dims = [placement.dim for placement in self.placements if isinstance(placement, Shard)]
        if len(set(dims)) != len(dims):
            raise VerifyException(f"expected each dimension to be sharded once, got {self.text}")
        for placement in self.placements:
            if isinstance(placement, Shard) and placement.unit < 1:
                raise VerifyException(f"expected units of at least one element, got {placement}")
            if isinstance(placement, Partial) and placement.by not in REDUCTIONS:
                raise VerifyException(f"expected terms combined by {', '.join(REDUCTIONS)}, got {placement}")

    @property
    def text(self) -> str:
        """`x = 2: S[0], y = p: R`."""
        return ", ".join(f"{axis}: {placement}" for axis, placement in self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[MeshAxis, Placement], ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_axis(parser)))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.text)


def _parse_axis(parser: AttrParser) -> tuple[MeshAxis, Placement]:
    name = parser.parse_identifier(" as the name of an axis of a mesh")
    parser.parse_punctuation("=")
    size = parse_dim_expr(parser)
    parser.parse_punctuation(":")
    return MeshAxis(name, size), _parse_placement(parser)


def _parse_placement(parser: AttrParser) -> Placement:
    word = parser.expect(
        lambda: parser.parse_optional_keyword_in(["S", "R", "P"]), "expected a placement: S[0], R or P"
    )
    if word == "R":
        return REPLICATE
    if word == "P" and parser.parse_optional_punctuation("[") is None:
        return Partial()
    if word == "S":
        parser.parse_punctuation("[")
    if word == "P":
        found: Placement = Partial(parser.parse_identifier(" as what terms are combined by"))
    else:
        dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
        has_unit = parser.parse_optional_punctuation(":") is not None
        found = Shard(dim, parser.parse_integer(allow_boolean=False, allow_negative=False) if has_unit else 1)
    parser.parse_punctuation("]")
    return found


def placements_of(text: str) -> tuple[Placement, ...]:
    """The placements that a text lists, as TVM writes them: `S[0], R`. Raises `VerifyException` for another text."""
    found: list[Placement] = []
    for word in (each.strip() for each in text.split(",") if text.strip()):
        kind, bracket, inner = word.partition("[")
        inner = inner.removesuffix("]") if bracket and word.endswith("]") else ""
        dim, colon, unit = inner.partition(":")
        if kind == "S" and dim.isdecimal() and (unit.isdecimal() or not colon):
            found.append(Shard(int(dim), int(unit or 1)))
        elif kind == "P" and bool(bracket) == bool(inner):
            found.append(Partial(inner or "sum"))
        elif word == "R":
            found.append(REPLICATE)
        else:
            raise VerifyException(f"expected a placement R, S[dimension] or P, got {word}")
    return tuple(found)


def tile_size(size: Dim, workers: Dim) -> Dim:
    """How many elements of a dimension each worker has, but for the last ones: they are divided upwards."""
    return ceildiv(size, workers)


def own_tile(size: Dim, workers: Dim, index: Dim, unit: int = 1) -> Dim:
    """How many elements of a dimension the worker `index` has, with the fewest that are the same for all.

    If the number of workers divides the dimension, all have equally many. Else all have as many as that divided
    upwards, except that the last ones have what is left, or nothing. So it is with units, which divide the dimension.
    """
    if unit != 1:
        return own_tile(floordiv(size, constant(unit)), workers, index) * unit
    if (count := workers.constant_value) is not None:
        whole = floordiv(size, constant(count))
        if whole * count == size:
            return whole
    tile = tile_size(size, workers)
    return maximum(constant(0), minimum(tile, size - index * tile))


def tile_bounds(size: int, workers: int, index: int, unit: int = 1) -> tuple[int, int]:
    """Where the tile of a worker begins and ends."""
    tile = -(-size // (workers * unit)) * unit
    return min(index * tile, size), min((index + 1) * tile, size)


def coordinates(mesh: Mapping[str, int], rank: int) -> dict[str, int]:
    """The index of a rank along each axis of a mesh, of which the last counts fastest."""
    found: dict[str, int] = {}
    for name, size in reversed(tuple(mesh.items())):
        rank, found[name] = divmod(rank, size)
    return {name: found[name] for name in mesh}


def group_of(mesh: Mapping[str, int], rank: int, group: str) -> list[int]:
    """The ranks that differ from a rank only along the axis `group`, or all; `ValueError` if there is no such axis."""
    if not group:
        return list(range(prod(mesh.values())))
    if group not in mesh:
        raise ValueError(f'no axis "{group}" in a mesh of {", ".join(mesh) or "one worker"}')
    mine = coordinates(mesh, rank)
    everyone = [dict(zip(mesh, at, strict=True)) for at in product(*map(range, mesh.values()))]
    return [at for at, other in enumerate(everyone) if all(other[name] == mine[name] for name in mesh if name != group)]
