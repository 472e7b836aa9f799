"""Random arguments of compiled functions: dtypes, strides, byte orders, rights to write, sequences.

Every mode gives the same results, or refuses an argument in the same words; what a function writes is seen by its
caller, or refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run as interpret
from tests.support.programs import as_plain
from vm_dialect import VirtualMachine

NAME = "arguments"

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i64": np.int64,
    "i8": np.int8,
    "ui16": np.uint16,
    "ui64": np.uint64,
    "i1": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i4": ml_dtypes.int4,
}
SHAPES = ("[]", "[n]", "[n, 3]", "[2, n, m]")

Function = Callable[..., Any]


def text(name: str, shape: str) -> str:
    """`read` gives its arguments back in other memory, `write` writes the first one over the second one."""
    dims = [each.strip() for each in shape[1:-1].split(",") if each.strip()]
    symbols = ", ".join(f"%{each}" for each in dims if not each.isdigit())
    bound = f"[{symbols}]" if symbols else ""
    indices = ", ".join(f"%i{axis}" for axis in range(len(dims)))
    bounds = ", ".join(each if each.isdigit() else f"%{each}" for each in dims)
    tensor, buffer = f"!relax.tensor<{shape}, {name}>", f"!tir.buffer<{shape}, {name}>"
    body = f"%v = tir.load %X[{indices}]\n tir.store %v, %Y[{indices}]"
    loops = f"tir.for ({indices}) in ({bounds}) {{\n {body}\n }}" if dims else body
    return f"""
    tir.prim_func private @copy{bound}(%X: {buffer}, %Y: {buffer}) {{
      {loops}
    }}
    relax.func @read{bound}(%x: {tensor}, %y: {tensor}) -> !relax.tuple<{tensor}, {tensor}> {{
      %a = relax.call_tir @copy(%x) : {tensor}
      %b = relax.call_tir @copy(%y) : {tensor}
      %c = relax.tuple(%a, %b)
      relax.return %c
    }}
    relax.func @write{bound}(%x: {tensor}, %y: {tensor}) -> {tensor} impure {{
      %a = relax.call_tir_inplace @copy(%x, %y) inplace [1] : {tensor}
      relax.return %a
    }}
    """


@cache
def functions(name: str, shape: str) -> dict[str, Callable[[str], Function]]:
    """The functions by mode."""
    module = parse_module(text(name, shape))
    return {
        "interpret": lambda function: lambda *args: interpret(module, function, args),
        **{mode: VirtualMachine(build(module, mode=mode)).__getitem__ for mode in ("bytecode", "native")},
    }


def numbers(rng: random.Random, dtype: Any, sizes: tuple[int, ...]) -> np.ndarray:
    """Small numbers of a dtype, which each of them has."""
    count = int(np.prod(sizes))
    return np.array([rng.randrange(2 if dtype is np.bool_ else 8) for _ in range(count)]).astype(dtype).reshape(sizes)


def laid_out(rng: random.Random, values: np.ndarray) -> Any:
    """The same numbers in memory of another layout, or as Python's."""
    choice = rng.randrange(12)
    if choice == 0:
        frozen = values.copy()
        frozen.flags.writeable = False
        return frozen
    if choice == 1 and values.dtype.type.__module__ == "numpy":
        return values.astype(values.dtype.newbyteorder())
    if choice == 2:
        return np.frombuffer(bytearray(b"\0" + values.tobytes()), values.dtype, offset=1).reshape(values.shape)
    if choice == 3:
        return np.asfortranarray(values)
    if choice == 4:
        return values.tolist()
    if choice == 5 and values.ndim:
        return list(values)
    if choice == 6 and not values.ndim:
        return values[()]
    if choice in (7, 8) and values.ndim:
        steps = [rng.choice((1, 2, -1, -2)) for _ in values.shape]
        wide = np.zeros([size * abs(step) for size, step in zip(values.shape, steps, strict=True)], values.dtype)
        view = wide[tuple(slice(None, None, step) for step in steps)]
        view[...] = values
        return view
    if choice == 9 and values.ndim:
        return np.broadcast_to(values[:1], values.shape)
    return values


def argument(rng: random.Random, dtype: Any, sizes: tuple[int, ...]) -> Any:
    """An argument, of which one in eight is not of the function's type."""
    strange = rng.randrange(24)
    if strange == 0:
        dtype = rng.choice(list(DTYPES.values()))
    elif strange == 1:
        sizes = (*sizes, 2)
    elif strange == 2:
        return rng.choice([None, "x", 3, 2.5, 300, -1, [], [[1], [1, 2]], {}, b"x", np.array(["a"]), np.array([1j])])
    return laid_out(rng, numbers(rng, dtype, sizes))


def observed(function: Function, arguments: list[Any]) -> tuple[Any, ...]:
    """What a call gives and leaves behind: dtypes, shapes and numbers, or the first line of its error."""
    try:
        result = as_plain(function(*arguments))
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error).splitlines()[0]
    tensors = [*(result if isinstance(result, tuple) else (result,)), *arguments]
    return tuple((each.dtype.name, each.shape, each.tolist()) for each in tensors if isinstance(each, np.ndarray))


def run(seed: int) -> None:
    """Calls functions of one type with random arguments, in every mode."""
    rng = random.Random(seed)
    name, shape = rng.choice(list(DTYPES)), rng.choice(SHAPES)
    extents = {"n": rng.randrange(4), "m": rng.randrange(1, 4)}
    sizes = tuple(extents.get(each.strip()) or int(each) if each.strip().isdigit() else extents[each.strip()]
                  for each in shape[1:-1].split(",") if each.strip())  # fmt: skip
    for function in ("read", "write"):
        for _ in range(8):
            state = rng.getstate()
            outcomes: dict[str, tuple[Any, ...]] = {}
            for mode, find in functions(name, shape).items():
                rng.setstate(state)  # each mode gets arguments of its own
                given = [argument(rng, DTYPES[name], sizes) for _ in range(2)]
                outcomes[mode] = observed(find(function), given)
            reference = outcomes["interpret"]
            for mode, outcome in outcomes.items():
                if outcome != reference:
                    raise AssertionError(f"{function} of {name}{shape}, {mode}: {outcome}, interpreter: {reference}")
