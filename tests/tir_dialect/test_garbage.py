"""Collections of garbage: rarer for a while, as before afterwards."""

import gc

import pytest

from tir_dialect.garbage import few_collections


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
