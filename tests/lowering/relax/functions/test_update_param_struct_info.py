"""`update-param-struct-info`: narrower types, the same results, and an error for what they leave out."""

import numpy as np
import pytest
from xdsl.passes import PassPipeline

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.registry import pass_factories
from lowering.relax.functions.bind_params import UpdateParamStructInfoPass
from lowering.verify import verify_module
from relax_dialect.builder import tensor
from relax_dialect.interpreter import run
from tests.support.programs import check_pass

PROGRAM = """
relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k], f32>) -> !relax.tensor<*, f32> {
  %0 = relax.add %x, %y
  %s = relax.shape [k, n]
  %1 = relax.reshape %0, %s
  relax.return %1
}
"""


def test_results_stay():
    inputs = [[np.ones((4, size), np.float32), np.arange(size, dtype=np.float32)] for size in (0, 1, 3)]
    module = check_pass(PROGRAM, 'update-param-struct-info{x="!relax.tensor<[4, m], f32>"}', inputs)
    assert "-> !relax.tensor<[m, 4], f32>" in str(module)
    with pytest.raises(ValueError, match="expected 4, got 3"):
        run(module, "main", [np.ones((3, 1), np.float32), np.ones(1, np.float32)])


def test_types_are_given_as_objects_or_as_text():
    update = UpdateParamStructInfoPass("main", {"x": tensor((4, "m"))})
    module = parse_module(PROGRAM)
    update.apply(make_context(), module)
    verify_module(module)
    (again,) = PassPipeline.parse_spec(pass_factories(), str(update)).passes
    other = parse_module(PROGRAM)
    again.apply(make_context(), other)
    assert str(other) == str(module)
