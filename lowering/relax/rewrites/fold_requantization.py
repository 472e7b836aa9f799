"""A pass on quantised networks: the scales and biases between two integers become one multiply-add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass, pass_target
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import array_of, dtype_of
from lowering.relax.rewrites.simplify_quantization import QUOTIENT, SCALE, X, f32_number
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.binary import AddOp, EwiseFmaOp, MultiplyOp, SubtractOp
from relax_dialect.ops.convolution import ForwardConvolutionOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.unary import RoundOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns import Pattern, is_const, is_op
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.vectors import ui8
from tir_dialect.target import Target
from tir_dialect.weights import tensor_attr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

LOW: Pattern = is_const().where(lambda value: f32_number(value) is not None)
MULTIPLES: Pattern = is_op("relax.ewise_fma")(X, SCALE, is_op("relax.multiply")(X, LOW))
"""`x * scale + x * low`, which is what `simplify-quantization` makes of a quotient."""

MOST_EXACT = 1 << 24
"""Integers up to this magnitude are numbers of `f32`."""
MAGNITUDES: Mapping[Attribute | None, int] = {i8: 128, ui8: 255}
"""The greatest magnitudes of bytes."""
LEAST = np.finfo(np.float32).tiny
"""The least number of `f32` that is not subnormal."""


@dataclass
class LinearForm:
    """A sum of integers, converted to `f32`, each times a coefficient, and of a constant, as arrays that broadcast."""

    terms: list[tuple[SSAValue, Doubles]] = field(default_factory=list[tuple[SSAValue, "Doubles"]])
    constant: Doubles | None = None

    def add(self, value: SSAValue, factor: Doubles, users: Sequence[Operation | Block]) -> bool:
        """Adds a value times a factor; `False` if it is something else, or other ops than `users` use it."""
        op = value.owner
        array = array_of(value)
        if array is not None:
            return self._add_constant(array * factor)
        if dtype_of(value) != f32 or not is_never_written(value) or any(u.operation not in users for u in value.uses):
            return False
        if isinstance(op, AstypeOp):
            return self._add_integers(op, factor)
        if isinstance(op, AddOp):
            return self.add(op.x, factor, [op]) and self.add(op.y, factor, [op])
        if isinstance(op, SubtractOp):
            return self.add(op.x, factor, [op]) and self.add(op.y, -factor, [op])
        if isinstance(op, MultiplyOp):
            for one, other in ((op.x, op.y), (op.y, op.x)):
                if (scale := array_of(other)) is not None:
                    return self.add(one, factor * scale, [op])
        return False

    def _add_constant(self, array: NDArray[Any]) -> bool:
        self.constant = array if self.constant is None else self.constant + array
        return True

    def _add_integers(self, op: AstypeOp, factor: Doubles) -> bool:
        """Without a zero point that is subtracted before, if the integers are numbers of `f32` also then."""
        source = op.x
        shift = source.owner
        points = array_of(shift.y) if isinstance(shift, SubtractOp) else None
        if isinstance(shift, SubtractOp) and points is not None and is_exact(shift.x, points):
            source = shift.x
            self._add_constant(-points * factor)
        self.terms.append((source, factor))
        return is_integer(source) and is_never_written(source)

    def ops(self) -> list[Operation] | None:
        """Ops of which the last has the sum; `None` if a number of it is none of `f32`, or subnormal."""
        added = [] if self.constant is None or not np.any(self.constant) else [self.constant.astype(np.float32)]
        factors = [factor.astype(np.float32) for _, factor in self.terms]
        normal = [np.isfinite(each) & ((each == 0) | (np.abs(each) >= LEAST)) for each in (*factors, *added)]
        if not self.terms or not all(map(np.all, normal)):
            return None
        made: list[Operation] = [ConstantOp(tensor_attr(each)) for each in added]
        total = made[0].results[0] if made else None
        for (value, _), factor in zip(self.terms, factors, strict=True):
            number, scale = AstypeOp(value, f32), ConstantOp(tensor_attr(factor))
            last = MultiplyOp(number, scale) if total is None else EwiseFmaOp(number, scale, total)
            made += [number, scale, last]
            total = last.result
        return made


def is_exact(value: SSAValue, points: NDArray[Any]) -> bool:
    """Whether integers and what is subtracted from them are numbers of `f32`, so that their difference is."""
    most, point = magnitude(value), np.abs(points.astype(np.float64)).max(initial=0)
    return most is not None and max(most, point) <= MOST_EXACT


def is_integer(value: SSAValue) -> bool:
    """Whether the numbers are integers of up to 32 bits."""
    dtype = dtype_of(value)
    return dtype in (*MAGNITUDES, i32)


def magnitude(value: SSAValue) -> float | None:
    """A bound of the magnitudes of integers: of bytes, and of sums of products with constant weights."""
    dtype, op = dtype_of(value), value.owner
    if dtype in MAGNITUDES:
        return MAGNITUDES[dtype]
    if not is_never_written(value):
        return None
    if isinstance(op, AstypeOp) and is_integer(op.x):
        return magnitude(op.x)
    if isinstance(op, MatmulOp):
        factor, weights = magnitude(op.x), array_of(op.y)
        axes = None if weights is None or weights.ndim < 2 else (weights.ndim - 2,)
    elif isinstance(op, ForwardConvolutionOp):
        factor, weights = magnitude(op.x), array_of(op.w)
        axes = tuple(axis for axis, letter in enumerate(op.layouts[1].letters) if letter.upper() != "O")
    else:
        return None
    if factor is None or weights is None or axes is None or np.dtype(numpy_dtype(dtype_of(value))).kind != "i":
        return None
    return factor * float(np.abs(weights.astype(np.float64)).sum(axes).max(initial=0))


@dataclass(frozen=True)
class FoldRequantizationPass(Pass):
    """Converts integers to those of another scale by one multiply-add.

    Before:

    ```mlir
    %0 = relax.nn.conv2d %x, %w out_dtype = i32
    %1 = relax.subtract %0, %points               // the zero point of %x times the sums of %w
    %2 = relax.astype %1 dtype = f32
    %3 = relax.multiply %2, %scales
    %4 = relax.add %3, %bias
    %5 = relax.divide %4, %scale
    %6 = relax.round %5
    ```

    After:

    ```mlir
    %0 = relax.nn.conv2d %x, %w out_dtype = i32
    %1 = relax.astype %0 dtype = f32
    %2 = relax.ewise_fma %1, %scales_1, %bias_1   // %scales / %scale; (%bias - %points * %scales) / %scale
    %3 = relax.round %2
    ```

    So the epilogue of a quantised convolution has three operations less or more, which is much of what a depthwise or
    1 x 1 convolution takes. What is divided is a sum of integers times constants, of which nothing else is used, such
    as two quantised operands of an addition. Constants are computed in `f64` and rounded once. A zero point stays where
    sums may not be numbers of `f32` without it. Sums are rounded less often than before, and otherwise: of those that
    are within some `2 ** -22` of half-way between two integers, some become the other one. Machines without fused
    multiply-add are left as they are. Idempotent.
    """

    name = "fold-requantization"
    requires = ("relax.round",)

    target: str = ""
    """The machine; this one if it is not named."""

    def for_target(self, target: Target) -> FoldRequantizationPass:
        return FoldRequantizationPass(f"host cpu={target.cpu} features={target.features}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(each, RoundOp) for each in op.walk()) and "fma" in pass_target(self.target).extensions:
            apply_graph_patterns(op, [FoldRequantization()])


class FoldRequantization(RewritePattern):
    """`round((f32(x) * a + b) / c)  ->  round(fma(f32(x), a / c, b / c))` for integers x."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RoundOp, rewriter: PatternRewriter) -> None:
        found = QUOTIENT.find(op.x)
        divided = found is not None
        found = found or MULTIPLES.find(op.x)
        if found is None or isinstance(found[X].owner, AstypeOp):
            return
        scale, low = f32_number(found[SCALE]), 0.0 if divided else f32_number(found[LOW])
        if not scale or low is None or not is_never_written(op.x):
            return
        last = op.x.owner
        users = [last, last.z.owner] if isinstance(last, EwiseFmaOp) else [last]
        form = LinearForm()
        factor = np.asarray(1 / scale if divided else scale + low, np.float64)
        made = form.ops() if form.add(found[X], factor, users) else None
        if made is not None and made[-1].results[0].type == op.x.type:
            rewriter.replace(op, [*made, RoundOp(made[-1].results[0])])
