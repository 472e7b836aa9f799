"""`simplify-match-cast`: the checks that matter stay, and fail as before."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.ops.binding import MatchCastOp
from tests.support.programs import check_pass, run_pipeline

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.object) -> !relax.tensor<*, f32> {
  %0 = relax.match_cast %y : !relax.tensor<*, _>
  %1 = relax.match_cast %0 : !relax.tensor<[_, _], f32>
  %2, %k = relax.match_cast %1 : !relax.tensor<[n, k + 1], f32> binds [k]
  %3 = relax.flatten %2
  %s = relax.shape [k]
  %4 = relax.ones %s dtype = f32
  %5 = relax.match_cast %x : !relax.tensor<*, f32>
  %6 = relax.concat %3, %4
  %7 = relax.match_cast %5 : !relax.tensor<[_], f32>
  %8 = relax.concat %6, %7
  relax.return %8
}
"""


def test_one_cast_is_left():
    inputs = [[np.ones(n, np.float32), np.ones((n, k), np.float32)] for n in (0, 2) for k in (1, 3)]
    module = check_pass(PROGRAM, "simplify-match-cast", inputs)
    assert sum(isinstance(op, MatchCastOp) for op in module.walk()) == 1


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (np.ones(2, np.float32), TypeError),
        (np.ones((2, 2), np.int64), TypeError),
        (np.ones((3, 2), np.float32), ValueError),
        (np.ones((2, 0), np.float32), ValueError),
        (7, TypeError),
    ],
)
def test_checks_fail_as_before(wrong: object, error: type[Exception]):
    module = parse_module(PROGRAM)
    args = [np.ones(2, np.float32), wrong]
    with pytest.raises(error):
        run(module, "main", args)
    run_pipeline(module, "simplify-match-cast")
    with pytest.raises(error):
        run(module, "main", args)
