"""Folding keeps values, of any operator and dtype; programs do not become larger than they have to be."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import op
from relax_dialect.interpreter import run
from relax_dialect.ops.values import ConstantOp
from tests.support.programs import check_pass, run_pipeline

OPERATORS = {
    "binary": "%r = relax.add %a, %b",
    "unary": "%r = relax.exp %a",
    "matmul": "%t = relax.permute_dims %b %r = relax.matmul %a, %t",
    "reduction": "%r = relax.sum %a axes = [1]",
    "softmax": "%r = relax.nn.softmax %a axis = -1",
    "cast": "%h = relax.astype %a dtype = bf16 %r = relax.astype %h dtype = f16",
    "truth": "%g = relax.greater %a, %b %r = relax.where %g, %a, %b",
    "views": "%f = relax.flatten %a %e = relax.expand_dims %f axes = [0] %r = relax.squeeze %e",
    "slice": "%r = relax.strided_slice %a axes = [1] begin = [-1] end = [-4] strides = [-1]",
    "empty": "%s = relax.strided_slice %a axes = [1] begin = [2] end = [2] %r = relax.exp %s",
    "several": "%p, %q = relax.split %a sections = 3 axis = 1 %o, %t = relax.split %b indices = [1] axis = 1 "
    "%r = relax.concat %p, %o axis = 1",
    "sort": "%r = relax.sort %a axis = 1 descending",
}


@pytest.mark.parametrize("body", OPERATORS.values(), ids=OPERATORS)
def test_values_stay(body: str):
    body = body.replace("%p, %q = relax.split %a sections = 3", "%p, %u, %q = relax.split %a sections = 3")
    module = check_pass(
        f"""
        relax.func @main() -> !relax.object {{
          %a = relax.constant dense<[[1.5, -2.0, 3.0], [4.0, 5.0, -6.0]]> : tensor<2x3xf32>
          %b = relax.constant dense<[[-1.5, 0.25, 0.5], [4.0, 1.0, -0.0]]> : tensor<2x3xf32>
          {body}
          relax.return %r
        }}
        """,
        "fold-constants",
        [[]],
    )
    assert {each.name for each in module.walk()} == {"builtin.module", "relax.func", "relax.constant", "relax.return"}


def test_weights_are_folded_and_stay_outside_of_the_text():
    array = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", 64)}) as (x,):
        builder.emit_func_output(op.matmul(x, op.permute_dims(builder.const(array))))
    module = builder.get()
    run_pipeline(module, "fold-constants")
    (only,) = [each for each in module.walk() if isinstance(each, ConstantOp)]
    assert only.weight_name is not None
    assert only.array is not None
    np.testing.assert_array_equal(only.array, array.T)
    inputs = np.ones((2, 64), np.float32)
    np.testing.assert_allclose(run(module, "main", [inputs]), inputs @ array.T)


def test_the_limit_is_an_option():
    text = """
    relax.func @main() -> !relax.tensor<[8], f32> {
      %c = relax.constant dense<1.0> : tensor<f32>
      %s = relax.shape [8]
      %r = relax.broadcast_to %c, %s
      relax.return %r
    }
    """
    small, large = parse_module(text), parse_module(text)
    run_pipeline(small, "fold-constants{most_bytes=31}")
    run_pipeline(large, "fold-constants{most_bytes=32}")
    assert "relax.broadcast_to" in str(small)
    assert "relax.broadcast_to" not in str(large)


@pytest.mark.parametrize("use", ["%r = relax.matmul %x, %w", "%t = relax.permute_dims %w %r = relax.matmul %x, %t"])
def test_weights_may_be_large(use: str):
    module = parse_module(
        f"""
        relax.func @main(%x: !relax.tensor<[1, 512], f32>) -> !relax.tensor<[1, 512], f32> {{
          %c = relax.constant dense<0.5> : tensor<f32>
          %s = relax.shape [512, 512]
          %w = relax.full %s, %c
          {use}
          relax.return %r
        }}
        """
    )
    run_pipeline(module, "fold-constants")
    assert "relax.full" not in str(module)


def test_a_long_chain_of_constants_leaves_one():
    steps = "\n".join(f"%{i + 1} = relax.add %{i}, %c" for i in range(2_000))
    module = parse_module(
        f"""
        relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {{
          %c = relax.constant dense<1.0> : tensor<2xf32>
          %0 = relax.add %c, %c
          {steps}
          %r = relax.add %x, %2000
          relax.return %r
        }}
        """
    )
    run_pipeline(module, "fold-constants")
    (only,) = [each for each in module.walk() if isinstance(each, ConstantOp)]
    assert only.array is not None
    assert only.array.tolist() == [2002.0, 2002.0]
