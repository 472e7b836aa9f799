from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import test
from xdsl.ir import Block, Region
from xdsl.irdl.dominance import DominanceInfo

from lowering.verify import block_order


def _region(edges: list[list[int]]) -> Region:
    """Block `i` branches to the blocks `edges[i]`."""
    blocks = [Block() for _ in edges]
    for block, targets in zip(blocks, edges, strict=True):
        block.add_op(test.TestTermOp(successors=[blocks[target] for target in targets]))
    return Region(blocks)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 8))
    return [draw(st.lists(st.integers(0, size - 1), max_size=3)) for _ in range(size)]


@given(graphs())
def test_what_is_entered_and_not_left_is_what_dominates(edges: list[list[int]]):
    region = _region(edges)
    order = block_order(region)
    reference = DominanceInfo(region)
    reachable = set(region.blocks) - set(order.unreachable)
    open_blocks: list[Block] = []
    entered: list[Block] = []
    for block, entering in order.events:
        if not entering:
            assert open_blocks.pop() is block
            continue
        open_blocks.append(block)
        entered.append(block)
        # xDSL counts a block that is not reachable as an entry of its own; only reachable ones are comparable.
        if not order.unreachable:
            assert set(open_blocks) == {other for other in reachable if reference.dominates(other, block)}
    assert not open_blocks
    assert len(entered) == len(set(entered))
    assert set(entered) == reachable == _reachable(edges, region)


def _reachable(edges: list[list[int]], region: Region) -> set[Block]:
    blocks, seen, todo = list(region.blocks), {0}, [0]
    while todo:
        for target in edges[todo.pop()]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return {blocks[at] for at in seen}


def test_no_blocks_no_order():
    assert block_order(Region()).events == ()


def test_a_long_chain_does_not_recurse():
    size = 5000
    order = block_order(_region([[at + 1] for at in range(size - 1)] + [[]]))
    assert len(order.events) == 2 * size
