"""The operators that somebody may mean who writes a name that is none."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_ELSEWHERE = {
    "transpose": "permute_dims",
    "permute": "permute_dims",
    "cast": "astype",
    "to": "astype",
    "dense": "matmul",
    "linear": "matmul",
    "dot": "matmul",
    "bmm": "matmul",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "neg": "negative",
    "amax": "max",
    "amin": "min",
    "unsqueeze": "expand_dims",
    "view": "reshape",
    "expand": "broadcast_to",
    "cat": "concat",
    "concatenate": "concat",
    "gather": "take",
    "slice": "strided_slice",
    "clamp": "clip",
    "swish": "nn.silu",
    "const": "constant",
    "def": "func",
    "function": "func",
}
"""What other libraries call an operator, by its name there."""


def near_operators(name: str, known: Collection[str], count: int = 2) -> list[str]:
    """Names among `known` for `name`, all of them with their dialect: the same in another namespace, what other
    libraries call so, or else names that are spelt alike.
    """
    last = name.rpartition(".")[2]
    is_ours = name.partition(".")[0] in ("relax", last)
    same = [each for each in sorted(known) if is_ours and each.startswith("relax.") and each.rpartition(".")[2] == last]
    if not same and is_ours and last in _ELSEWHERE:
        same = [each for each in (f"relax.{_ELSEWHERE[last]}",) if each in known]
    return same[:count] or get_close_matches(name, sorted(known), n=count)
