"""Random sequences of primitives: whatever is accepted keeps the values, whatever is refused changes nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tir_dialect.schedule import support
from tests.tir_dialect.schedule.test_compute_location import matmul_with_epilogue, softmax
from tests.tir_dialect.schedule.test_padding import convolution, padded
from tests.tir_dialect.schedule.test_reductions import product_with_epilogue
from tests.tir_dialect.schedule.test_rfactor import arg_maximum
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import Schedule, ScheduleError

PROGRAMS = {
    "matmul": support.matmul,
    "elementwise": support.elementwise,
    "row_sum": support.row_sum,
    "scan": support.scan,
    "epilogue": matmul_with_epilogue,
    "blur": support.blur,
    "pools": support.pools,
    "softmax": softmax,
    "convolution": convolution,
    "padded": padded,
    "product": product_with_epilogue,
    "arg_maximum": arg_maximum,
}
SIZES = (
    {"n": 5, "m": 7, "k": 3},
    {"n": 8, "m": 4, "k": 2},
    {"n": 2, "m": 0, "k": 1},
)
PRIMITIVES = (
    "split",
    "fuse",
    "reorder",
    "tile",
    "parallel",
    "vectorize",
    "unroll",
    "add_unit_loop",
    "loop_partition",
    "merge",
    "compute_inline",
    "reverse_compute_inline",
    "compute_at",
    "compute_at",
    "compute_at",
    "reverse_compute_at",
    "reverse_compute_at",
    "rolling_buffer",
    "rolling_buffer",
    "cache_read",
    "cache_write",
    "decompose_reduction",
    "rfactor",
    "transform_layout",
    "reindex",
    "pad_einsum",
    "decompose_padding",
    "fuse_reduction_epilogue",
    "cache_inplace",
    "blockize",
    "set_scope",
    "storage_align",
)


def step(draw, sch):
    """One random call, on whatever loops and blocks there are."""
    blocks = sch.get_blocks()
    # neighbours, so that moving and merging are likely to make sense
    position = draw(st.integers(0, len(blocks) - 1))
    block, other = blocks[position], blocks[(position + draw(st.sampled_from([0, 1, 1, -1, -1, 2]))) % len(blocks)]
    loops = sch.get_loops(block) or sch.get_loops(other)
    others = sch.get_loops(other) or loops
    if not loops:
        return
    loop, second = draw(st.sampled_from(loops)), draw(st.sampled_from(others))
    number = draw(st.integers(0, 2))
    factor = draw(st.sampled_from([2, 3, 4]))
    name = draw(st.sampled_from(PRIMITIVES))
    arguments = {
        "split": lambda: (loop, draw(st.sampled_from([[None, factor], [factor, None], [None, 2, factor]]))),
        "fuse": lambda: loops[number : number + 2],
        "reorder": lambda: draw(st.permutations(loops))[: number + 2],
        "tile": lambda: (loop, second, [factor, 2]),
        "loop_partition": lambda: (loop, [draw(st.sampled_from(["floordiv(n, 2)", "floordiv(m, 4)", 0, 2]))]),
        "merge": lambda: (loop, second),
        "compute_inline": lambda: (block,),
        "reverse_compute_inline": lambda: (block,),
        "compute_at": lambda: (block, second),
        "reverse_compute_at": lambda: (block, second),
        "rolling_buffer": lambda: (block, 0),
        "cache_read": lambda: (block, number),
        "cache_write": lambda: (block, number),
        "decompose_reduction": lambda: (block, loop),
        "rfactor": lambda: (loop, number),
        "transform_layout": lambda: (
            block,
            # not of parameters: the function would take others
            draw(st.sampled_from([*allocations(sch), "none"])),
            draw(st.sampled_from(["(i, j) -> (j, i)", "(i, j) -> (floordiv(i, 2), j, mod(i, 2))", "(i) -> (2 * i)"])),
        ),
        "reindex": lambda: (block, number, draw(st.sampled_from(["read", "write"]))),
        "decompose_padding": lambda: (block, loop),
        "fuse_reduction_epilogue": lambda: (block, other),
        "cache_inplace": lambda: (block, number),
        "pad_einsum": lambda: (block, [2] * len(block.op.iterators)),
        "set_scope": lambda: (block, number, "local"),
        "storage_align": lambda: (block, number, 0, 8),
    }
    call = arguments.get(name, lambda: (loop,))
    before = str(sch.func)
    try:
        getattr(sch, name)(*call())
    except ScheduleError:
        assert str(sch.func) == before


@settings(max_examples=60)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 7), st.data())
def test_random_schedules(program, steps, data):
    before = PROGRAMS[program]()
    sch = Schedule(before.clone())
    for _ in range(steps):
        step(data.draw, sch)
    try:
        support.check_same(before, sch.func, SIZES)
    except BaseException:
        print(sch.trace.as_python(), sch.func)
        raise
    again = Schedule(before.clone())
    sch.trace.replay(again)
    assert str(again.func) == str(sch.func)
