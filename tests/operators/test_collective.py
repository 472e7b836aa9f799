"""Collective operators in a group of one worker, in every mode: they give its own tensor."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from tests.operators.support import MODES, Programs, function, random
from tests.support.programs import runner

BODIES = {
    "allreduce": 'relax.ccl.allreduce %x op_type = "max"',
    "allgather": "relax.ccl.allgather %x num_workers = 1",
    "broadcast": "relax.ccl.broadcast_from_worker0 %x",
    "scatter": "relax.ccl.scatter_from_worker0 %x num_workers = 1 axis = 1",
    "reduce_scatter": "relax.ccl.reduce_scatter %x num_workers = 1 axis = 1",
    "all_to_all": "relax.ccl.all_to_all %x num_workers = 1 axis = 1 concat_axis = 0",
    "begun_allreduce": '%b = relax.ccl.start %x collective = "allreduce"; relax.ccl.allreduce %x, %b',
    "begun_allgather": (
        '%b = relax.ccl.start %x collective = "allgather" num_workers = 1; relax.ccl.allgather %x, %b num_workers = 1'
    ),
    "begun_reduce_scatter": (
        '%b = relax.ccl.start %x collective = "reduce_scatter" num_workers = 1; '
        "relax.ccl.reduce_scatter %x, %b num_workers = 1"
    ),
}
PARAMETERS = "%x: !relax.tensor<[n, m], f32>"
PROGRAMS = Programs(
    {
        name: (PARAMETERS, "; ".join([*body.split("; ")[:-1], f"%y = {body.split('; ')[-1]}", "relax.exp %y"]))
        for name, body in BODIES.items()
    }
)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(0, 2), (2, 3)])
def test_one_worker(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check(name, [x], np.exp(x))


SEVERAL = {
    "relax.ccl.allgather": "relax.ccl.allgather %x num_workers = 2",
    "relax.ccl.scatter_from_worker0": "relax.ccl.scatter_from_worker0 %x num_workers = 2",
    "relax.ccl.reduce_scatter": "relax.ccl.reduce_scatter %x num_workers = 2",
    "relax.ccl.all_to_all": "relax.ccl.all_to_all %x num_workers = 2 axis = 0 concat_axis = 1",
}


@pytest.mark.parametrize("op", SEVERAL)
def test_several_workers(op: str):
    """A process that is alone says how many workers there should be."""
    module = parse_module(function("main", PARAMETERS, SEVERAL[op]))
    assert op in str(module)
    for mode in MODES:
        with pytest.raises(ValueError, match="expected 2 workers, got 1"):
            runner(module, "main", mode)(random("f32", 6, 6))


MESSAGES = {
    "send": "relax.ccl.send %x to = 1 tag = 2",
    "receive": "%s = relax.shape_of %x; relax.ccl.receive %s source = 1 tag = 2 dtype = f32",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_needs_another_worker(name: str):
    """`tests/lowering/distributed/test_split_stages.py` and `tests/mpi` have several."""
    module = parse_module(function("main", PARAMETERS, MESSAGES[name]))
    for mode in MODES:
        with pytest.raises(ValueError, match="expected another worker, got 1"):
            runner(module, "main", mode)(random("f32", 2, 3))
