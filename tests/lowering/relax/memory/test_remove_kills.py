import numpy as np

from tests.support.programs import EXACT, run_in_turn

KILLED = """
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %one = relax.constant dense<1.0> : tensor<f32>
  %a = relax.add %x, %one
  %b = relax.abs %a
  %same = relax.multiply %b, %one
  relax.kill %a
  relax.kill %b
  relax.return %same
}
"""


def test_a_value_outlives_those_in_whose_memory_it_is():
    """`%b` is computed in the memory of `%a`, and `%same` is `%b`."""
    x = np.array([-3, -1, 0, 2], np.float32)
    np.testing.assert_array_equal(run_in_turn(KILLED, "main", [x], EXACT), abs(x + 1))
