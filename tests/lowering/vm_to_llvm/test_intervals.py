"""Intervals of `vm.int` hold every result, so that what is left unchecked does not overflow."""

from hypothesis import given
from hypothesis import strategies as st

from lowering.vm_to_llvm.plan import ANY_INTEGER, Interval, result_interval
from vm_dialect.integers import GREATEST, INT_FUNCTIONS, LEAST
from vm_dialect.ops.values import IntKind

NUMBERS = st.one_of(st.integers(-5, 5), st.integers(LEAST, GREATEST), st.sampled_from([LEAST, GREATEST, 1 << 48]))


@given(st.lists(NUMBERS, min_size=3, max_size=3), st.lists(NUMBERS, min_size=3, max_size=3))
def test_every_result_lies_inside(xs: list[int], ys: list[int]):
    (least, a, most), (lower, b, upper) = sorted(xs), sorted(ys)
    for kind in (kind for kind in IntKind if kind.result_type == kind.operand_type and kind.value not in ("and", "or")):
        interval = result_interval(kind, Interval(least, most), Interval(lower, upper))
        try:
            result = INT_FUNCTIONS[kind.value](a, b)
        except ValueError:
            assert b == 0 or not interval.fits or interval == ANY_INTEGER, kind
        else:
            assert interval.held.least <= result <= interval.held.most, kind
