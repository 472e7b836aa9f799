"""The planner never lets two live buffers overlap, whatever the symbols are."""

from hypothesis import given
from hypothesis import strategies as st

from lowering.relax.memory.plan import ALIGNMENT, Buffer, plan
from tir_dialect.dims import Bounds, Dim, Prover, constant, symbol

SYMBOLS = ("n", "m")


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    size: Dim = constant(draw(st.integers(0, 300)))
    for name in draw(st.lists(st.sampled_from(SYMBOLS), max_size=2)):
        size = size + draw(st.integers(1, 9)) * symbol(name)
    start = draw(st.integers(0, 12))
    return Buffer(size, start, start + draw(st.integers(0, 6)))


@given(st.lists(buffers(), max_size=12), st.integers(0, 40), st.integers(0, 40))
def test_live_buffers_are_disjoint(items: list[Buffer], n: int, m: int) -> None:
    result = plan(items, Prover(Bounds()))
    values = {"n": n, "m": m}
    begins = [offset.evaluate(values) for offset in result.offsets]
    ends = [begin + item.size.evaluate(values) for begin, item in zip(begins, items, strict=True)]
    assert all(begin % ALIGNMENT == 0 for begin in begins)
    assert all(end <= result.total.evaluate(values) for end in ends)
    assert result.total.evaluate(values) <= result.naive.evaluate(values)
    for i, first in enumerate(items):
        for j, second in enumerate(items[:i]):
            if first.overlaps(second):
                assert ends[i] <= begins[j] or ends[j] <= begins[i]


def test_a_chain_of_equal_symbolic_tensors_needs_two_slots() -> None:
    size = 4 * symbol("n") * symbol("m")
    chain = [Buffer(size, step, step + 1) for step in range(6)]
    result = plan(chain, Prover(Bounds()))
    assert result.total.evaluate({"n": 16, "m": 16}) == 2 * 1024
    assert result.naive.evaluate({"n": 16, "m": 16}) == 6 * 1024


def test_a_smaller_size_fits_into_a_larger_slot() -> None:
    n = symbol("n")
    result = plan([Buffer(8 * n, 0, 1), Buffer(4 * n, 2, 3)], Prover(Bounds()))
    assert result.offsets == (constant(0), constant(0))


def test_sizes_that_cannot_be_ordered_share_the_larger_of_the_two() -> None:
    n, m = symbol("n"), symbol("m")
    result = plan([Buffer(n, 0, 1), Buffer(m, 2, 3)], Prover(Bounds()))
    assert result.total.evaluate({"n": 64, "m": 640}) == 640


def test_constants_are_packed_into_gaps() -> None:
    sizes = [(256, 0, 3), (64, 0, 1), (64, 2, 3)]
    result = plan([Buffer(constant(s), a, b) for s, a, b in sizes], Prover(Bounds()))
    assert result.total == constant(320)
