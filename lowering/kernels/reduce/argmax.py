"""Recognises argmax and argmin, where the first index wins and NaN comes before all, and how elements compare.

Narrow integers are compared as i32, and 16-bit floats as f32, in which they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, FloatAttr, IntegerAttr, IntegerType, i32, i64
from xdsl.ir import Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.structure.reduction import Reduction, evaluated
from lowering.kernels.structure.stages import Stage, linear
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import constant
from tir_dialect.dtypes import ElementType, is_dtype, lookup
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind

_FLOATS, _INTEGERS, _INDICES = (nan, inf, 1.0, 0.0, -1.0, -inf), (7, 1, 0, -1, -7), (3, 5)


@dataclass(frozen=True)
class Order:
    """How the elements of an argmax or argmin compare."""

    better: str
    """The predicate of a better element: `ogt` or `olt`, `sgt`, `slt`, `ugt` or `ult`."""
    dtype: ElementType
    """The type in which elements are compared, of 32 or 64 bits."""
    index_type: IntegerType
    """The type of indices in lanes, of the same width."""
    source: ElementType
    """The type of the elements."""

    @property
    def is_float(self) -> bool:
        """Whether there may be NaN."""
        return isinstance(self.dtype, AnyFloat)

    @property
    def bits(self) -> int:
        """How wide what is compared is."""
        return self.index_type.width.data

    def widened(self, code: Code, value: SSAValue) -> SSAValue:
        """An element in the type of the comparison."""
        if self.source == self.dtype:
            return value
        kind = arith.ExtUIOp if self.better[0] == "u" else arith.ExtSIOp
        return code.value(kind(value, self.index_type))

    def narrowed(self, code: Code, value: SSAValue) -> SSAValue:
        """The inverse of `widened`."""
        if self.source == self.dtype or not isinstance(self.source, IntegerType):
            return value
        return code.value(arith.TruncIOp(value, self.source))

    def is_better(self, code: Code, left: SSAValue, right: SSAValue) -> SSAValue:
        """Whether the left element is better; this is false if either is NaN."""
        return self._compared(code, self.better, left, right)

    def comes_before(self, code: Code, new: SSAValue, old: SSAValue) -> SSAValue:
        """Whether a later element replaces an earlier one: it is better, or the first NaN."""
        if not self.is_float:
            return self.is_better(code, new, old)
        is_better = self._compared(code, "u" + self.better[1:], new, old)
        return code.both(is_better, self._compared(code, "ord", old, old))

    def is_same(self, code: Code, left: SSAValue, right: SSAValue) -> SSAValue:
        """Whether two elements are equal."""
        return self._compared(code, self.equal, left, right)

    @property
    def equal(self) -> str:
        """The predicate of equality."""
        return "oeq" if self.is_float else "eq"

    def _compared(self, code: Code, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        kind = arith.CmpfOp if self.is_float else arith.CmpiOp
        return code.value(kind(left, right, predicate))


def order_of(stage: Stage, reduction: Reduction) -> Order | None:
    """How elements compare, if the reduction finds the first index of the best one along its only axis."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    if len(reduction.sources) != 2 or len(reduced) != 1:
        return None
    counts = _counted(reduction) is stage.axes[reduced[0]].value
    return _order_of_numbers(reduction) if counts else None


def order_of_all(kernel: Kernel, stage: Stage, reduction: Reduction) -> Order | None:
    """The same for all elements of a contiguous buffer, if the index is the flat index."""
    counted = _counted(reduction) if len(reduction.sources) == 2 else None
    if counted is None or stage.of_kind(IteratorKind.SPATIAL):
        return None
    loads = [op for op in element_ops(stage, reduction) if isinstance(op, LoadOp)]
    side_by_side = [constant(1)]
    for extent in reversed(stage.extents[1:]):
        side_by_side.insert(0, side_by_side[0] * extent)
    space = IndexSpace(stage.block)
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    number = linear(space, names, counted)
    accesses = [kernel.access(stage, load) for load in loads]
    known = [number.strides, *(access.strides for access in accesses)]
    if number.value is not None or number.base.terms or any(access.computed for access in accesses):
        return None
    lie_so = all(a is b for strides in known for a, b in zip(strides, side_by_side, strict=True))
    return _order_of_numbers(reduction) if lie_so else None


