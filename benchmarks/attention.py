"""Attention, against PyTorch and ONNX Runtime, on 1 and 2 threads; batches, heads, queries and keys are symbols.

ONNX Runtime and PyTorch have an operator for all of it, as we have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compute import Case, run
from benchmarks.timing import in_processes

# batch, heads of queries, heads of keys, queries, keys, features, whether causal
SHAPES = (
    *((1, 12, 12, 128, 128, 64, False), (1, 12, 12, 512, 512, 64, False), (8, 12, 12, 32, 32, 64, False)),
    *((1, 8, 8, 1024, 1024, 64, True), (1, 32, 8, 128, 128, 128, True), (2, 12, 12, 77, 77, 64, False)),
    *((1, 12, 12, 1, 512, 64, False), (1, 32, 8, 1, 1024, 128, False), (1, 12, 12, 4, 512, 64, False)),
)


def _torch(causal: bool, shared: bool) -> Callable[[Any], Callable[..., Any]]:
    def prepare(torch: Any) -> Callable[..., Any]:
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=shared)

    return prepare


def case(batch: int, heads: int, pairs: int, queries: int, keys: int, features: int, causal: bool) -> Case:
    """Attention of so many queries to so many keys."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((batch, heads, queries, features), np.float32)
    k, v = (rng.standard_normal((batch, pairs, keys, features), np.float32) for _ in "kv")
    groups = f"{heads // pairs} * g" if heads != pairs else "g"
    mask = ' causal_mask = "TopLeft"' if causal else ""
    layouts = " ".join(f'{each}_layout = "BHSD"' for each in ("q", "k", "v", "out"))
    text = f"""
relax.func @main[%b, %g, %s, %t](%q: !relax.tensor<[b, {groups}, s, {features}], f32>,
    %k: !relax.tensor<[b, g, t, {features}], f32>, %v: !relax.tensor<[b, g, t, {features}], f32>) -> !relax.object {{
  %r = relax.nn.attention %q, %k, %v{mask} {layouts}
  relax.return %r
}}"""
    name = f"{batch} x {heads} heads, {queries} queries, {keys} keys of {features}"
    name += (f", {pairs} heads of keys" if groups != "g" else "") + (", causal" if causal else "")
    pairs_seen = queries * (queries + 1) // 2 if causal else queries * keys
    return Case(
        name,
        text,
        (q, k, v),
        4.0 * batch * heads * pairs_seen * features,
        torch=_torch(causal, heads != pairs),
        onnx="Attention",
        attributes={"is_causal": int(causal)},
        opset=23,
    )


def table(threads: int) -> None:
    """The table for a number of threads, which the environment has to name too."""
    run("attention", "Attention in f32", [case(*shape) for shape in SHAPES], threads)


def main() -> None:
    """Prints the tables of one and of two threads."""
    in_processes("attention")


if __name__ == "__main__":
    main()
