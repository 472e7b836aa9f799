"""Random programs with random annotations: all workers together compute what the whole does."""

from unittest.mock import patch

from hypothesis import given

from lowering.diagnostics import InvalidModule
from lowering.distributed import collectives
from lowering.parsing import parse_module
from tests.lowering.distributed.programs import programs
from tests.lowering.distributed.support import check_sharded
from tests.support.programs import Tolerance
from tests.support.sweeps import examples

PIPELINE = "propagate-sharding,lower-distributed,merge-collectives,overlap-collectives"


@given(programs())
@examples(60)
def test_all_workers_compute_the_whole(drawn: tuple[str, list[object]]):
    text, args = drawn
    parse_module(text)
    try:
        with patch.object(collectives, "LEAST", 1e-9):  # what takes any time goes between start and end
            check_sharded(text, [args], PIPELINE, Tolerance(1e-3, 1e-4))
    except InvalidModule as error:
        # Only two annotations of one tensor that contradict each other are refused.
        if "of a tensor that is shared as" not in str(error):
            raise