def _counted(reduction: Reduction) -> SSAValue | None:
    """What an index is cast from."""
    index = reduction.sources[1].owner
    return index.input if isinstance(index, arith.IndexCastOp) else None


def _order_of_numbers(reduction: Reduction) -> Order | None:
    index, kind = reduction.sources[1], reduction.sources[0].type
    if not isinstance(index.type, IntegerType) or not is_dtype(kind):
        return None
    source = lookup(kind).type
    better = next((each for each in _predicates(source) if _finds(reduction, each)), None)
    return None if better is None or not _is_worst(reduction.first[0], better) else _order(better, source)


def _order(better: str, source: ElementType) -> Order:
    if isinstance(source, AnyFloat):
        return Order(better, source, i64 if isinstance(source, Float64Type) else i32, source)
    wide = i64 if source.width.data > 32 else i32
    return Order(better, source if source.width.data >= 32 else wide, wide, source)


def _predicates(kind: ElementType) -> Sequence[str]:
    if isinstance(kind, IntegerType):
        return ("sgt", "slt", "ugt", "ult") if kind.width.data in (8, 16, 32, 64) else ()
    return ("ogt", "olt") if isinstance(kind, Float32Type | Float64Type) else ()


def _is_worst(first: SSAValue, better: str) -> bool:
    """Whether a value is the worst one, so that missing elements are never chosen."""
    value = first.owner.value if isinstance(first.owner, arith.ConstantOp) else None
    if isinstance(value, FloatAttr):
        return value.value.data == (-inf if better == "ogt" else inf)
    if not isinstance(value, IntegerAttr) or not isinstance(value.type, IntegerType):
        return False
    bits = value.type.width.data
    least = -(1 << (bits - 1)) if better[0] == "s" else 0
    worst = least if better.endswith("gt") else least + (1 << bits) - 1
    return (value.value.data - worst) % (1 << bits) == 0


def _finds(reduction: Reduction, better: str) -> bool:
    """Whether the reduction prefers better elements, NaN before all, and the first of equal ones: tried on examples."""
    values = _FLOATS if better[0] == "o" else [value for value in _INTEGERS if better[0] == "s" or value >= 0]
    for left, right in product(product(values, _INDICES), repeat=2):
        if left[1] == right[1]:
            continue
        known: dict[SSAValue, object] = dict(zip(reduction.sources, right, strict=True))
        known |= {load.result: value for load, value in zip(reduction.accumulators, left, strict=True)}
        if not evaluated(reduction.combine, known):
            return False
        got = tuple(known[store.value] for store in reduction.stores)
        if repr(got) != repr(_preferred(left, right, better)):
            return False
    return True


def _preferred(left: tuple[float, int], right: tuple[float, int], better: str) -> tuple[float, int]:
    sign = 1 if better.endswith("gt") else -1
    keys = [(each[0] == each[0], -sign * each[0] if each[0] == each[0] else 0.0, each[1]) for each in (left, right)]
    return left if keys[0] < keys[1] else right


def element_ops(stage: Stage, reduction: Reduction) -> list[Operation]:
    """The ops that compute the element and its index."""
    ops = [op for op in stage.body if not isinstance(op, StoreOp) and op not in reduction.combine]
    return [op for op in ops if not (isinstance(op, LoadOp) and op in reduction.accumulators)]


def has_lanes(kernel: Kernel) -> bool:
    """Whether vectors are wide enough for their horizontal reduction to be profitable."""
    return kernel.target.lanes(32) >= 8
