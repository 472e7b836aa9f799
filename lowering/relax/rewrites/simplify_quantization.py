"""Passes on quantised values: conversions without divisions and needless bounds, functions of bytes as tables, and max
pooling and concatenation that work on bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass, pass_target
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import (
    Elementwise,
    array_of,
    dims_of,
    dtype_of,
    is_elementwise,
    is_number,
    number_of,
    used_only_by,
)
from lowering.relax.rewrites.fold_constants import constant_of
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written, may_be_view
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.activation import GeluOp, SiluOp
from relax_dialect.ops.binary import AddOp, EwiseFmaOp, MaximumOp, MinimumOp, MultiplyOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.joining import ConcatOp
from relax_dialect.ops.manipulation import PermuteDimsOp, permutation
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.pooling import MaxPoolOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import ErfOp, ExpOp, LogOp, RoundOp, SigmoidOp, TanhOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns import Pattern, is_const, is_op, wildcard
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.vectors import ui8
from tir_dialect.target import Target
from tir_dialect.weights import tensor_attr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


BYTE_DTYPES = (i8, ui8)
"""The dtypes of quantised values."""

COSTLY = (SigmoidOp, TanhOp, ExpOp, ErfOp, LogOp, GeluOp, SiluOp)
"""Operators that take longer than to look up a byte."""


def integer_range(dtype: Attribute) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype; `None` for others."""
    kind = np.dtype(numpy_dtype(dtype))
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    return None if limits is None else (int(limits.min), int(limits.max))


def f32_number(value: SSAValue) -> float | None:
    """The number that a constant of one element of `f32` is."""
    return number_of(value) if dtype_of(value) == f32 else None


# Patterns of numbers that are about to be integers

X: Pattern = wildcard()
"""What is quantised."""
LEAST: Pattern = is_const().where(lambda value: number_of(value) is not None)
GREATEST: Pattern = is_const().where(lambda value: number_of(value) is not None)
BOUNDED: Pattern = is_op("relax.minimum")(is_op("relax.maximum")(X, LEAST).in_any_order(), GREATEST).in_any_order()
"""`minimum(maximum(x, least), greatest)`."""
PLUS_ZERO: Pattern = X + is_const().where(lambda value: f32_number(value) == 0)
"""`x + 0`."""

SCALE: Pattern = is_const().where(lambda value: f32_number(value) is not None)
POINT: Pattern = is_const()
QUOTIENT: Pattern = X / SCALE
_ROUNDED = is_op("relax.round")(QUOTIENT)
QUANTIZED: Pattern = _ROUNDED + POINT | _ROUNDED
"""`round(x / scale) + point`, or without a zero point."""


@dataclass(frozen=True)
class Quantization:
    """`round(x / scale) + point`, whose integers outside of the limits are those at the limits."""

    x: SSAValue
    scale: float
    point: SSAValue | None
    """A constant."""
    limits: tuple[float, float]

    @classmethod
    def of(cls, op: AstypeOp | MinimumOp) -> Quantization | None:
        """What is converted to integers, or bounded."""
        value, limits = _limited(op)
        found = None if limits is None else QUANTIZED.find(value)
        scale = None if found is None else f32_number(found[SCALE])
        if limits is None or found is None or scale is None:
            return None
        x = found[X]
        if dtype_of(x) != f32 or not value.type == x.type == found[QUOTIENT].type or not is_never_written(x):
            return None
        return cls(x, scale, found.get(POINT), limits)


def _limited(op: AstypeOp | MinimumOp) -> tuple[SSAValue, tuple[float, float] | None]:
    """The value that an op keeps between two numbers, and these."""
    if isinstance(op, AstypeOp):
        return op.x, integer_range(op.dtype)
    found = BOUNDED.find(op.result)
    if found is None:
        return op.x, None
    least, greatest = number_of(found[LEAST]), number_of(found[GREATEST])
    return found[X], None if least is None or greatest is None else (least, greatest)


# What is computed byte by byte

Link: TypeAlias = Elementwise | PermuteDimsOp
"""An operator that computes each element of one element, or moves it."""


