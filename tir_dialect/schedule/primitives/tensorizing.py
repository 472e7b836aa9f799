"""Tensor intrinsics, which are tiles of a computation that a given piece of code can do, and replacing such a tile.

Tiles have to be in bounds, and apart where one of them is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DictionaryAttr, IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, written_buffers
from tir_dialect.analysis.structure import enclosing_loops, root_buffer
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, InitOp, MatchBufferOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, RegionAxis, StoreOp
from tir_dialect.schedule.edits import Materializer, is_index_op, only_statement
from tir_dialect.schedule.handles import Block, Loop, ScheduleError
from tir_dialect.schedule.legality.accesses import accesses_in, join, loops_between, range_of
from tir_dialect.schedule.primitives.blockizing import blockize
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import shape_of
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class Tile:
    """The part of a buffer that a parameter of the description stands for, by its start in each dimension."""

    buffer: SSAValue
    starts: tuple[Dim, ...]


class Matcher:
    """Compares the content of a block with a description; tiles are in the symbols of `space`."""

    def __init__(self, state: ScheduleState, outer: BlockOp, description: PrimFuncOp):
        self._state = state
        self._outer = outer
        self._description = description
        self.space = IndexSpace(outer)
        self._other = IndexSpace(description)
        self._symbols: dict[str, Dim] = {}
        self._values: dict[SSAValue, SSAValue] = {}
        self._tiles: dict[int, Tile] = {}

    def match(self) -> list[Tile]:
        """The tile of each parameter; refuses content that the description does not describe."""
        body = [op for op in self._outer.body.block.ops if op is not self._outer.init and not is_index_op(op)]
        mine = _leaf(body[0]) if len(body) == 1 else None
        theirs = only_statement(self._description.body.block)
        other = None if theirs is None else _leaf(theirs)
        if mine is None or other is None:
            raise self._refuse("is not a nest of loops around one block")
        self._match_loops(enclosing_loops(mine), enclosing_loops(other))
        own = _moving_kinds(mine, self.space, {dim.as_symbol or "" for dim in self._symbols.values()})
        described = _moving_kinds(other, self._other, self._symbols.keys())
        if own != described:
            have, want = (", ".join(kind.value for kind in kinds) or "none" for kinds in (own, described))
            raise self._refuse(f"has iterators of kinds {have}, the description of kinds {want}")
        own = [op for op in mine.body.block.ops if not _is_found_elsewhere(op)]
        described = [op for op in other.body.block.ops if not _is_found_elsewhere(op)]
        plain = all(each.condition is None and each.init is None for each in (mine, other))
        if not plain or len(own) != len(described):
            raise self._refuse("has a condition, an init or other ops than the description")
        for one, two in zip(own, described, strict=True):
            self._match_op(one, two)
        if len(self._tiles) != len(self._description.params):
            raise self._refuse("does not use all parameters of the description")
        return [self._tiles[number] for number in range(len(self._tiles))]

    def _refuse(self, reason: str) -> ScheduleError:
        return self._state.error(f'the content of block "{self._outer.block_name.data}" {reason}')

    def _match_loops(self, mine: Sequence[ForOp], theirs: Sequence[ForOp]) -> None:
        if len(mine) != len(theirs):
            raise self._refuse(f"has {len(mine)} loops, the description has {len(theirs)}")
        for one, two in zip(mine, theirs, strict=True):
            own, other = self.space.variable(one.induction_var), self._other.variable(two.induction_var)
            if (own.lower, own.upper) != (other.lower, other.upper):
                raise self._refuse(
                    f'has loop "{one.induction_var.name_hint}" to {own.upper}, the description one to {other.upper}'
                )
            self._symbols[other.dim.as_symbol or ""] = own.dim

    def _match_op(self, mine: Operation, theirs: Operation) -> None:
        same = type(mine) is type(theirs) and mine.result_types == theirs.result_types and not mine.regions
        if not same or (not isinstance(mine, LoadOp | StoreOp) and mine.properties != theirs.properties):
            raise self._refuse(f"has '{mine.name}' where the description has '{theirs.name}'")
        if isinstance(mine, LoadOp | StoreOp) and isinstance(theirs, LoadOp | StoreOp):
            self._match_access(mine, theirs)
        if not isinstance(mine, LoadOp):
            ours = mine.operands[:1] if isinstance(mine, StoreOp) else mine.operands
            for one, two in zip(ours, theirs.operands, strict=False):
                if self._values.get(two) is not one and not _is_same_constant(one, two):
                    raise self._refuse(f"has other operands of '{mine.name}' than the description")
        self._values.update(zip(theirs.results, mine.results, strict=True))

    def _match_access(self, mine: LoadOp | StoreOp, theirs: LoadOp | StoreOp) -> None:
        number = self._description.params.index(theirs.buffer) if theirs.buffer in self._description.params else -1
        dims = [self.space.dim_of(index) for index in mine.indices]
        others = [self._other.dim_of(index) for index in theirs.indices]
        known = [dim for dim in dims if dim is not None]
        wanted = [dim.substitute(self._symbols) for dim in others if dim is not None]
        fits = number >= 0 and len(known) == len(dims) and len(wanted) == len(others) <= len(known)
        if not fits or mine.mask is not None or theirs.mask is not None:
            raise self._refuse(f'accesses buffer "{mine.buffer.name_hint}" otherwise than the description')
        lead = len(known) - len(wanted)
        starts = [*known[:lead], *(one - two for one, two in zip(known[lead:], wanted, strict=True))]
        moving = {dim.as_symbol for dim in self._symbols.values()}
        tile = Tile(mine.buffer, tuple(starts))
        if any(not moving.isdisjoint(start.symbols) for start in starts):
            raise self._refuse(f'accesses buffer "{mine.buffer.name_hint}" at other indices than the description')
        if self._tiles.setdefault(number, tile) != tile:
            raise self._refuse(f'accesses several tiles of buffer "{mine.buffer.name_hint}"')
        wanted = self._description.params[number].type
        if not isinstance(wanted, BufferType) or mine.buffer_type.dtype != wanted.dtype:
            raise self._refuse(f'has {mine.buffer_type.dtype} in buffer "{mine.buffer.name_hint}", expected {wanted}')


def _moving_kinds(block: BlockOp, space: IndexSpace, names: AbstractSet[str]) -> list[IteratorKind]:
    """The kinds of the iterators that loops move."""
    bindings = [(it.kind, space.dim_of(it.binding)) for it in block.iterators]
    return [kind for kind, dim in bindings if dim is None or not names.isdisjoint(dim.symbols)]


def _leaf(op: Operation) -> BlockOp | None:
    current: Operation | None = op
    while isinstance(current, ForOp):
        current = only_statement(current.body.block)
    return current if isinstance(current, BlockOp) else None


def _is_found_elsewhere(op: Operation) -> bool:
    """Whether an op is compared where it is used: an index, as an expression, or a constant, which may be outside."""
    return isinstance(op, arith.ConstantOp) or (is_index_op(op) and isinstance(op.results[0].type, IndexType))


def _is_same_constant(one: SSAValue, two: SSAValue) -> bool:
    match one.owner, two.owner:
        case arith.ConstantOp() as mine, arith.ConstantOp() as theirs:
            return mine.value == theirs.value
        case _:
            return False


@dataclass(frozen=True)
class TensorIntrin:
    """Two functions with the same parameters, buffers of constant shapes.

    `description` is a nest of loops around one block without init and says what is computed; `implementation` is the
    code that replaces it, with the parameters standing for the tiles.
    """

    name: str
    description: PrimFuncOp
    implementation: PrimFuncOp


_INTRINS: dict[str, TensorIntrin] = {}


def register_tensor_intrin(intrin: TensorIntrin) -> None:
    """Makes an intrinsic known by its name; ValueError if the two functions do not fit together.

    An intrinsic registered before under this name is replaced.
    """
    description, implementation = intrin.description, intrin.implementation
    types = [[param.type for param in func.params] for func in (description, implementation)]
    if types[0] != types[1] or description.symbols or implementation.symbols:
        raise ValueError(
            f'tensor intrinsic "{intrin.name}": expected two functions with the same parameters and without symbols'
        )
    _INTRINS[intrin.name] = intrin


def registered_tensor_intrin(name: str) -> TensorIntrin | None:
    """The intrinsic of this name, if there is one."""
    return _INTRINS.get(name)


def tensor_intrin_names() -> list[str]:
    """The names of all intrinsics."""
    return sorted(_INTRINS)


def check_tiles(self: ScheduleState, space: IndexSpace, tiles: Sequence[Tile], description: PrimFuncOp) -> None:
    """Refuses tiles, one for each parameter of a description, that an implementation may not use as it likes.

    Parameters of an intrinsic do not overlap, and all of their elements are there.
    """
    boxes = [_box(tile, param) for tile, param in zip(tiles, description.params, strict=True)]
    written = written_buffers(description)
    rows = list(zip(tiles, description.params, boxes, strict=True))
    for tile, param, box in rows:
        if not _is_inside(space, tile, box) and not _uses_all(description, param):
            raise self.error(f'the tile of buffer "{tile.buffer.name_hint}" may reach behind its end')
    for (one, param, box), (two, other, position) in combinations(rows, 2):
        if not written.isdisjoint((param, other)) and not _are_apart(space, (one, two), (box, position)):
            raise self.error(
                f'the tiles of parameters "{param.name_hint}" and "{other.name_hint}" may overlap in buffer '
                f'"{one.buffer.name_hint}", and one of them is written'
            )


def _box(tile: Tile, param: SSAValue) -> list[AxisRange]:
    shape = shape_of(param)
    extents = [*[constant(1)] * (len(tile.starts) - len(shape)), *shape]
    return [AxisRange(start, extent) for start, extent in zip(tile.starts, extents, strict=True)]


def _is_inside(space: IndexSpace, tile: Tile, box: Sequence[AxisRange]) -> bool:
    """Whether a tile is in its buffer for all values of the iterators."""
    return all(
        space.less_equal(0, axis.lower) is True and space.less_equal(axis.lower + axis.extent, extent) is True
        for axis, extent in zip(box, shape_of(tile.buffer), strict=True)
    )


def _uses_all(description: PrimFuncOp, param: SSAValue) -> bool:
    """Whether the description reaches both ends of a parameter, so the function itself reaches as far."""
    space = IndexSpace(description)
    columns: list[list[AxisRange | None]] = [[] for _ in shape_of(param)]
    for access in accesses_in(space, description):
        if access.buffer is param:
            inner = [space.variable(loop.induction_var) for loop in loops_between(access, None)]
            for column, axis in zip(columns, access.axes, strict=True):
                column.append(range_of(space.prover, axis, inner))
    for column, extent in zip(columns, shape_of(param), strict=True):
        known = [axis for axis in column if axis is not None]
        if not known or join(space.prover, known) != AxisRange(constant(0), extent):
            return False
    return True


def _are_apart(space: IndexSpace, tiles: tuple[Tile, Tile], boxes: tuple[list[AxisRange], list[AxisRange]]) -> bool:
    """Whether tiles have no element in common: of different memory, or one after the other in some dimension."""
    one, two = (tile.buffer for tile in tiles)
    if root_buffer(one) is not root_buffer(two):
        return True
    return one is two and any(
        space.less_equal(a.lower + a.extent, b.lower) is True or space.less_equal(b.lower + b.extent, a.lower) is True
        for a, b in zip(*boxes, strict=True)
    )


@primitive
def tensorize(self: ScheduleState, block_or_loop: Block | Loop, tensor_intrin: str) -> Block:
    """Replaces the body of a block, or a loop and its body, by a registered tensor intrinsic.

    rewrite:
        for i0: for i1 in 4: C[4 * i0 + i1] = A[4 * i0 + i1] * 2
        -> for i0: block(vo = i0): C_tile = C[4 * vo to 4 * vo + 4]; A_tile = ...; double4(A_tile, C_tile)

    The init of a reduction stays what it is. Returns the block, which has the annotations of an implementation that is
    one block.

    Refuses:
    1. an intrinsic that is not registered;
    2. loops that `blockize` refuses;
    3. content that differs from the description: loops, iterator kinds, ops, operands, dtypes, or accesses;
    4. tiles that overlap where one is written, and tiles that may reach after a buffer;
    5. an implementation that needs other strides than the buffers have.
    """
    found = registered_tensor_intrin(tensor_intrin)
    if found is None:
        names = ", ".join(tensor_intrin_names()) or "none"
        raise self.error(f'expected a registered tensor intrinsic, got "{tensor_intrin}"; there are {names}')
    self.as_refusal(lambda: _try(self.copy(), block_or_loop, found))
    return _tensorized(self, block_or_loop, found)


def _tensorized(self: ScheduleState, target: Block | Loop, intrin: TensorIntrin) -> Block:
    block = blockize(self, target) if isinstance(target, Loop) else target
    matcher = Matcher(self, block.op, intrin.description)
    tiles = matcher.match()
    check_tiles(self, matcher.space, tiles, intrin.description)
    outer = block.op
    body = outer.body.block
    for op in reversed([op for op in body.ops if op is not outer.init]):
        Rewriter.erase_op(op)
    emitter = Materializer(self.func, matcher.space, InsertPoint.at_end(body))
    mapping: dict[SSAValue, SSAValue] = {}
    for tile, param in zip(tiles, intrin.implementation.params, strict=True):
        source, kind = (SSAValue.get(buffer, type=BufferType).type for buffer in (tile.buffer, param))
        lead = source.rank - kind.rank
        axes = [RegionAxis(emitter.emit(start)) for start in tile.starts[:lead]]
        for start, extent in zip(tile.starts[lead:], kind.shape, strict=True):
            axes.append(RegionAxis(emitter.emit(start), emitter.emit(start + extent)))
        strides = source.strides[lead:]
        view = MatchBufferOp(tile.buffer, axes, BufferType(kind.shape, kind.dtype, strides=strides, scope=source.scope))
        view.view.name_hint = f"{tile.buffer.name_hint or 'buffer'}_tile"
        body.add_op(view)
        mapping[param] = view.view
    for op in intrin.implementation.body.block.ops:
        clone = op.clone(mapping)
        clone.location = outer.location
        body.add_op(clone)
    # What an implementation that is one block says of itself, it says of the block that it becomes.
    content = [op for op in body.ops if not is_index_op(op)]
    match [op for op in content if not isinstance(op, MatchBufferOp | InitOp)]:
        case [BlockOp(iterators=()) as whole] if whole.annotations is not None:
            own = (outer.annotations or DictionaryAttr({})).data
            outer.annotations = DictionaryAttr({**own, **whole.annotations.data})
            whole.annotations = None
        case _:
            pass
    return block


def _try(twin: ScheduleState, target: Block | Loop, intrin: TensorIntrin) -> None:
    """Refuses on a copy of the schedule, before anything is changed."""
    twin.run(_tensorized, (target, intrin), {})
    try:
        twin.func.verify()
    except VerifyException as error:
        reason = error.__cause__ or error
        raise twin.error(f'the implementation of intrinsic "{intrin.name}" does not fit here: {reason}') from None
