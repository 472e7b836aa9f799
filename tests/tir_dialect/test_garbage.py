"""Collections of garbage: rarer for a while, as before afterwards."""

import gc
import sys
import weakref
from collections.abc import Generator, Iterator

import pytest
from xdsl.ir import Block, Operation

from lowering.parsing import parse_module
from tir_dialect.garbage import few_collections, importing, release


def test_thresholds_are_put_back():
    before = gc.get_threshold()

    def stopped() -> None:
        with few_collections():
            assert gc.get_threshold() > before
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stopped()
    assert gc.get_threshold() == before


def test_who_collects_no_garbage_keeps_it():
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with few_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


def _is_in(generation: int, value: object) -> bool:
    return any(each is value for each in gc.get_objects(generation))


@pytest.fixture
def thawed() -> Generator[None]:
    """The tests' own settings freeze what all of them share."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_what_an_import_leaves_is_old(monkeypatch: pytest.MonkeyPatch):
    """Collections of young objects do not look at it, a full one does."""
    with importing():
        monkeypatch.setitem(sys.modules, "a_new_module", gc)
        kept: list[object] = [gc]
        assert not _is_in(2, kept)
    assert _is_in(2, kept)
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("thawed")
def test_where_nothing_is_imported_nothing_gets_old():
    """A build of a loaded compiler does not count what is frozen, which takes long where much is."""
    with importing():
        kept: list[object] = [gc]
    assert not _is_in(2, kept)


def test_what_was_frozen_stays_so(monkeypatch: pytest.MonkeyPatch):
    """Who forks has frozen what processes share."""
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with importing():
            monkeypatch.setitem(sys.modules, "a_new_module", gc)
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()


PROGRAM = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "twice" (%v = spatial %i in %n) {
      %x = tir.load %X[%v]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%v]
    }
  }
}
llvm.func @g(%c: i1) -> i1 {
  llvm.br ^next(%c : i1)
^next(%d: i1):
  "llvm.cond_br"(%d, %c)[^next, ^end] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, i1) -> ()
^end:
  llvm.return %d : i1
}
"""


def test_released_ir_is_free_without_a_collection():
    module = parse_module(PROGRAM)
    inside = [weakref.ref(each) for op in module.walk() for each in (op, *op.results, *op.regions)]
    inside += [weakref.ref(each) for op in module.walk() for block in _blocks(op) for each in (block, *block.args)]
    gc.disable()
    try:
        release(module)
        del module
        assert [each() for each in inside if each() is not None] == []
    finally:
        gc.enable()


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)
