"""Kernels that are valid and seldom: of rank 0, with extents 0 and 1, nested blocks, domains that depend on iterators
around them. One after the other in a graph, so that they are fused and scheduled together; compared in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import build
from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import run_in_turn
from tests.support.sweeps import examples
from vm_dialect import VirtualMachine

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One step: what reads a tensor of a shape and makes one of another."""

    source: Shape
    target: Shape
    places: tuple[int | str, ...]
    """Where each element of the source comes from: an iterator `v<n>`, a reduced `r<axis>`, or a position."""
    nested: bool
    """Whether the inner iterators are those of a block within a block."""
    triangle: bool
    """Whether a reduced axis is gone along only up to the outermost iterator."""

    def text(self, name: str) -> str:
        """TVMScript."""
        loops = [(f"v{axis}", extent, "spatial") for axis, extent in enumerate(self.target)]
        reduced = [(str(p), self.source[axis], "reduce") for axis, p in enumerate(self.places) if str(p)[:1] == "r"]
        outer = loops[: 1 if self.nested else 0]
        lines = [f"@T.prim_func(private=True)\ndef {name}(x: {_buffer(self.source)}, y: {_buffer(self.target)}):"]
        depth = 1
        groups = [outer, [*loops[len(outer) :], *reduced]] if self.nested else [[*loops, *reduced]]
        for number, group in enumerate(groups):
            for var, extent, kind in group:
                limit = f"T.min({extent}, v0 + 1)" if self._is_cut(kind) and outer else str(extent)
                lines.append("    " * depth + f"for i_{var} in range({limit}):")
                depth += 1
            lines.append("    " * depth + f'with T.sblock("{name}{number}"):')
            depth += 1
            lines += ["    " * depth + f"{var} = T.axis.{kind}({extent}, i_{var})" for var, extent, kind in group]
        value, place = f"x[{_index(self.places)}]", f"y[{_index([var for var, _, _ in loops])}]"
        if reduced:
            lines += ["    " * depth + "with T.init():", "    " * (depth + 1) + f"{place} = T.float32(0)"]
            lines.append("    " * depth + f"{place} = {place} + {value}")
        else:
            lines.append("    " * depth + f"{place} = {value} + T.float32(1)")
        return "\n".join(f"    {line}" for each in lines for line in each.split("\n"))

    def _is_cut(self, kind: str) -> bool:
        return self.triangle and kind == "reduce"


def _buffer(shape: Shape) -> str:
    return f'T.Buffer(({"".join(f"{extent}, " for extent in shape)}), "float32")'


def _index(places: Sequence[object]) -> str:
    return ", ".join(map(str, places)) or "()"


@st.composite
def kernels(draw: st.DrawFn, source: Shape) -> Kernel:
    """A kernel for a tensor of this shape."""
    extents = st.sampled_from([1, 1, 2, 3, 4, 17, 0])
    target = list(draw(st.lists(extents, max_size=3)))
    nested, triangle = draw(st.booleans()) and bool(target), draw(st.booleans())
    places: list[int | str] = []
    for axis, extent in enumerate(source):
        fitting = [f"v{number}" for number, each in enumerate(target) if each <= extent]
        choices: list[int | str] = [f"r{axis}", *fitting, *([extent - 1, 0] if extent else [])]
        places.append(draw(st.sampled_from(choices)))
    return Kernel(source, tuple(target), tuple(places), nested, triangle)


@st.composite
def chains(draw: st.DrawFn) -> list[Kernel]:
    """Kernels of which each reads what the one before has made."""
    shape: Shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 16]), max_size=3)))
    chain: list[Kernel] = []
    for _ in range(draw(st.integers(1, 3))):
        chain.append(draw(kernels(shape)))
        shape = chain[-1].target
    return chain


def program(chain: list[Kernel]) -> str:
    parts = ["@I.ir_module", "class Module:", *(each.text(f"k{number}") for number, each in enumerate(chain))]
    parts += ["    @R.function", f"    def main(x: {_tensor(chain[0].source)}):", "        with R.dataflow():"]
    value = "x"
    for number, each in enumerate(chain):
        parts.append(f"            t{number} = R.call_tir(Module.k{number}, ({value},), out_ty={_tensor(each.target)})")
        value = f"t{number}"
    return "\n".join([*parts, f"            R.output({value})", f"        return {value}", ""])


def _tensor(shape: Shape) -> str:
    return f'R.Tensor(({"".join(f"{extent}, " for extent in shape)}), "float32")'


def check(chain: list[Kernel]) -> object:
    data = np.random.default_rng(0).integers(-3, 4, chain[0].source).astype(np.float32)
    return run_in_turn(parse(program(chain)), "main", [data])


@given(chains())
@examples(5)
def test_unusual_kernels(chain: list[Kernel]):
    check(chain)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize(("source", "places"), [((2, 0), ("v0", "r1")), ((0, 2), ("r0", "v0")), ((0, 0), ("r0", "r1"))])