def links(value: SSAValue) -> Iterator[tuple[Link, SSAValue]]:
    """The operators that compute a value, the last one first, each with its one operand that is no number.

    They end at what is computed of several values or in another way, and at what somebody may write into.
    """
    while is_never_written(value):
        maker = value.owner
        if not (is_elementwise(maker) or isinstance(maker, PermuteDimsOp)):
            return
        others = [operand for operand in maker.operands if not is_number(operand)]
        if len(others) != 1:
            return
        yield maker, others[0]
        value = others[0]


def chain_from_bytes(value: SSAValue) -> tuple[SSAValue, list[Link]] | None:
    """The bytes that a value is computed from one by one, and the operators that do it, in their order."""
    chain: list[Link] = []
    for op, argument in links(value):
        chain.append(op)
        if dtype_of(argument) in BYTE_DTYPES:
            return (argument, chain[::-1]) if is_never_written(argument) else None
    return None


def applied(chain: Sequence[Link], value: SSAValue) -> list[Operation]:
    """The operators of a chain on another value."""
    new: list[Operation] = []
    for op in chain:
        new.append(op.with_operands([operand if is_number(operand) else value for operand in op.operands]))
        value = new[-1].results[0]
    return new


def costly_function_of_bytes(
    value: SSAValue, order: Mapping[Operation | Block, int]
) -> tuple[SSAValue, Sequence[Operator]] | None:
    """The bytes that a value is a function of, and the operators that compute it of them, in their order; `None` if it
    is of more, or takes no time.

    What it is computed from is followed back, the last op first, until it is all computed from one value.
    """
    pending, ops = {value}, list[Operator]()
    while pending:
        last = max(pending, key=lambda each: order.get(each.owner, -1))
        if len(pending) == 1 and dtype_of(last) in BYTE_DTYPES and any(isinstance(each, COSTLY) for each in ops):
            return (last, ops[::-1]) if is_never_written(last) else None
        pending.remove(last)
        owner = last.owner
        if not is_elementwise(owner) or not is_never_written(last):
            return None
        ops.append(owner)
        pending |= {each for each in owner.operands if not is_number(each)}
    return None


MOST_EXPONENT = 60
"""Scales within powers of two of this magnitude: nothing that is rounded to an integer in range over- or underflows."""
MOST_INTEGERS = 1 << 16
"""Integers for which a scale is tried."""
NEIGHBOURS = 4
"""Floats on either side of the quotient at which it is rounded to another integer, that are tried."""


@dataclass(frozen=True)
class SimplifyQuantizationPass(Pass):
    """Quantises without a division by a known scale, and without a bound that a conversion has itself.

    Before:

    ```mlir
    %0 = relax.divide %x, %scale
    %1 = relax.round %0
    %2 = relax.add %1, %point
    %3 = relax.maximum %2, %zero
    %4 = relax.minimum %3, %highest               // %highest : 255
    %5 = relax.astype %4 dtype = ui8
    ```

    After:

    ```mlir
    %0 = relax.multiply %x, %low
    %1 = relax.ewise_fma %x, %high, %0            // %high + %low : 1 / %scale
    %2 = relax.round %1
    %3 = relax.add %2, %point
    %5 = relax.astype %3 dtype = ui8
    ```

    A conversion to an integer gives the end of the range for what is beyond it, and 0 for NaN. The reciprocal has twice
    the digits of `f32`, so that its multiple is the quotient but in very few cases. Both are monotonic, so they are
    rounded to the same integers everywhere if they are around each quotient that is half-way between two of them; that
    is tried for all integers in the range. Where one differs the division stays, and so it does on machines without
    fused multiply-add. Values are the same. Idempotent.
    """

    name = "simplify-quantization"
    requires = ("relax.astype",)

    target: str = ""
    """The machine; this one if it is not named."""

    def for_target(self, target: Target) -> SimplifyQuantizationPass:
        return SimplifyQuantizationPass(f"host cpu={target.cpu} features={target.features}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites all conversions."""
        if not any(isinstance(each, AstypeOp) for each in op.walk()):
            return
        has_fma = "fma" in pass_target(self.target).extensions
        apply_graph_patterns(op, [DropBounds(), *([DivideByMultiples()] if has_fma else [])])


class DropBounds(RewritePattern):
    """`astype(minimum(maximum(x, 0), 255), ui8)  ->  astype(x, ui8)`, and `astype(x + 0, ui8)  ->  astype(x, ui8)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        limits = integer_range(op.dtype)
        if limits is None or dtype_of(op.x) != f32:
            return
        found = BOUNDED.find(op.x) if op.x.has_one_use() else None  # else it is needed with bounds, too
        if found is not None:
            least, greatest = number_of(found[LEAST]), number_of(found[GREATEST])
            if least is None or greatest is None or least > limits[0] or limits[1] > greatest:
                return
        else:
            found = PLUS_ZERO.find(op.x)  # an integer has no -0
        source = None if found is None else found[X]
        if source is not None and source.type == op.x.type and is_never_written(source):
            rewriter.replace(op, [AstypeOp(source, op.dtype)])


class DivideByMultiples(RewritePattern):
    """`astype(round(x / c) + z, ui8)  ->  astype(round(fma(x, a, x * b)) + z, ui8)` for `a + b = 1 / c`; so with bounds
    instead of a conversion.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp | MinimumOp, rewriter: PatternRewriter) -> None:
        found = Quantization.of(op)
        made = None if found is None else without_division(found)
        if found is None or made is None:
            return
        value = made[-1].results[0]
        if isinstance(op, AstypeOp):
            made.append(AstypeOp(value, op.dtype))
        else:
            greater, lesser = (ConstantOp(tensor_attr(np.array(limit, np.float32))) for limit in found.limits)
            made += [greater, lesser, MaximumOp(value, greater)]
            made.append(MinimumOp(made[-1].results[0], lesser))
        rewriter.replace(op, made)


