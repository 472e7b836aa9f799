"""Recognises contractions of bytes, or of `bf16`, for targets with dot-product instructions on them.

Four bytes, or two `bf16`, that follow each other along the reduction make a word of 32 bits; an instruction multiplies
the numbers of two words and adds the products to an accumulator (`tir.dot`). Of bytes it wants one unsigned and one
signed factor. Where both have the same signedness the rows change theirs: `a` becomes `a + 128` or `a - 128`, and the
accumulators are initialised with the correction, for each column 128 times the sum of its elements. All of this is
exact, since sums wrap around. Sums of `bf16` are accumulated in `f32`; subnormal factors and sums count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, IntegerType, bf16, f32, i8, i32
from xdsl.ir import Attribute, Operation

from lowering.kernels.cpu.gemm.dot_groups.panels import WordPanels, find_word_panels
from lowering.kernels.cpu.structure.contraction import Contraction, Factor, is_chain
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dims import product as product_of
from tir_dialect.ops.dot import PARTS, ui8
from tir_dialect.target import Target

FLOAT_EXTENSIONS = ("avx512bf16",)
BYTE_EXTENSIONS = {16: ("avx512vnni",), 8: ("avx512vnni", "avxvnni"), 4: ("avx512vnni", "avxvnni", "i8mm")}
"""By the words of a register, the extensions of which one is needed for bytes; and those for `bf16`."""


@dataclass(frozen=True)
class WordContraction:
    """A contraction in words."""

    what: Contraction
    rows: Factor
    """The bytes themselves, before they are extended."""
    columns: Factor
    dtypes: tuple[Attribute, Attribute]
    """Of rows and columns in memory."""
    reduced: tuple[int, ...]
    """The axes of the sum, in the order in which the rows lie."""
    panels: WordPanels | None
    """The panels in which the columns lie already."""

    @property
    def parts(self) -> int:
        """Numbers of a word."""
        return PARTS[self.dtypes[0]]

    @property
    def storage(self) -> AnyFloat | IntegerType:
        """The type of a number in a vector, which has no sign."""
        return bf16 if self.is_float else i8

    @property
    def total(self) -> AnyFloat | IntegerType:
        """The type of the sums."""
        return f32 if self.is_float else i32

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floats, of which an infinity or NaN times zero is no zero."""
        return self.dtypes[0] == bf16

    @property
    def is_flipped(self) -> bool:
        """Whether rows get the other sign."""
        return self.dtypes[0] == self.dtypes[1] and not self.is_float

    @property
    def factors(self) -> tuple[Attribute, Attribute]:
        """The dtypes that are multiplied."""
        left, right = self.dtypes
        return (ui8 if left == i8 else i8, right) if self.is_flipped else self.dtypes

    @property
    def k(self) -> Dim:
        """Numbers along a sum."""
        return product_of(self.what.stage.extents[axis] for axis in self.reduced)

    @property
    def depth(self) -> Dim:
        """WordContraction along a sum."""
        return ceildiv(self.k, constant(self.parts))


def find_word_contraction(what: Contraction, target: Target) -> WordContraction | None:
    """A contraction in words; `None` if it is none, or the machine or the order of the factors do not suit."""
    narrow_rows, narrow_columns = _narrow(what.rows), _narrow(what.columns)
    if narrow_rows is None or narrow_columns is None or not what.column or not what.reduced or what.outer:
        return None
    (rows, left), (columns, right) = narrow_rows, narrow_columns
    if not has_dots(target, left) or PARTS[left] != PARTS[right]:
        return None
    inner = [axis for axis in what.reduced if rows.stride(axis) == 1]
    reduced = (*(axis for axis in what.reduced if axis not in inner), *inner)
    panels = find_word_panels(what, reduced, target.lanes(32), PARTS[right])
    words = WordContraction(what, rows, columns, (left, right), reduced, panels)
    return words if _lie_well(words) else None


def has_dots(target: Target, dtype: Attribute) -> bool:
    """Whether a machine adds up products of a dtype at once."""
    needed = FLOAT_EXTENSIONS if dtype == bf16 else BYTE_EXTENSIONS.get(target.lanes(32), ())
    return bool(target.extensions.intersection(needed))


def _narrow(factor: Factor) -> tuple[Factor, Attribute] | None:
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


def _lie_well(words: WordContraction) -> bool:
    """Whether both factors can be packed by vectors."""
    what = words.what
    rows_lie = words.rows.is_linear and words.rows.stride(words.reduced[-1]) == 1
    if not rows_lie or words.panels is not None:
        return rows_lie
    columns, extents = words.columns, what.stage.extents
    return columns.is_linear and any(
        is_chain(columns.accesses, extents, axes) and columns.stride(axes[-1]) == 1
        for axes in (what.column, words.reduced)
    )
