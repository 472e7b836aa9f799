"""Fewer permutations and reshapes compute the same, bit for bit."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import Expr, tensor
from relax_dialect.builder import op as R
from relax_dialect.ops.manipulation import PermuteDimsOp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples

PASSES = "simplify-permute-dims,simplify-reshapes"
SHAPE = (1, 2, 3, 4)


def _step(draw: st.DrawFn, bb: BlockBuilder, x: Expr, shape: tuple[int, ...]) -> tuple[Expr, tuple[int, ...]]:
    """One more operator on a value, and the shape that the value then has."""
    kind = draw(st.sampled_from(["permute", "reshape", "exp", "number", "row", "both", "product", "joined"]))
    if kind == "permute":
        axes = draw(st.permutations(range(len(shape))))
        return bb.emit(R.permute_dims(x, axes)), tuple(shape[axis] for axis in axes)
    if kind == "reshape":
        new = tuple(draw(st.permutations([*draw(st.sampled_from([(2, 3, 4), (6, 4), (24,), (1, 4, 6)]))])))
        return bb.emit(R.reshape(x, new)), new
    if kind == "number":
        rank = draw(st.integers(0, len(shape)))
        return bb.emit(R.add(x, np.full((1,) * rank, 1.5, np.float32))), shape
    if kind == "row":
        rank = draw(st.integers(1, len(shape)))
        row = np.arange(prod(shape[-rank:]), dtype=np.float32).reshape(shape[-rank:])
        return bb.emit(R.multiply(row, x)), shape
    if kind == "both":
        axes = draw(st.permutations(range(len(shape))))
        back = [axes.index(axis) for axis in range(len(axes))]
        left, right = (bb.emit(R.permute_dims(value, axes)) for value in (bb.emit(R.negative(x)), bb.emit(R.sin(x))))
        return bb.emit(R.permute_dims(bb.emit(R.subtract(left, right)), back)), shape
    if kind == "joined" and len(shape) < 4:
        axes, axis = draw(st.permutations(range(len(shape)))), draw(st.integers(-len(shape), len(shape) - 1))
        parts = [bb.emit(R.permute_dims(value, axes)) for value in (bb.emit(R.negative(x)), bb.emit(R.sin(x)))]
        part, _ = R.split(bb.emit(R.concat(parts, axis)), sections=2, axis=axis)
        return bb.emit(part), tuple(shape[axis] for axis in axes)
    if kind == "product" and len(shape) > 1:
        return bb.emit(R.matmul(x, np.eye(shape[-1], dtype=np.float32))), shape
    return bb.emit(R.sigmoid(x)), shape


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Permutations, reshapes, elementwise operators and products, one after the other."""
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(SHAPE, "float32")}) as function:
        x, shape = function.params[0], SHAPE
        kept = [x]
        for _ in range(draw(st.integers(1, 8))):
            x, shape = _step(draw, bb, x, shape)
            kept.append(x)
        bb.emit_func_output([x, draw(st.sampled_from(kept))] if draw(st.booleans()) else x)
    return str(bb.finalize())


@given(text=chains())
@examples(20)
def test_chains_stay(text: str):
    rng = np.random.default_rng(0)
    inputs = [[rng.random(SHAPE, np.float32)]]
    module = check_pass(text, "simplify-permute-dims", inputs)
    check_pass(module, "simplify-reshapes", inputs)


@pytest.mark.parametrize("name", PASSES.split(","))
@given(program=programs(ALL))
@examples(6)
def test_random_programs_stay(name: str, program: Program):
    check_pass(program.module, name, [program.inputs], entry=program.entry)


ISLAND = """
relax.func @main[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>, %w: !relax.tensor<[5, 3, 1, 1], f32>)
    -> !relax.tensor<[n, 5, 4, 4], f32> {
  %b = relax.constant dense<[1.0, -2.0, 3.0, -4.0, 5.0]> : tensor<5xf32>
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.permute_dims %0 axes = [0, 2, 3, 1]
  %2 = relax.add %1, %b
  %3 = relax.nn.relu %2
  %4 = relax.permute_dims %3 axes = [0, 3, 1, 2]
  relax.return %4
}
"""


def test_a_network_in_another_layout_has_no_permutation():
    rng = np.random.default_rng(1)
    args = [rng.random((2, 3, 4, 4), np.float32), rng.random((5, 3, 1, 1), np.float32)]
    module = check_pass(ISLAND, PASSES, [args])
    assert not [op for op in module.walk() if isinstance(op, PermuteDimsOp)]
    run_in_turn(module, "main", args)


def test_heads_of_one_token_are_a_view():
    """With one token, the heads that attention brings to the front are there already."""
    text = """
    relax.func @main(%x: !relax.tensor<[1, 1, 8], f32>, %w: !relax.tensor<[8, 8], f32>)
        -> !relax.tensor<[1, 4, 1, 2], f32> {
      %0 = relax.matmul %x, %w
      %s = relax.shape [1, 1, 4, 2]
      %1 = relax.reshape %0, %s
      %2 = relax.permute_dims %1 axes = [0, 2, 1, 3]
      %h = relax.constant dense<0.5> : tensor<1x1x1x1xf32>
      %3 = relax.multiply %2, %h
      relax.return %3
    }
    """
    rng = np.random.default_rng(2)
    args = [rng.random((1, 1, 8), np.float32), rng.random((8, 8), np.float32)]
    module = check_pass(text, PASSES, [args])
    run_in_turn(module, "main", args)
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    assert str(module).count("relax.call_tir") == 1