def without_division(found: Quantization) -> list[Operation] | None:
    """Ops of which the last has the integers; `None` if multiples do not agree with the quotient."""
    point = 0.0 if found.point is None else f32_number(found.point)
    if point is None or not all(each.is_integer() for each in (point, *map(float, found.limits))):
        return None
    parts = reciprocal(found.scale, *(int(limit) - int(point) for limit in found.limits))
    if parts is None:
        return None
    high, low = (ConstantOp(tensor_attr(np.array(part, np.float32))) for part in parts)
    product = MultiplyOp(found.x, low)
    made: list[Operation] = [high, low, product, EwiseFmaOp(found.x, high, product)]
    made.append(RoundOp(made[-1].results[0]))
    return made if found.point is None else [*made, AddOp(made[-1].results[0], found.point)]


@lru_cache(maxsize=4096)
def reciprocal(scale: float, least: int, greatest: int) -> tuple[float, float] | None:
    """Two numbers of `f32` whose multiples, added in one step, are rounded to the same integers as the quotient by
    `scale` is, or both beyond the range; `None` if there are none.

    The first is the reciprocal without the digits that it has more, so that the second has the same sign: an infinity
    stays one.
    """
    if not 2.0**-MOST_EXPONENT <= scale <= 2.0**MOST_EXPONENT or greatest - least > MOST_INTEGERS:
        return None
    exact = 1 / Fraction(scale)
    high = np.float32(float(exact))
    if Fraction(float(high)) > exact:
        high = np.nextafter(high, np.float32(0))
    low = np.float32(float(exact - Fraction(float(high))))
    if not low or abs(least) > MOST_INTEGERS or abs(greatest) > MOST_INTEGERS:
        return None
    return (float(high), float(low)) if _agree(np.float32(scale), high, low, least, greatest) else None


def _agree(scale: np.float32, high: np.float32, low: np.float32, least: int, greatest: int) -> bool:
    """Whether quotients and multiples are rounded to the same integers around all that are half-way between two."""
    halves = np.arange(least, greatest, dtype=np.float64) + 0.5
    x = (halves * np.float64(scale)).astype(np.float32)
    for _ in range(NEIGHBOURS):
        x = np.nextafter(x, np.float32(-np.inf))
    first = last = np.rint(x / scale)
    for _ in range(2 * NEIGHBOURS + 1):
        last = np.rint(x / scale)
        if not np.array_equal(last, np.rint(fused(x, high, x * low))):
            return False
        x = np.nextafter(x, np.float32(np.inf))
    return bool((first < halves).all() and (last > halves).all())


