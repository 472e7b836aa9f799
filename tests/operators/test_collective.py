"""Collective operators in a group of one worker, in every mode; between several they are refused, with the reason."""

import numpy as np
import pytest

from lowering import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from tests.operators.support import MODES, Programs, function, random

BODIES = {
    "allreduce": 'relax.ccl.allreduce %x op_type = "max"',
    "allgather": "relax.ccl.allgather %x num_workers = 1",
    "broadcast": "relax.ccl.broadcast_from_worker0 %x",
    "scatter": "relax.ccl.scatter_from_worker0 %x num_workers = 1 axis = 1",
}
PARAMETERS = "%x: !relax.tensor<[n, m], f32>"
PROGRAMS = Programs({name: (PARAMETERS, f"%y = {body}; relax.exp %y") for name, body in BODIES.items()})


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(0, 2), (2, 3)])
def test_one_worker(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check(name, [x], np.exp(x))


SEVERAL = {
    "relax.ccl.allgather": "relax.ccl.allgather %x num_workers = 2",
    "relax.ccl.scatter_from_worker0": "relax.ccl.scatter_from_worker0 %x num_workers = 2",
}


@pytest.mark.parametrize("op", SEVERAL)
def test_several_workers(op: str):
    """Such a program is verified and printed; an error says why it does not run."""
    module = parse_module(function("main", PARAMETERS, SEVERAL[op]))
    assert op in str(module)
    message = f"'{op}' op exchanges between 2 workers, but a program runs as one"
    for mode in MODES:
        if mode != "interpret":
            with pytest.raises(InvalidModule, match=message):
                build(module.clone(), mode=mode)
    with pytest.raises(ValueError, match=message):
        run(module, "main", [random("f32", 6, 6)])
