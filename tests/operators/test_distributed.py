"""Tensors that workers share, where one worker has all, in every mode; parts of others are refused, with the reason."""

import re

import numpy as np
import pytest

from lowering import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from tests.operators.support import MODES, Programs, function, random
from tests.support.programs import runner

BODIES = {
    "annotated": 'relax.dist.annotate_sharding %x mesh = [1, 1] placement = "S[1], R"',
    "redistributed": 'relax.dist.redistribute %x mesh = [1] placement = "S[0]"',
    "part": "relax.dist.redistribute_replica_to_shard %x num_workers = 1 axis = 1",
    "local": 'relax.dist.local_view %x mesh = [1, 1] placement = "S[0], R"',
    "whole": 'relax.dist.global_view %x mesh = [1] placement = "S[1]"',
}
PARAMETERS = "%x: !relax.tensor<[n, m], f32>"
PROGRAMS = Programs({name: (PARAMETERS, f"%y = {body}; relax.exp %y") for name, body in BODIES.items()})


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(0, 2), (2, 3)])
def test_one_worker(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check(name, [x], np.exp(x))


SEVERAL = {
    "relax.dist.local_view": ('mesh = [2, 2] placement = "S[0], R"', "has dimension 0 in 2 tiles"),
    "relax.dist.global_view": ('mesh = [3, 2] placement = "S[1], S[0]"', "has dimension 1 in 3 tiles and dimension 0"),
}


@pytest.mark.parametrize("op", SEVERAL)
def test_several_workers(op: str):
    """Such a program is verified and printed; an error says why it does not run."""
    properties, reason = SEVERAL[op]
    module = parse_module(function("main", PARAMETERS, f"{op} %x {properties}"))
    assert f"{op} %x {properties}" in str(module)
    for mode in MODES:
        if mode != "interpret":
            with pytest.raises(InvalidModule, match=f"'{op}' op {reason}.*but a program runs as one"):
                build(module.clone(), mode=mode)
    with pytest.raises(ValueError, match=f"'{op}' op {reason}.*but a program runs as one"):
        run(module, "main", [random("f32", 6, 6)])


@pytest.mark.parametrize("placed", ["relax.dist.annotate_sharding", "relax.dist.redistribute"])
@pytest.mark.parametrize(
    ("placement", "reason"),
    [("S[0]", "has dimension 0 in 2 tiles for as many workers"), ("R", "has a copy for each of 2 workers")],
)
def test_a_function_for_several_workers(placed: str, placement: str, reason: str):
    """It would run as if nobody shared the tensors: an error names function, op and what is missing."""
    module = parse_module(
        function("main", PARAMETERS, f'%y = {placed} %x mesh = [2] placement = "{placement}"; relax.exp %y')
    )
    for mode in MODES:
        if mode != "interpret":
            message = f"'{placed}' op {re.escape(reason)}, but a program runs as one: no code is made.*in @main"
            with pytest.raises(InvalidModule, match=message):
                build(module.clone(), mode=mode)
    x = random("f32", 2, 2)
    np.testing.assert_allclose(run(module, "main", [x]), np.exp(x), rtol=1e-6)  # the meaning is that of the whole


def test_a_tile_by_index():
    """Which worker it is may be a number; then the tile is a slice of the tensor, also of one that does not divide."""
    params = "%x: !relax.tensor<[n, 2], f32>, %index: !relax.prim<i64, i>"
    tile = "max(0, min(n - i * floordiv(n + 2, 3), floordiv(n + 2, 3)))"
    body = f"relax.dist.redistribute_replica_to_shard %x num_workers = 3 tile = {tile} index = i"
    programs = Programs({"main": (params, body)})
    for size in (0, 1, 4, 7):
        x = random("f32", size, 2)
        step = -(-size // 3)
        for index in range(3):
            programs.check("main", [x, index], x[index * step : (index + 1) * step])


def test_a_tile_of_another_worker():
    """Without an index a process takes its own tile, and has to be one of as many workers."""
    module = parse_module(function("main", PARAMETERS, "relax.dist.redistribute_replica_to_shard %x num_workers = 2"))
    for mode in MODES:
        with pytest.raises(ValueError, match="expected 2 workers, got 1"):
            runner(module, "main", mode)(random("f32", 6, 6))


def test_a_function_of_several_workers_is_not_built_as_one():
    """Shardings of parameters are no less than annotations; on a mesh of one worker they change nothing."""
    text = """relax.func @main[%n](%x: !relax.tensor<[n], f32, sharding<x = COUNT: S[0]>>) -> !relax.object {
      %0 = relax.exp %x
      relax.return %0
    }"""
    x = random("f32", 3)
    for mode in MODES:
        np.testing.assert_allclose(runner(parse_module(text.replace("COUNT", "1")), "main", mode)(x), np.exp(x), 1e-6)
        if mode != "interpret":
            with pytest.raises(InvalidModule, match=r"got x, which is shared as x = 2: S\[0\]") as error:
                build(parse_module(text.replace("COUNT", "2")), mode=mode)
            assert "mpiexec -n 2 relax-run FILE --mesh x=2 runs it" in str(error.value)
