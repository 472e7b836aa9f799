"""Matching of a tile of a function with the description of a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_loops
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.handles import ScheduleError
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import is_index_op, only_statement
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
        self._match_iterators(mine, other)
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

    def _match_iterators(self, mine: BlockOp, theirs: BlockOp) -> None:
        own = _moving_kinds(mine, self.space, {dim.as_symbol or "" for dim in self._symbols.values()})
        described = _moving_kinds(theirs, self._other, self._symbols.keys())
        if own != described:
            have, want = (", ".join(kind.value for kind in kinds) or "none" for kinds in (own, described))
            raise self._refuse(f"has iterators of kinds {have}, the description of kinds {want}")

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
        self._check_dtype(mine, number)

    def _check_dtype(self, access: LoadOp | StoreOp, number: int) -> None:
        wanted = self._description.params[number].type
        if not isinstance(wanted, BufferType) or access.buffer_type.dtype != wanted.dtype:
            raise self._refuse(
                f'has {access.buffer_type.dtype} in buffer "{access.buffer.name_hint}", expected {wanted}'
            )


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
