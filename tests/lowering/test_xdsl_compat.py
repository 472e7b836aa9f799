import pytest

from lowering.xdsl_compat import WORK_AROUNDS, WorkAround


@pytest.mark.parametrize("work_around", WORK_AROUNDS, ids=lambda w: w.limit)
def test_still_needed(work_around: WorkAround):
    assert work_around.needed(), f"{work_around.answer} can go: xDSL has caught up"
