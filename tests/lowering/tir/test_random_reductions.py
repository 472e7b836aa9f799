"""Reductions whose loops start anywhere, count down, or leave instances out: code gives what the interpreter does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import examples
from tir_dialect.interpreter import compile_prim_func

RANGES = ["%{size}", "%{size}", "%c1 to %{size}", "%c0 to %{size}"]
BINDINGS = {
    "forward": "%{to} = arith.addi %{loop}, %c0 : index",
    "down": "%{to}_0 = arith.subi %{size}, %{loop} : index\n %{to} = arith.subi %{to}_0, %c1 : index",
    "rotated": "%{to}_0 = arith.addi %{loop}, %c1 : index\n %{to} = arith.remui %{to}_0, %{size} : index",
}
CONDITIONS = ["sge, %{loop}, %c1", "ne, %{loop}, %c1", "slt, %{loop}, %{size}", "sgt, %{size}, %{loop}", "slt, %r, %i"]
VALUES = {
    "addi": "%n1 = arith.addi %old, %x : i32",
    "maxsi": "%n1 = arith.maxsi %old, %x : i32",
    "order matters": "%n0 = arith.muli %old, %c3 : i32\n %n1 = arith.addi %n0, %x : i32",
}


@st.composite
def reductions(draw: st.DrawFn) -> str:
    """A function whose block adds up `X[i, r, s]` over `r` and perhaps `s`, in loops in any order."""
    loops = draw(st.permutations([("i", "m"), ("r", "n"), ("s", "k")]))
    ranges = [draw(st.sampled_from(RANGES)).format(size=size) for _, size in loops]
    lines: list[str] = []
    for loop, size in loops:
        binding = BINDINGS[draw(st.sampled_from(["forward", "forward", *BINDINGS]))]
        lines += binding.format(to=f"{loop}b", loop=loop, size=size).split("\n")
    conditions: list[str] = []
    for loop, size in draw(st.lists(st.sampled_from(loops), max_size=2, unique=True)):
        name = f"%inside{len(conditions)}"
        compared = draw(st.sampled_from(CONDITIONS)).format(loop=loop, size=size)
        lines.append(f"{name} = arith.cmpi {compared} : index")
        conditions.append(name)
    if len(conditions) == 2:
        lines.append("%both = arith.andi %inside0, %inside1 : i1")
    where = f" where {'%both' if len(conditions) == 2 else conditions[0]}" if conditions else ""
    kind, place = draw(st.sampled_from([("reduce", "%vi"), ("spatial", "%vi, %vs")]))
    shape = "m" if kind == "reduce" else "m, k"
    init = f"tir.init {{ tir.store %c3, %Y[{place}] }}" if draw(st.booleans()) else ""
    body = "\n      ".join(lines)
    return f"""
tir.prim_func @f[%m in [1, _], %n in [1, _], %k in [1, _]](%X: !tir.buffer<[m, n, k], i32>,
                                                           %Y: !tir.buffer<[{shape}], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : i32
  tir.for ({", ".join(f"%{loop}" for loop, _ in loops)}) in ({", ".join(ranges)}) {{
      {body}
    tir.block "b" (%vi = spatial %ib in %m, %vr = reduce %rb in %n, %vs = {kind} %sb in %k){where} {{
      {init}
      %x = tir.load %X[%vi, %vr, %vs]
      %old = tir.load %Y[{place}]
      {VALUES[draw(st.sampled_from(sorted(VALUES)))]}
      tir.store %n1, %Y[{place}]
    }}
  }}
}}"""


@examples(12)
@given(reductions(), st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=4, max_size=4))
def test_code_and_interpreter_start_alike(text: str, sizes: list[tuple[int, int, int]]):
    module = parse(text)
    func = find(module)
    kernels, run = compile_prim_funcs(module, cache=NO_CACHE), compile_prim_func(func)
    for m, n, k in [(1, 1, 1), *sizes]:
        x = np.arange(7, 7 + m * n * k, dtype=np.int32).reshape(m, n, k) % 11 - 4
        y = np.full((m, k)[: func.params[1].type.rank], 7, np.int32)
        expected, pages = y.copy(), [Guarded(each, at_end=True) for each in (x, y)]
        run([x, expected], {"m": m, "n": n, "k": k})
        assert call(kernels, func, [each.array for each in pages], {"m": m, "n": n, "k": k}) == 0
        np.testing.assert_array_equal(pages[1].array, expected)
        for each in pages:
            each.release()
