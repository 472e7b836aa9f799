"""Control of Python's garbage collector while many long-lived objects are made."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

COLLECTION_THRESHOLDS = (500_000, 100, 100)
"""Almost everything that is made while a program is imported or compiled, or a package loaded, is still in use, or
the code of the last kernels, which goes with the youngest. A collection of 200,000 objects takes as long as three
kernels, and frees 20 MB at most."""


@contextmanager
def few_collections() -> Generator[None]:
    """A context with infrequent garbage collections."""
    before = gc.get_threshold()
    gc.set_threshold(*map(max, before, COLLECTION_THRESHOLDS) if all(before) else before)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def importing() -> Generator[None]:
    """As `few_collections`, for imports: what is there then is left to full collections.

    The next one of young objects would look at all that was imported, which stays. Where nothing was, nothing is done:
    to ask for frozen objects is to count them.
    """
    before = len(sys.modules)
    with few_collections():
        yield
        if len(sys.modules) != before and gc.isenabled() and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # into the oldest generation


def release(op: Operation) -> None:
    """Frees an op with all that is in it at once: nobody may look at any of it again, nor use its results.

    IR is nothing but cycles, an op and its results for one, which only a collection would find: taken apart it goes as
    its last reference does, in a tenth of the time.
    """
    pending = [op]
    while pending:
        outer = pending.pop()
        for region in outer.regions:
            block = region.first_block
            while block is not None:
                inner, following = block.first_op, block.next_block
                while inner is not None:
                    after = inner.next_op
                    for result in inner.results:
                        use = result.first_use
                        if use is not None and vars(use)["_next_use"] is not None:
                            _release_uses(result)
                    if inner.regions:
                        pending.append(inner)
                    else:
                        vars(inner).clear()
                    inner = after
                for argument in block.args:
                    _release_uses(argument)
                _release_uses(block)
                vars(block).clear()
                block = following
            vars(region).clear()
        vars(outer).clear()


def _release_uses(value: SSAValue | Block) -> None:
    """Takes the list of uses apart, each of which knows the next one and the one before; one alone knows none."""
    use = value.first_use
    while use is not None:
        facts = vars(use)
        use = facts["_next_use"]
        facts.clear()