def fused(x: Floats, y: np.float32, z: Floats) -> Floats:
    """`x * y + z`, rounded once: a sum in `f64` that is not exact is made odd, so that rounding it again is right."""
    product, other = x.astype(np.float64) * np.float64(y), z.astype(np.float64)
    total = product + other
    rest = total - product
    error = (product - (total - rest)) + (other - rest)
    is_even = (total.view(np.int64) & 1) == 0
    away = np.where((error > 0) == (total > 0), 1, -1)
    odd = (total.view(np.int64) + np.where((error != 0) & is_even, away, 0)).view(np.float64)
    return odd.astype(np.float32)


_BYTES = 256


class UseByteTablesPass(Pass):
    """Looks up functions of one byte whose values are bytes, instead of computing them.

    Before:

    ```mlir
    %0 = relax.astype %q dtype = f32              // %q of ui8
    %1 = relax.multiply %0, %scale
    %2 = relax.sigmoid %1
    %3 = relax.multiply %2, %steps
    %4 = relax.round %3
    %5 = relax.astype %4 dtype = ui8
    ```

    After:

    ```mlir
    %table = relax.constant dense<[...]> : tensor<256xui8>
    %5 = relax.take %table, %q axis = 0
    ```

    So the activations of quantised networks take no exponential functions, also those that use the byte several times
    (`x * sigmoid(x)`). The interpreter computes the 256 values, so results are its own; those of kernels, which round
    exponential functions otherwise, may be the next integer. Left alone: functions without an operator that takes
    longer than to look up a byte, and those with other operands than constants of one element. Idempotent.
    """

    name = "use-byte-tables"
    requires = ("relax.astype",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks up in every function, from its end: what leads from bytes to bytes may be a part of more of it."""
        interpreter = Interpreter(op)
        for func in op.ops:
            if isinstance(func, FuncOp):
                order: dict[Operation | Block, int] = {each: number for number, each in enumerate(func.walk())}
                apply_patterns(func, [UseByteTable(interpreter, order)], reverse=True)


class UseByteTable(RewritePattern):
    """`astype(f(x), ui8)  ->  take(table, x)` for an `x` of bytes."""

    def __init__(self, interpreter: Interpreter, order: Mapping[Operation | Block, int]):
        self._interpreter, self._order = interpreter, order

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        found = costly_function_of_bytes(op.result, self._order) if op.dtype in BYTE_DTYPES else None
        table = None if found is None else values_of_bytes(self._interpreter, *found)
        if found is None or table is None:
            return
        constant = ConstantOp(tensor_attr(table))
        taken = TakeOp(constant.result, found[0], axis=0)
        if taken.result.type == op.result.type:
            rewriter.replace(op, [constant, taken])


def values_of_bytes(interpreter: Interpreter, root: SSAValue, ops: Sequence[Operator]) -> Array | None:
    """What ops make of each byte, in the order of their bits, wherever they move it; `None` if they do not compute it
    of `root` alone.
    """
    known = np.arange(_BYTES, dtype=np.uint8).view(numpy_dtype(dtype_of(root)))
    values: dict[SSAValue, SSAValue] = {root: ConstantOp(tensor_attr(known)).result}
    made = values[root]
    for op in ops:
        if isinstance(op, PermuteDimsOp):
            values[op.result] = values[op.x]
            continue
        again = op.with_operands([values.get(each, each) for each in op.operands])
        constant = constant_of(interpreter, again)
        if constant is None or constant.size != _BYTES:
            return None
        made = values[op.results[0]] = ConstantOp(tensor_attr(constant.reshape(_BYTES))).result
    return array_of(made)


class PropagateQuantizationPass(Pass):
    """Moves max pooling before the conversion of its operand from bytes, and concatenation after the conversion of its
    result to bytes; a conversion from bytes to the same bytes is dropped.

    Before:

    ```mlir
    %0 = relax.astype %q dtype = f32                     // %q of ui8
    %1 = relax.multiply %0, %scale
    %2 = relax.nn.max_pool2d %1 pool_size = [2, 2]
    %3 = relax.concat %2, %x axis = 1
    %4 = relax.multiply %3, %steps
    %5 = relax.round %4
    %6 = relax.astype %5 dtype = ui8
    ```

    After:

    ```mlir
    %2 = relax.nn.max_pool2d %q pool_size = [2, 2]       // of ui8
    %5 = relax.multiply %x, %steps
    %6 = relax.round %5
    %7 = relax.astype %6 dtype = ui8
    %8 = relax.concat %2, %7 axis = 1                    // the scales of %q and the result are the same
    ```

    So a fourth of the bytes is moved, and what is computed one by one fuses with what makes the operands. A maximum is
    moved past a function of one byte that never decreases, of which the interpreter computes the 256 values. Moved are
    chains of elementwise operators whose other operands are constants of one element, and that nothing else uses.
    Values are the same bit for bit. Nothing moves that somebody may write into. Idempotent.
    """

    name = "propagate-quantization"
    requires = ("relax.astype",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        interpreter = Interpreter(op)
        apply_graph_patterns(op, [PoolBytes(interpreter), ConcatenateBytes(), DropIdentity(interpreter)])


class PoolBytes(RewritePattern):
    """Of bytes: `max_pool(f(x))  ->  f(max_pool(x))` for an f that never decreases."""

    def __init__(self, interpreter: Interpreter):
        self._interpreter = interpreter

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MaxPoolOp, rewriter: PatternRewriter) -> None:
        found = chain_from_bytes(op.x)
        if found is None or dtype_of(op.x) in BYTE_DTYPES:
            return
        root, chain = found
        # Kernels may round what is costly so that it decreases somewhere.
        if any(isinstance(each, (*COSTLY, PermuteDimsOp)) for each in chain):
            return
        values = values_of_bytes(self._interpreter, root, chain)
        if values is None or not _never_decreases(root, values):
            return
        pooled = op.with_operands([root])
        new = applied(chain, pooled.results[0])
        if new[-1].results[0].type == op.result.type:
            rewriter.replace(op, [pooled, *new])


class ConcatenateBytes(RewritePattern):
    """`f(concat(x, y))  ->  concat(f(x), f(y))` for an f that gives bytes, and may permute dimensions."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        if op.dtype not in BYTE_DTYPES:
            return
        chain: list[Link] = []
        for link, argument in links(op.result):
            chain.append(link)
            if not used_only_by(argument, link):
                return
            maker = argument.owner
            if isinstance(maker, ConcatOp) and dtype_of(argument) not in BYTE_DTYPES and is_never_written(argument):
                if not all(map(is_never_written, maker.inputs)):
                    return
                self._exchange(maker, chain[::-1], rewriter)
                return

    def _exchange(self, concat: ConcatOp, chain: Sequence[Link], rewriter: PatternRewriter) -> None:
        orders = [permutation(each) for each in chain if isinstance(each, PermuteDimsOp)]
        axis, dims = concat.axis.value.data, dims_of(concat.result)
        if dims is None:
            return
        axis %= len(dims)
        for order in orders:
            if order is None:
                return
            axis = order.index(axis)
        new = [applied(chain, operand) for operand in concat.inputs]
        joined = ConcatOp([each[-1].results[0] for each in new], axis)
        last = chain[-1]
        if joined.result.type == last.results[0].type:
            rewriter.replace(last, [*(each for some in new for each in some), joined])


class DropIdentity(RewritePattern):
    """`f(x)  ->  x` for bytes that are converted to the same bytes; what permutes dimensions in f stays."""

    def __init__(self, interpreter: Interpreter):
        self._interpreter = interpreter

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        found = chain_from_bytes(op.result) if op.dtype in BYTE_DTYPES else None
        if found is None or dtype_of(found[0]) != op.dtype:
            return
        root, chain = found
        moves = applied([each for each in chain if isinstance(each, PermuteDimsOp)], root)
        result = moves[-1].results[0] if moves else root
        values = values_of_bytes(self._interpreter, root, chain) if result.type == op.result.type else None
        if not may_be_view(op.result, result):
            return
        if values is not None and np.array_equal(values.view(np.uint8), np.arange(values.size)):
            rewriter.replace(op, moves, [result])


def _never_decreases(root: SSAValue, values: np.ndarray) -> bool:
    """Whether values of bytes, in the order of their bits, are in the order of the bytes."""
    signed = np.arange(values.size, dtype=np.uint8).view(np.int8)
    in_order = values if dtype_of(root) == BYTE_DTYPES[1] else values[np.argsort(signed)]
    return bool(np.all(in_order[1:] >= in_order[:-1]))
