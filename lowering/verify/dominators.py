"""The order in which a region is checked: a walk of its dominator tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Region


@dataclass(frozen=True)
class BlockOrder:
    """The blocks of a region, so that what has been entered and not left dominates."""

    events: tuple[tuple[Block, bool], ...]
    """`(block, True)` on entering, `(block, False)` on leaving its subtree of the dominator tree."""
    unreachable: tuple[Block, ...]
    """Blocks that no path from the entry reaches."""


def block_order(region: Region) -> BlockOrder:
    """Walks the dominator tree of `region`; an only block needs no tree.

    Dominators by the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001) over the
    reverse postorder: one round for reducible graphs.
    """
    first = region.first_block
    if first is None:
        return BlockOrder((), ())
    if first.next_block is None:
        return BlockOrder(((first, True), (first, False)), ())
    order = _reverse_postorder(first)
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block, dominator in _immediate_dominators(order).items():
        if block is not first:
            children[dominator].append(block)
    return BlockOrder(
        tuple(_enter_and_leave(first, children)), tuple(block for block in region.blocks if block not in children)
    )


def _successors(block: Block) -> tuple[Block, ...]:
    return tuple(block.last_op.successors) if block.last_op is not None else ()


def _reverse_postorder(entry: Block) -> list[Block]:
    postorder: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            stack.pop()
            postorder.append(block)
    return postorder[::-1]


def _immediate_dominators(order: list[Block]) -> dict[Block, Block]:
    """The nearest dominator of each block of a reverse postorder; the entry is its own."""
    number = {block: at for at, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in order]
    for at, block in enumerate(order):
        for successor in _successors(block):
            predecessors[number[successor]].append(at)
    dominator: list[int | None] = [0, *(None for _ in order[1:])]

    def meet(left: int, right: int) -> int:
        while left != right:
            if left < right:
                left, right = right, left
            # Only blocks with a known dominator are met, and it always has a smaller number.
            left = dominator[left] or 0
        return left

    changed = True
    while changed:
        changed = False
        for at in range(1, len(order)):
            known = [before for before in predecessors[at] if dominator[before] is not None]
            nearest = known[0]
            for other in known[1:]:
                nearest = meet(nearest, other)
            if dominator[at] != nearest:
                dominator[at], changed = nearest, True
    return {block: order[dominator[at] or 0] for at, block in enumerate(order)}


def _enter_and_leave(root: Block, children: dict[Block, list[Block]]) -> Iterator[tuple[Block, bool]]:
    stack = [(root, True)]
    while stack:
        block, entering = stack.pop()
        yield block, entering
        if entering:
            stack.append((block, False))
            stack.extend((child, True) for child in reversed(children[block]))
