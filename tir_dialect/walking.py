"""All ops inside of ops and regions, without the nested generators of xDSL's `walk`: a generator for each region around
an op takes longer than most of what is asked about it.
"""

from __future__ import annotations

from xdsl.ir import Operation, Region


def walked(op: Operation) -> list[Operation]:
    """An op and all ops in it, in the order of `walk`."""
    return [op, *ops_in(*op.regions)]


def ops_in(*regions: Region) -> list[Operation]:
    """All ops in regions, in the order of `walk`."""
    found: list[Operation] = []
    pending = _from_last(regions)
    while pending:
        op = pending.pop()
        found.append(op)
        if op.regions:
            pending += _from_last(op.regions)
    return found


def _from_last(regions: tuple[Region, ...]) -> list[Operation]:
    """The ops of blocks of some regions, the last one first."""
    found: list[Operation] = []
    for region in reversed(regions):
        block = region.last_block
        while block is not None:
            op = block.last_op
            while op is not None:
                found.append(op)
                op = op.prev_op
            block = block.prev_block
    return found
