"""Recognises contractions of bytes, or of `bf16`, for targets with dot-product instructions on them.

A dot-product group is four bytes, or two `bf16`, or two bytes extended to 16 bits, that follow each other along K. An
instruction multiplies the numbers of two groups and adds the products to an accumulator (`tir.dot`). Of bytes it takes
one unsigned and one signed factor.
Where both have the same signedness the rows change theirs: `a` becomes `a + 128` or `a - 128`, and the accumulators are
initialised with the correction, for each column 128 times the sum of its elements. All of this is exact, since integers
wrap around.

Without such an instruction, two products of 16 bits are added by one (`vpmaddwd`), whose factors have any signs: rows
are extended where they are packed, columns where they are loaded. Where columns lie in panels of four bytes, most of
them are so small that two products of bytes fit 16 bits, and are added by an instruction that would saturate them
(`vpmaddubsw`); code tests that for each step of a panel (`step_order.py`), and the other steps are made in 16 bits.
`bf16` is accumulated in `f32`; subnormal factors and results count as zero.

Columns may lie in panels, as `pack-weights` arranges them: `B[j floordiv w, r floordiv p, j mod w, r mod p]`, where `r`
is a step of K, `p` numbers make a group, and a panel has `w` columns, those of a register tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, IntegerType, bf16, f32, i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.kernels.cost_model import DOT_GROUP_PANEL_VECTORS, DOT_GROUP_SMALL_M
from lowering.kernels.structure.contraction import Contraction, Factor, is_chain
from lowering.kernels.structure.stages import linear
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dims import product as product_of
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.tile_registers import TILE_SIZE
from tir_dialect.ops.vectors import PARTS, ui8
from tir_dialect.target import Target


@dataclass(frozen=True)
class DotGroupPanels:
    """The load of the columns, from a buffer `[panels, depth, width, parts]`."""

    load: LoadOp


def find_dot_group_panels(
    contraction: Contraction, reduced: Sequence[int], lanes: int, chunks: int
) -> DotGroupPanels | None:
    """The panels in which the columns lie, as wide as a tile; `reduced` are the axes of K in their order."""
    loads = contraction.columns.loads
    if len(loads) != 1 or len(contraction.column) != 1 or len(loads[0].indices) != 4:
        return None
    (load,), axes = loads, contraction.stage.axes
    width, number = (extent.constant_value for extent in load.buffer_type.shape[-2:])
    column = _split_value(load.indices[0], load.indices[2], width)
    element = _split_value(load.indices[1], load.indices[3], number)
    suited = (
        width == DOT_GROUP_PANEL_VECTORS * lanes and number == chunks and column is axes[contraction.column[0]].value
    )
    return (
        DotGroupPanels(load)
        if suited and element is not None and _counts_the_sum(contraction, reduced, element)
        else None
    )


def _split_value(quotient: SSAValue, remainder: SSAValue, divisor: int | None) -> SSAValue | None:
    """The value that is divided into two indices."""
    high, low = quotient.owner, remainder.owner
    if not isinstance(high, arith.DivUIOp | arith.FloorDivSIOp) or not isinstance(low, arith.RemUIOp):
        return None
    same = high.lhs is low.lhs and all(_number(each.rhs) == divisor for each in (high, low))
    return low.lhs if same else None


def _number(value: SSAValue) -> int | None:
    found = dim_of(value)
    return None if found is None else found.constant_value


def _counts_the_sum(contraction: Contraction, reduced: Sequence[int], element: SSAValue) -> bool:
    """Whether a value numbers the steps of K, the last axis changing fastest."""
    space, stage = IndexSpace(contraction.stage.block), contraction.stage
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    index, step = linear(space, names, element), constant(1)
    if index.value is not None or index.base.terms:
        return False
    for axis in reversed(reduced):
        if index.strides[axis] is not step:
            return False
        step = step * stage.extents[axis]
    return True


FLOAT_EXTENSIONS = ("avx512bf16",)
TILE_EXTENSIONS: dict[Attribute, str] = {bf16: "amx-bf16", i8: "amx-int8"}
"""By the type of a number in a register, the extension whose tile registers have dot products of it."""
BYTE_EXTENSIONS = {16: ("avx512vnni",), 8: ("avx512vnni", "avxvnni"), 4: ("avx512vnni", "avxvnni", "i8mm")}
"""By the number of groups in a register, the extensions of which one is needed for bytes."""


@dataclass(frozen=True)
class DotGroupContraction:
    """A contraction in dot-product groups."""

    contraction: Contraction
    rows: Factor
    """The bytes themselves, before they are extended."""
    columns: Factor
    dtypes: tuple[Attribute, Attribute]
    """Of rows and columns in memory."""
    reduced: tuple[int, ...]
    """The axes of K, in the order in which rows lie."""
    panels: DotGroupPanels | None
    """The panels in which the columns lie already."""
    in_tiles: bool = False
    """Whether dot products are made in tile registers, which take factors of any signs."""
    in_int16: bool = False
    """Whether bytes are extended to 16 bits."""
    in_byte_pairs: bool = False
    """Whether two products of bytes at a time are added to 16 bits in those steps where no sum can saturate."""

    @property
    def parts(self) -> int:
        """Numbers of a group."""
        return PARTS[self.factors[0]]

    @property
    def storage(self) -> AnyFloat | IntegerType:
        """The type of a number in a vector, which has no sign."""
        return bf16 if self.is_float else i16 if self.in_int16 else i8

    @property
    def total(self) -> AnyFloat | IntegerType:
        """The type of the accumulators."""
        return f32 if self.is_float else i32

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floats, of which an infinity or NaN times zero is no zero."""
        return self.dtypes[0] == bf16

    @property
    def is_flipped(self) -> bool:
        """Whether the sign bit of the rows is flipped."""
        return self.dtypes[0] == self.dtypes[1] and not (self.is_float or self.in_tiles or self.in_int16)

    @property
    def factors(self) -> tuple[Attribute, Attribute]:
        """The dtypes that are multiplied."""
        if self.in_int16:
            return i16, i16
        left, right = self.dtypes
        return (ui8 if left == i8 else i8, right) if self.is_flipped else self.dtypes

    @property
    def k(self) -> Dim:
        """K, in numbers."""
        return product_of(self.contraction.stage.extents[axis] for axis in self.reduced)

    @property
    def depth(self) -> Dim:
        """K, in groups."""
        return ceildiv(self.k, constant(self.parts))


