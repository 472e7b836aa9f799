"""Functions of operators with less known of their parameters: what is forgotten is checked and found at run time."""

from __future__ import annotations

import re
from collections.abc import Mapping

LEVELS: Mapping[str, tuple[bool, bool] | None] = {
    "written": None,
    "known": None,
    "sharded": None,
    "ranked": (True, True),
    "typed": (False, True),
    "unknown": (False, False),
}
"""What is left of a tensor's type: whether the rank is, and whether the dtype is; nothing is forgotten for `None`."""

_TENSOR = re.compile(r"(%\w+): !relax\.tensor<(\*|\[[^\]]*\]), (\w+)>")


def erase(params: str, body: str, level: str) -> tuple[str, str]:
    """The parameters and the body of a function of one operator with types of `level`.

    The body sees the values as they come; what was declared of their dimensions is checked beside, by casts that bind
    the symbols which the body may name.
    """
    if (kept := LEVELS[level]) is None:
        return params, body
    casts: list[tuple[bool, str, list[str], str]] = []

    def forget(found: re.Match[str]) -> str:
        name, shape, dtype = found.groups()
        names = [] if shape == "*" else re.findall(r"[a-z]\w*", shape)
        bare = [] if shape == "*" else [dim for dim in re.split(r", *", shape[1:-1]) if re.fullmatch(r"[a-z]\w*", dim)]
        casts.append((set(names) != set(bare), name, names, f"!relax.tensor<{shape}, {dtype}>"))
        ranked = "*" if shape == "*" or not kept[0] else re.sub(r"[^\[\],][^,\]]*", "_", shape).replace("_,", "_, ")
        return f"{name}: !relax.tensor<{ranked}, {dtype if kept[1] else '_'}>"

    erased = _TENSOR.sub(forget, params)
    bound = set(re.findall(r"prim<i64, ([a-z]\w*)>", erased))
    bound |= {name for dims in re.findall(r"<\[([^\]]*)\]", erased) for name in re.findall(r"[a-z]\w*", dims)}
    lines: list[str] = []
    for _, name, names, declared in sorted(casts, key=lambda each: each[0]):  # bare symbols are bound first
        new = [symbol for symbol in dict.fromkeys(names) if symbol not in bound]
        bound.update(new)
        results = ", ".join([f"{name}_typed", *(f"%{symbol}" for symbol in new)])
        binds = f" binds [{', '.join(new)}]" if new else ""
        lines.append(f"{results} = relax.match_cast {name} : {declared}{binds}")
    return erased, "; ".join([*lines, body])
