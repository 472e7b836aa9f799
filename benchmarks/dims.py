"""Symbolic dimensions: time against expression size, on the shapes of a transformer with a key-value cache.

Every layer has a past length of its own, so the expressions (the size of all activations, the list of all shapes) grow
with the number of layers. A time that is linear in it has the exponent 1. The peer is sympy, in the same run.

    python -m benchmarks.dims
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import log
from time import perf_counter

import sympy

from tir_dialect.dims import Dim, Prover, broadcast, ceildiv, parse_dim, product, solve, symbol, total

LAYERS = (6, 12, 24, 48)
HEADS, HEAD, HIDDEN, TILE = 16, 64, 1024, 8
_fresh = count()


@dataclass(frozen=True)
class Model:
    """The shapes of all activations of a model with its own symbols, so that no cache of another run helps."""

    batch: Dim
    length: Dim
    pasts: tuple[Dim, ...]

    @classmethod
    def make(cls, layers: int) -> Model:
        tag = next(_fresh)
        return cls(symbol(f"b{tag}"), symbol(f"s{tag}"), tuple(symbol(f"p{tag}_{i}") for i in range(layers)))

    @property
    def names(self) -> list[str]:
        return [str(dim) for dim in (self.batch, self.length, *self.pasts)]

    def shapes(self) -> list[tuple[Dim | int, ...]]:
        b, s = self.batch, self.length
        found: list[tuple[Dim | int, ...]] = [(b, s)]
        for past in self.pasts:
            keys = past + s
            found += [
                (past,),
                (b * s, 3 * HIDDEN),
                (b, HEADS, keys, HEAD),
                (b, HEADS, s, keys),
                (broadcast(b, 1), HEADS, s, TILE * ceildiv(keys, TILE)),
                (b * s, 4 * HIDDEN),
                (ceildiv(b * s, TILE), TILE * HIDDEN),
            ]
        return found

    def arena(self) -> Dim:
        """Bytes of all activations together."""
        return total(4 * product(shape) for shape in self.shapes())


def fastest(make: Callable[[], Callable[[], object]], repeat: int = 5) -> float:
    """Seconds of the fastest run; every run gets operands of its own."""
    times: list[float] = []
    for _ in range(repeat):
        run = make()
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def build(layers: int) -> Callable[[], object]:
    return Model.make(layers).arena


def on_arena(action: Callable[[Model, Dim], object]) -> Callable[[int], Callable[[], object]]:
    def prepare(layers: int) -> Callable[[], object]:
        model = Model.make(layers)
        arena = model.arena()
        return lambda: action(model, arena)

    return prepare


def solve_entry(layers: int) -> Callable[[], object]:
    """What a function entry does: every dimension of every parameter against a value read from it."""
    model = Model.make(layers)
    dims = [dim for shape in model.shapes() for dim in shape]
    patterns = [(dim, symbol(f"v{next(_fresh)}")) for dim in reversed(dims)]
    return lambda: solve(patterns, model.names)


OPERATIONS: dict[str, Callable[[int], Callable[[], object]]] = {
    "build": build,
    "print": on_arena(lambda model, arena: str(arena)),
    "parse": on_arena(lambda model, arena: parse_dim(str(arena) + " + 1")),
    "substitute": on_arena(lambda model, arena: arena.substitute(dict.fromkeys(model.names, model.batch + 1))),
    "evaluate": on_arena(lambda model, arena: arena.evaluate(dict.fromkeys(model.names, 7))),
    "prove ==": on_arena(lambda model, arena: Prover().equal(arena, arena + model.batch)),
    "prove <=": on_arena(lambda model, arena: Prover().less_equal(arena, 2 * arena + 4096)),
    "prove <= by parts": on_arena(
        lambda model, arena: Prover().less_equal(total(TILE * (p // TILE) for p in model.pasts), total(model.pasts))
    ),
    "prove divisible": on_arena(lambda model, arena: Prover().divisible(arena, 64)),
    "range": on_arena(lambda model, arena: Prover(dict.fromkeys(model.names, (1, 2048))).range(arena)),
    "solve": solve_entry,
}


def sympy_build(layers: int) -> Callable[[], object]:
    tag = next(_fresh)
    b, s, *pasts = (sympy.Symbol(f"{name}{tag}", integer=True, nonnegative=True) for name in range(layers + 2))

    def run() -> sympy.Expr:
        sizes: list[sympy.Expr] = [b * s]
        for past in pasts:
            keys = past + s
            padded = TILE * sympy.ceiling(keys / TILE)
            sizes += [
                past,
                b * s * 3 * HIDDEN,
                b * HEADS * keys * HEAD,
                b * HEADS * s * keys,
                b * HEADS * s * padded,
                b * s * 4 * HIDDEN,
                sympy.ceiling(b * s / TILE) * TILE * HIDDEN,
            ]
        return sympy.expand(4 * sympy.Add(*sizes))

    return run


def main() -> None:
    """Prints one table: microseconds per layer, the exponent, and the ratio to sympy where it has the operation."""
    print("| operation | " + " | ".join(f"{layers} layers, ms" for layers in LAYERS) + " | exponent |")
    print("|---|" + "---:|" * (len(LAYERS) + 1))
    rows = {**OPERATIONS, "build in sympy": sympy_build}
    for name, prepare in rows.items():
        times = [fastest(lambda n=layers: prepare(n)) for layers in LAYERS]  # noqa: B023
        exponent = log(times[-1] / times[0]) / log(LAYERS[-1] / LAYERS[0])
        print(f"| {name} | " + " | ".join(f"{time * 1e3:.2f}" for time in times) + f" | {exponent:.2f} |")


if __name__ == "__main__":
    main()