def find_dot_group_contraction(contraction: Contraction, target: Target) -> DotGroupContraction | None:
    """A contraction in dot-product groups; `None` if the types, the machine or the order of the factors do not suit."""
    narrow_rows, narrow_columns = narrow_factor(contraction.rows), narrow_factor(contraction.columns)
    if (
        narrow_rows is None
        or narrow_columns is None
        or not contraction.column
        or not contraction.reduced
        or contraction.outer
    ):
        return None
    (rows, left), (columns, right) = narrow_rows, narrow_columns
    in_pairs = left != bf16 and not has_dot_products(target, left)
    if PARTS[left] != PARTS[right] or not (has_int16_products(target) if in_pairs else has_dot_products(target, left)):
        return None
    inner = [axis for axis in contraction.reduced if rows.stride(axis) == 1]
    reduced = (*(axis for axis in contraction.reduced if axis not in inner), *inner)
    panels = find_dot_group_panels(contraction, reduced, target.lanes(32), PARTS[right])
    in_byte_pairs = in_pairs and right == i8 and panels is not None
    in_int16 = in_pairs and not in_byte_pairs
    if in_int16:
        panels = find_dot_group_panels(contraction, reduced, target.lanes(32), PARTS[i16])
    m = product_of(contraction.stage.extents[axis] for axis in contraction.row).constant_value
    in_tiles = has_tile_registers(target, bf16 if left == bf16 else i8) and (m is None or m > DOT_GROUP_SMALL_M)
    kind = in_tiles, in_int16, in_byte_pairs
    groups = DotGroupContraction(contraction, rows, columns, (left, right), reduced, panels, *kind)
    return groups if _can_be_packed(groups) else None


def has_dot_products(target: Target, dtype: Attribute) -> bool:
    """Whether a machine adds up products of a dtype at once."""
    needed = FLOAT_EXTENSIONS if dtype == bf16 else BYTE_EXTENSIONS.get(target.lanes(32), ())
    return bool(target.extensions.intersection(needed))


def has_int16_products(target: Target) -> bool:
    """Whether a machine adds up two products of 16 bits at once, in vectors of the width that it uses."""
    is_whole = target.lanes(32) == 8 or (target.lanes(32) == 16 and "avx512dq" in target.extensions)
    return target.arch.startswith("x86") and is_whole


def has_tile_registers(target: Target, storage: Attribute) -> bool:
    """Whether a machine has tile registers for numbers of a type, as wide as its vectors."""
    is_usable = target.lanes(32) == TILE_SIZE and "linux" in target.triple
    return is_usable and TILE_EXTENSIONS[storage] in target.extensions


def narrow_factor(factor: Factor) -> tuple[Factor, Attribute] | None:
    """A factor before it is extended, and its dtype."""
    op = factor.value.owner
    source = _source(op) if isinstance(op, Operation) else None
    if source is None or not isinstance(op, Operation):
        return None
    return replace(factor, value=op.operands[0]), source


def _source(op: Operation) -> Attribute | None:
    match op:
        case arith.ExtSIOp() if op.input.type == i8 and op.result.type == i32:
            return i8
        case arith.ExtUIOp() if op.input.type == i8 and op.result.type == i32:
            return ui8
        case arith.ExtFOp() if op.input.type == bf16 and isinstance(op.result.type, Float32Type):
            return bf16
        case _:
            return None


def _can_be_packed(groups: DotGroupContraction) -> bool:
    """Whether both factors can be packed by vectors."""
    contraction = groups.contraction
    rows_lie = groups.rows.is_linear and groups.rows.stride(groups.reduced[-1]) == 1
    if not rows_lie or groups.panels is not None:
        return rows_lie
    columns, extents = groups.columns, contraction.stage.extents
    return columns.is_linear and any(
        is_chain(columns.accesses, extents, axes) and columns.stride(axes[-1]) == 1
        for axes in (contraction.column, groups.reduced)
    )
