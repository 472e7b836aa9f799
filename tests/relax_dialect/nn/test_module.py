"""Modules: names of parameters, loading of weights, export; and attention with a window, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import i64

from lowering.verify import verify_module
from relax_dialect import nn
from relax_dialect.builder import Expr, op, tensor
from relax_dialect.interpreter import run
from relax_dialect.nn.attention import pool_types
from relax_dialect.struct_info.types import PrimType
from tir_dialect.block_arrays import BlockArray, encode
from tir_dialect.block_formats import FORMATS
from tir_dialect.dims import symbol

RNG = np.random.default_rng(0)


class Block(nn.Module):
    def __init__(self, embedding: nn.Embedding):
        self.table = embedding
        self.mlps = nn.ModuleList([nn.GatedMLP(32, 64), nn.GatedMLP(32, 64)])
        self.head = nn.Linear(32, 3, bias=True)

    def forward(self, ids: Expr) -> Expr:
        return self.head(self.mlps(self.table(ids)))


def _numbers(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / 4).astype(np.float32)


def _state(block: Block) -> dict[str, np.ndarray]:
    return {name: _numbers(*parameter.shape) for name, parameter in block.named_parameters()}


def test_parameters_have_the_names_of_attributes():
    block = Block(nn.Embedding(10, 32))
    parts = ("gate_proj", "up_proj", "down_proj")
    expected = ["table.weight", *(f"mlps.{i}.{part}.weight" for i in (0, 1) for part in parts)]
    assert [name for name, _ in block.named_parameters()] == [*expected, "head.weight", "head.bias"]


def test_export_with_arrays_blocks_and_half_precision():
    block = Block(nn.Embedding(10, 32))
    state = _state(block)
    packed = BlockArray(encode(state["table.weight"], FORMATS["q8_0"]), FORMATS["q8_0"])
    half = state["mlps.1.up_proj.weight"].astype(np.float16)
    block.load_state_dict(state | {"table.weight": packed, "mlps.1.up_proj.weight": half})
    module = nn.export(block, {"ids": tensor(("n",), "i64")})
    verify_module(module)
    ids = np.array([3, 9, 3])
    x = packed.decoded()[ids]
    state["mlps.1.up_proj.weight"] = half.astype(np.float32)
    for i in (0, 1):
        gate, up, down = (state[f"mlps.{i}.{part}_proj.weight"] for part in ("gate", "up", "down"))
        x = (x @ gate.T / (1 + np.exp(-(x @ gate.T))) * (x @ up.T)) @ down.T
    expected = x @ state["head.weight"].T + state["head.bias"]
    np.testing.assert_allclose(run(module, "main", [ids]), expected, rtol=1e-4, atol=1e-5)


def test_matrices_are_quantised():
    """Along their rows, with the error that is given; some are left out by name, size, shape, error or elements."""
    block = Block(nn.Embedding(10, 32))
    state = _state(block)
    state["mlps.0.up_proj.weight"][0, 0] = np.inf
    state["mlps.1.up_proj.weight"] *= 1e-12  # scales of f16 are 0
    packed = BlockArray(encode(state["table.weight"], FORMATS["q5_0"]), FORMATS["q5_0"])
    block.load_state_dict(state | {"table.weight": packed})
    errors = block.quantize("q4_0", leave_out=["*.1.down_*"], min_elements=1024)
    assert list(errors) == ["mlps.0.gate_proj.weight", "mlps.0.down_proj.weight", "mlps.1.gate_proj.weight"]
    for name, parameter in block.named_parameters():
        elements = parameter.elements
        if name in errors:
            assert isinstance(elements, BlockArray)
            off = elements.decoded() - state[name]
            assert errors[name] == pytest.approx(np.linalg.norm(off) / np.linalg.norm(state[name]), rel=1e-4)
            assert errors[name] < 0.1
        elif name != "table.weight":
            assert elements is state[name]
    table = block.table.weight.elements
    assert isinstance(table, BlockArray)
    assert table.packed is packed.packed
    assert block.quantize("q4_0", leave_out=["*.1.down_*"], min_elements=1024) == {}
    with pytest.raises(ValueError, match="no encoder of 'q9'"):
        block.quantize("q9")


def test_parameters_without_elements_are_weights_of_other_files():
    module = nn.export(nn.Linear(4, 2), {"x": tensor(("n", 4))})
    assert 'relax.constant "weight" : !relax.tensor<[2, 4], f32>' in str(module)


def test_weights_that_do_not_fit_are_named():
    block = Block(nn.Embedding(10, 32))
    state = _state(block)
    with pytest.raises(nn.StateError, match=r"missing: head\.bias; unknown: other"):
        block.load_state_dict(
            {name: each for name, each in state.items() if name != "head.bias"} | {"other": state["head.bias"]}
        )
    with pytest.raises(nn.StateError, match=r"'head.bias' expected the shape \[3\], got \[4\]"):
        block.load_state_dict(state | {"head.bias": _numbers(4)})
    block.load_state_dict(state | {"other": _numbers(1)}, strict=False)


def test_heads_that_cannot_share_keys():
    with pytest.raises(ValueError, match="heads in multiples of 2, got 3"):
        nn.Attention(32, 3, 2, 8, nn.RotaryEmbedding(8))


def test_a_window_hides_what_is_far():
    """With a window of 2 a token sees itself and the one before, whatever is in the cache before these."""
    rope = nn.RotaryEmbedding(8)
    attention = nn.Attention(16, 2, 1, 8, rope, window=2)
    attention.load_state_dict({name: _numbers(*each.shape) for name, each in attention.named_parameters()})

    def main(x: Expr, past: Expr, table: Expr, keys: Expr, values: Expr) -> Expr:
        angles = rope.angles(op.arange(past.dim, past.dim + 1, 1, dtype="i64"))
        return attention(x, nn.KVCache.of([keys, values], nn.OneSequence(table, past.dim)), angles)

    attention.name_parameters()
    pools = pool_types(1, 8, "f32")
    module = nn.export(
        main,
        {"x": tensor((1, 16)), "past": PrimType(i64, symbol("past")), "table": tensor(("pages",), "i64"), **pools},
        pure=False,
    )
    verify_module(module)
    x, table, (keys, values) = _numbers(1, 16), np.array([1]), (_numbers(2, 1, nn.PAGE, 8) for _ in range(2))
    found = run(module, "main", [x, 5, table, keys.copy(), values.copy()])
    for cached in (keys, values):
        cached[1, :, :4] = 100
    np.testing.assert_array_equal(run(module, "main", [x, 5, table, keys.copy(), values.copy()]), found)
    values[1, :, 4] += 1
    assert (run(module, "main", [x, 5, table, keys, values]) != found).any()


def test_a_cache_of_a_format_that_there_is_not():
    with pytest.raises(ValueError, match="expected a cache of f32, f16, q8_0, got 'i8'"):
        pool_types(1, 8, "i8")  # pyright: ignore[reportArgumentType]
