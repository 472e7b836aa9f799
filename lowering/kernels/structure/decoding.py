"""Stages that decode block-quantised weights, recognised by their structure: the formula of one of the formats."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import f32
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import block_of, blocks_in
from tir_dialect.block_formats import FORMATS, BlockFormat
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import byte_size, is_unsigned
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import buffer_type


@dataclass(frozen=True)
class Decoding:
    """A block that decodes a matrix of bytes to one of `f32`, row by row."""

    block_format: BlockFormat
    packed: SSAValue
    """The bytes, of one matrix or of several with the same sizes."""
    numbers: SSAValue
    """What is written."""
    start: Dim
    """The byte at which the matrix begins."""


def find_decoding(block: BlockOp) -> Decoding | None:
    """What a block decodes; `None` if it does something else, or more."""
    stores = [op for op in block.body.block.ops if isinstance(op, StoreOp)]
    loads = [op for op in block.body.block.ops if isinstance(op, LoadOp)]
    if len(stores) != 1 or not loads or block.init is not None or block.condition is not None:
        return None
    (store,), packed = stores, loads[0].buffer
    kind, target = buffer_type(packed), store.buffer_type
    is_bytes = byte_size(kind.dtype) == 1 and is_unsigned(kind.dtype)
    if (
        not is_bytes
        or len(kind.shape) not in (2, 3)
        or target.dtype != f32
        or list(store.indices) != list(block.body.block.args)
    ):
        return None
    name = _Numbers(_known(), block).number(store.value)
    block_format = None if name is None else _names().get(name)
    if block_format is None or any(load.buffer is not packed for load in loads):
        return None
    (rows, row_bytes), shape = kind.shape[-2:], target.shape
    known = row_bytes.constant_value
    fits = known is not None and shape[0] is rows and shape[1].constant_value == block_format.columns(known)
    whole = fits and kind.has_default_strides and target.has_default_strides and not kind.offset.terms
    matrix = _matrix(block, loads) if whole and not target.offset.terms else None
    return None if matrix is None else Decoding(block_format, packed, store.buffer, matrix * rows * row_bytes)


def _matrix(block: BlockOp, loads: list[LoadOp]) -> Dim | None:
    """Which of several matrices all loads read; `None` if that depends on the iterators."""
    if len(loads[0].indices) == 2:
        return constant(0)
    space = IndexSpace(block)
    found = {space.dim_of(load.indices[0]) for load in loads}
    own = {space.variable(arg).dim for arg in block.body.block.args}
    (matrix, *others) = found
    return None if others or matrix is None or matrix.symbols & {dim.as_symbol for dim in own} else matrix


def decodes(func: PrimFuncOp) -> bool:
    """Whether a function does nothing but decode the only matrix of a buffer."""
    blocks = blocks_in(func.body)
    decoding = find_decoding(blocks[0]) if len(blocks) == 1 else None
    return decoding is not None and len(buffer_type(decoding.packed).shape) == 2


class _Numbers:
    """Numbers of the values of a block: equal for values that are computed in the same way, as far as known.

    Iterators are the same if they have the same index; loads, if their indices are.
    """

    def __init__(self, known: dict[Hashable, int], block: BlockOp, *, learn: bool = False):
        self._known, self._block, self._learn = known, block, learn
        self._found: dict[SSAValue, int | None] = {}

    def number(self, value: SSAValue) -> int | None:
        """The number of a value; `None` if there is none like it among those that are known."""
        if value not in self._found:
            key = self._key(value)
            if key is not None and self._learn:
                self._known.setdefault(key, len(self._known))
            self._found[value] = None if key is None else self._known.get(key)
        return self._found[value]

    def _key(self, value: SSAValue) -> Hashable:
        op = value.owner
        if isinstance(value, BlockArgument):
            return ("axis", value.index) if block_of(value) is self._block else None
        if not isinstance(op, Operation) or op.regions:
            return None
        # Which matrix is read is no matter of the formula.
        operands = op.indices[-2:] if isinstance(op, LoadOp) else op.operands
        numbers = tuple(self.number(operand) for operand in operands)
        if None in numbers:
            return None
        properties = () if isinstance(op, LoadOp) else tuple(sorted(op.properties.items(), key=lambda each: each[0]))
        return (type(op), properties, numbers, value.type)


@cache
def _known() -> dict[Hashable, int]:
    """The values of all formulas, with their numbers."""
    known: dict[Hashable, int] = {}
    for block_format in FORMATS.values():
        block, store = _prototype(block_format)
        _Numbers(known, block, learn=True).number(store.value)
    return known


@cache
def _names() -> dict[int, BlockFormat]:
    """The formats by the numbers of their formulas."""
    found: dict[int, BlockFormat] = {}
    for block_format in FORMATS.values():
        block, store = _prototype(block_format)
        number = _Numbers(_known(), block).number(store.value)
        assert number is not None  # it has just been entered
        found[number] = block_format
    return found


@cache
def _prototype(block_format: BlockFormat) -> tuple[BlockOp, StoreOp]:
    """The block of a kernel that decodes a matrix of any number of rows, of two blocks each, and its store."""
    # Not at the top: expressions are for programs with such weights.
    from tir_dialect import te
    from tir_dialect.block_expressions import decoded

    rows = te.var("rows")
    packed = te.placeholder((rows, 2 * block_format.bytes), "ui8", "packed")
    numbers = decoded(packed, (rows, constant(2 * block_format.elements)), block_format)
    func = te.create_prim_func([packed, numbers], name="decode")
    block = next(op for op in func.walk() if isinstance(op, BlockOp))
    return block, next(op for op in block.walk() if isinstance(op, StoreOp))
