"""Random calls of primitives on whatever loops and blocks there are."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import ScheduleError

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
    "bind",
    "transform_block_layout",
    "reorder_block_iter_var",
    "reindex_cache_read",
    "reindex_cache_write",
    "cache_index",
    "read_at",
    "write_at",
)


def step(draw, sch):
    """A random call that is accepted, or a few that are not, which change nothing."""
    for _ in range(4):
        before = str(sch.func)
        try:
            name, arguments = call_on(draw, sch)
            getattr(sch, name)(*arguments)
        except ScheduleError:
            assert str(sch.func) == before
        else:
            return


def call_on(draw, sch):
    """The name of a primitive and its arguments, on whatever loops and blocks there are."""
    blocks = sch.get_blocks()
    # neighbours, so that moving and merging are likely to make sense
    position = draw(st.integers(0, len(blocks) - 1))
    block, other = blocks[position], blocks[(position + draw(st.sampled_from([0, 1, 1, -1, -1, 2]))) % len(blocks)]
    loops = sch.get_loops(block) or sch.get_loops(other)
    others = sch.get_loops(other) or loops
    if not loops:
        return "get_blocks", ()
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
        "bind": lambda: (loop, "threadIdx.x"),
        "transform_block_layout": lambda: (block, iterator_map(draw, block, factor)),
        "reorder_block_iter_var": lambda: (block, draw(st.permutations(range(len(block.op.iterators))))),
        "reindex_cache_read": lambda: (block, number, "local", iterator_map(draw, block, factor)),
        "reindex_cache_write": lambda: (block, number, "local", iterator_map(draw, block, factor)),
        "cache_index": lambda: (block, "local"),
        "read_at": lambda: (second, block, number, "local"),
        "write_at": lambda: (second, block, number, "local"),
    }
    return name, arguments.get(name, lambda: (loop,))()


def iterator_map(draw, block, factor):
    """An index map of the iterators of a block: in another order, or with one in tiles."""
    names = [f"i{number}" for number in range(len(block.op.iterators))]
    results = draw(st.permutations(names))
    if results and draw(st.booleans()):
        first, *rest = results
        results = [f"floordiv({first}, {factor})", *rest, f"mod({first}, {factor})"]
    return f"({', '.join(names)}) -> ({', '.join(results)})"