def test_a_sum_of_nothing_within_a_block_is_zero(source: Shape, places: tuple[str, ...], triangle: bool):
    """An iterator of extent 0 is reduced over nothing, whatever is known about its loop."""
    result = check([Kernel(source, (2,), places, True, triangle)])
    assert np.array_equal(np.asarray(result), np.zeros(2, np.float32))


def test_a_scalar_is_spread_in_front_of_a_map():
    for extent in (1, 4):
        chain = [Kernel((), (extent,), (), False, False), Kernel((extent,), (extent,), ("v0",), False, False)]
        result = run_in_turn(parse(program(chain)), "main", [np.full((), 3, np.float32)])
        assert np.array_equal(np.asarray(result), np.full(extent, 5, np.float32))


def test_the_domain_of_a_block_may_depend_on_iterators_around_it():
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def k(x: T.Buffer((4, 4), "float32"), n: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("outer"):
                vi = T.axis.spatial(4, i)
                for r in range(T.Cast("int64", n[vi])):
                    with T.sblock("inner"):
                        vj = T.axis.spatial((vi, vi + LENGTH), vi)
                        vr = T.axis.reduce(4, r)
                        with T.init():
                            y[vj] = T.float32(0)
                        y[vj] = y[vj] + x[vj, vr]

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), n: R.Tensor((4,), "float32")):
        y = R.call_tir(Module.k, (x, n), out_ty=R.Tensor((4,), "float32"))
        return y
"""
    args = [np.ones((4, 4), np.float32), np.arange(1, 5).astype(np.float32)]
    assert np.array_equal(np.asarray(run_in_turn(parse(text.replace("LENGTH", "(5 - vi)")), "main", args)), args[1])
    program = build(parse(text.replace("LENGTH", "(2 - vi)")))
    with pytest.raises(IndexError, match=r'"inner" whose binding 0 may be outside, .* less than its extent'):
        VirtualMachine(program)["main"](*args)


IN_BLOCKS = """
tir.prim_func private @f[%n, %m](%X: !tir.buffer<[n, m], f32>, %V: !tir.buffer<[n], f32>, %T: !tir.buffer<[m, n], f32>,
                         %Y: !tir.buffer<[n, m], f32>, %S: !tir.buffer<[1], f32>) {
  %zero = arith.constant 0 : index
  %c3 = tir.dim 3
  %tiles = tir.dim floordiv(m + 2, 3)
  tir.for (%i) in (%n) {
    tir.block "row" (%v = spatial %i in %n) {
      %R = tir.alloc_buffer : !tir.buffer<[m], f32>
      tir.for (%j) in (%m) {
        tir.block "first" (%w = spatial %j in %m) {
          %a = tir.load %X[%v, %w]
          %b = tir.load %V[%v]
          %c = tir.load %T[%w, %v]
          %d = arith.addf %a, %b : f32
          %e = arith.subf %d, %c : f32
          tir.store %e, %R[%w]
        }
      }
      tir.for (%j) in (%m) {
        tir.block "second" (%w = spatial %j in %m) {
          %a = tir.load %R[%w]
          %u = arith.addi %v, %w : index
          %size = tir.dim n
          %rest = arith.remui %u, %size : index
          %b = tir.load %V[%rest]
          %c = arith.mulf %a, %b : f32
          tir.store %c, %Y[%v, %w]
        }
      }
    }
  }
  tir.for (%k, %l) in (%tiles, %c3) {
    %p = arith.muli %k, %c3 : index
    %q = arith.addi %p, %l : index
    %m1 = tir.dim m
    %inside = arith.cmpi slt, %q, %m1 : index
    tir.block "sum" (%r = reduce %q in %m) where %inside {
      tir.init {
        %none = arith.constant 0.0 : f32
        tir.store %none, %S[%zero]
      }
      %a = tir.load %S[%zero]
      %b = tir.load %Y[%zero, %r]
      %c = arith.addf %a, %b : f32
      tir.store %c, %S[%zero]
    }
  }
}
relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>, %v: !relax.tensor<[n], f32>, %t: !relax.tensor<[m, n], f32>) {
  %y, %s = relax.call_tir @f(%x, %v, %t) : !relax.tensor<[n, m], f32>, !relax.tensor<[1], f32>
  %r = relax.tuple(%y, %s)
  relax.return %r
}
"""
"""Stages with the iterator of a block around them in their indices, in a function that is no list of stages."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(1, 1), (3, 40), (5, 7)])
def test_stages_in_blocks(sizes: tuple[int, int]):
    x, t = (np.arange(n * m, dtype=np.float32).reshape(n, m) % 7 for n, m in (sizes, sizes[::-1]))
    v = np.arange(sizes[0], dtype=np.float32) - 1
    expected = (x + v[:, None] - t.T) * v[np.add.outer(*map(np.arange, sizes)) % sizes[0]]
    result, total = run_in_turn(IN_BLOCKS, "main", (x, v, t))
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_allclose(total, [expected[0].sum()])
