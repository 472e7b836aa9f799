"""Positions of which nothing shows that they are inside are an `IndexError` in every mode, before memory is touched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from xdsl.context import Context

from lowering import build
from lowering.parsing import parse_module
from lowering.tir.check_accesses import CheckAccessesPass
from lowering.tir.vectorize import LANES as AT_ONCE
from lowering.tir_to_llvm.convert_tir_to_llvm import LoweringOptions, lower_prim_funcs
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.control_flow import ForOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import LoopKind
from vm_dialect import VirtualMachine

DATA, INDICES, RESULT = "%A: !tir.buffer<[n], f32>", "%I: !tir.buffer<[m], i64>", "%B: !tir.buffer<[m], f32>"
LOAD = """
    %k = tir.load %I[%i]
    %j = arith.index_cast %k : i64 to index
"""
COPY = "%x = tir.load %A[%j] tir.store %x, %B[%i]"
LANES = """
  %zero = arith.constant 0 : index
  %k = tir.load %I[%zero] : vector<4xi64>
  %j = tir.convert index_cast %k : vector<4xi64> to vector<4xindex>
  %mask = tir.load %M[%zero] : vector<4xi1>
"""


class Case(NamedTuple):
    """A function, the length of `A`, numbers for `I` that are inside, and others of which one is outside."""

    body: str
    inside: Sequence[int]
    outside: Sequence[Sequence[int]]
    length: int = 8
    mask: Sequence[int] = ()


FAR = 1 << 40
BAD = ([0, 1, 8, 2], [0, 1, 2, -1], [FAR, 0, 0, 0], [0, 0, 0, -(1 << 62)])
CASES = {
    "load": Case(f"tir.for (%i) in (%m) {{ {LOAD} {COPY} }}", [3, 0, 7, 7], BAD),
    "store": Case(f"tir.for (%i) in (%m) {{ {LOAD} %x = tir.load %B[%i] tir.store %x, %A[%j] }}", [3, 0, 7, 7], BAD),
    "parallel": Case(f"tir.for parallel (%i) in (%m) {{ {LOAD} {COPY} }}", [3, 0, 7, 7], BAD),
    # A value of a branch is of memory that is not there yet where the positions are checked.
    "value of a branch": Case(
        f"""
  %S = tir.alloc_buffer : !tir.buffer<[m], f32>
  %c9 = arith.constant 9 : index
  %z = arith.constant 0.0 : f32
  tir.for (%i) in (%m) {{
    {LOAD}
    tir.store %z, %S[%i]
    %c = arith.cmpi eq, %i, %c9 : index
    %x = tir.if %c -> (f32) {{
      tir.yield %z
    }} else {{
      %a = tir.load %A[%j]
      %s = tir.load %S[%i]
      %t = arith.addf %a, %s : f32
      tir.yield %t
    }}
    tir.store %x, %B[%i]
  }}""",
        [3, 0, 7, 7],
        BAD,
    ),
    # The function writes what tells the positions.
    "changing": Case(
        f"""tir.for parallel (%i) in (%m) {{ {LOAD} {COPY} %o = arith.constant 1 : i64 tir.store %o, %I[%i] }}""",
        [3, 0, 7, 7],
        BAD,
    ),
    "while": Case(
        """
  %one = arith.constant 1 : i64
  %null = arith.constant 0 : i64
  %t = tir.alloc_buffer : !tir.buffer<[], i64, scope = "local">
  tir.store %null, %t[]
  tir.while {
    %b = tir.load %t[]
    %i = arith.index_cast %b : i64 to index
    %go = arith.cmpi slt, %i, %m : index
    tir.condition %go
  } do {
    %c = tir.load %t[]
    %at = arith.index_cast %c : i64 to index
    %k = tir.load %I[%at]
    %j = arith.index_cast %k : i64 to index
    %x = tir.load %A[%j]
    tir.store %x, %B[%at]
    %d = arith.addi %c, %one : i64
    tir.store %d, %t[]
  }""",
        [3, 0, 7, 7],
        BAD,
    ),
    "vectors": Case(f"{LANES} %x = tir.load %A[%j] tir.store %x, %B[%zero]", [3, 0, 7, 7], BAD, mask=[1, 1, 1, 1]),
    "chosen": Case(
        f"{LANES} %x = tir.load %A[%j] mask %mask tir.store %x, %B[%zero]",
        [3, FAR, 7, -5],
        ([0, 1, 8, 2], [-1, 1, 1, 1]),
        mask=[1, 0, 1, 0],
    ),
    "spread": Case(
        f"{LANES} %x = tir.load %B[%zero] : vector<4xf32> tir.store %x, %A[%j] mask %mask",
        [3, FAR, 7, -5],
        ([0, 1, 8, 2], [-1, 1, 1, 1]),
        mask=[1, 0, 1, 0],
    ),
    # Consecutive lanes from a position that is data: the last two are beyond the end, or the first one before it.
    "masked row": Case(
        f"""{LANES} %k0 = tir.load %I[%zero] %at = arith.index_cast %k0 : i64 to index
        %x = tir.load %A[%at] mask %mask : vector<4xf32> tir.store %x, %B[%zero]""",
        [6, 0, 0, 0],
        ([7, 0, 0, 0], [-1, 0, 0, 0], [FAR, 0, 0, 0]),
        mask=[1, 1, 0, 0],
    ),
    "steps": Case(
        f"""{LANES} %k0 = tir.load %I[%zero] %at = arith.index_cast %k0 : i64 to index %two = arith.constant 2 : index
        %r = tir.ramp %at by %two : vector<4xindex>
        %x = tir.load %A[%r] tir.store %x, %B[%zero]""",
        [1, 0, 0, 0],
        ([2, 0, 0, 0], [-1, 0, 0, 0], [FAR, 0, 0, 0]),
        mask=[1, 1, 1, 1],
    ),
    # Ends of a loop that are data.
    "rows": Case(
        """
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.subi %m, %one : index
  tir.for (%i) in (%last) {
    %k = tir.load %I[%i]
    %next = arith.addi %i, %one : index
    %l = tir.load %I[%next]
    %lo = arith.index_cast %k : i64 to index
    %hi = arith.index_cast %l : i64 to index
    tir.for (%p) in (%lo to %hi) {
      %x = tir.load %A[%p]
      %b = tir.load %B[%i]
      %s = arith.addf %x, %b : f32
      tir.store %s, %B[%i]
    }
  }""",
        [0, 3, 3, 8],
        ([0, 3, 3, 9], [-1, 3, 3, 8], [0, 3, FAR, FAR + 1]),
    ),
    "part": Case(
        f"""tir.for (%i) in (%m) {{ {LOAD}
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %end = arith.addi %j, %two : index
      %V = tir.match_buffer %A[%j to %end] : !tir.buffer<[2], f32, strides = [1]>
      %x = tir.load %V[%zero] tir.store %x, %B[%i] }}""",
        [6, 0, 1, 2],
        ([7, 0, 0, 0], [0, -1, 0, 0], [0, 0, FAR, 0]),
    ),
    "view": Case(
        f"""tir.for (%i) in (%m) {{ {LOAD}
      %zero = arith.constant 0 : index
      %V = tir.view %A at %j : !tir.buffer<[2], f32>
      %x = tir.load %V[%zero] tir.store %x, %B[%i] }}""",
        [6, 0, 1, 2],
        ([7, 0, 0, 0], [0, -1, 0, 0], [0, 0, FAR, 0]),
    ),
    "iterator": Case(
        f"""tir.for (%i) in (%m) {{ {LOAD}
      tir.block "b" (%v = spatial %i in %m, %w = opaque %j in %n) {{
        %x = tir.load %A[%w] tir.store %x, %B[%v] }} }}""",
        [3, 0, 7, 7],
        BAD,
    ),
    # Not data: positions under conditions that sizes do not tell, and ends that are not attained.
    "condition": Case(
        f"""tir.for (%i) in (%m) {{ {LOAD}
      %two = arith.constant 2 : index
      %three = arith.constant 3 : index
      %c = arith.cmpi slt, %i, %three : index
      tir.if %c {{
        %at = arith.muli %i, %two : index
        %far = arith.addi %at, %two : index
        %x = tir.load %A[%far] tir.store %x, %B[%i] }} }}""",
        [0, 0],
        ([0, 0, 0],),
        length=5,
    ),
    "guarded": Case(
        f"""tir.for (%i) in (%m) {{ {LOAD}
      %zero = arith.constant 0 : index
      %a = arith.cmpi sge, %j, %zero : index
      %b = arith.cmpi slt, %j, %n : index
      %c = arith.andi %a, %b : i1
      tir.if %c {{ {COPY} }} }}""",
        [8, -1, 3, FAR],
        (),
    ),
}


def _text(name: str, case: Case) -> str:
    mask = ", %M: !tir.buffer<[m], i1>" if case.mask else ""
    return f"tir.prim_func @{name.replace(' ', '_')}[%n, %m]({DATA}, {INDICES}, {RESULT}{mask}) {{ {case.body} }}"


@cache
def _functions(mode: str) -> Any:
    module = parse_module("\n".join(_text(name, case) for name, case in CASES.items()))
    if mode != "interpreter":
        return VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))
    return {op.sym_name.data: op for op in module.ops if isinstance(op, PrimFuncOp)}


def _run(name: str, mode: str, numbers: Sequence[int], *, at_end: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """What is in `A` and `B` afterwards, which lie next to pages that nobody may touch."""
    case = CASES[name]
    a, b = np.arange(1, case.length + 1, dtype=np.float32), np.arange(5, 5 + len(numbers), dtype=np.float32)
    arrays = [a, np.array(numbers, np.int64), b, *([np.array(case.mask, np.bool_)] if case.mask else [])]
    guarded: list[Any] = [Guarded(array, at_end) for array in arrays]
    given = [each.array for each in guarded]
    function = _functions(mode)[name.replace(" ", "_")]
    try:
        if mode == "interpreter":
            run_prim_func(function, given)
        else:
            function(*given)
        return given[0].copy(), given[2].copy()
    finally:
        del given, function
        for each in guarded:
            each.release()


MODES = ["native", "bytecode", "interpreter"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_places_inside_are_used(name: str):
    expected = _run(name, "interpreter", CASES[name].inside)
    for mode in MODES[:2]:
        for at_end in (True, False):
            got = _run(name, mode, CASES[name].inside, at_end=at_end)
            np.testing.assert_array_equal(np.concatenate(got), np.concatenate(expected))


@pytest.mark.parametrize("name", ["load", "store", "parallel"])
def test_many_places_are_checked_as_lanes_of_vectors(name: str):
    length = 2 * AT_ONCE + 5
    numbers = [number % 8 for number in range(length)]
    for at_end in (True, False):
        got, want = _run(name, "native", numbers, at_end=at_end), _run(name, "interpreter", numbers)
        np.testing.assert_array_equal(np.concatenate(got), np.concatenate(want))
    for place in (0, 1, AT_ONCE - 1, AT_ONCE, 2 * AT_ONCE - 1, 2 * AT_ONCE, length - 1):
        for number in (8, -1, FAR, -(1 << 63)):
            with pytest.raises(IndexError):
                _run(name, "native", [*numbers[:place], number, *numbers[place + 1 :]])


def test_one_branch_is_for_many_places():
    module = parse_module(_text("load", CASES["load"]))
    CheckAccessesPass().apply(Context(), module)
    text = str(lower_prim_funcs([op for op in module.ops if isinstance(op, PrimFuncOp)], LoweringOptions(256)))
    assert "llvm.vector.reduce.and.v32i1" in text
    assert "vector<32xi64>" in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_places_outside_are_refused(name: str, mode: str):
    for numbers in CASES[name].outside:
        for at_end in (True, False):
            with pytest.raises((IndexError, ValueError)) as error:
                _run(name, mode, numbers, at_end=at_end)
            # The interpreter has words of its own for views.
            assert isinstance(error.value, IndexError) or (name, mode) == ("view", "interpreter"), error.value


def _checked(name: str) -> PrimFuncOp:
    module = parse_module(_text(name, CASES[name]))
    CheckAccessesPass().apply(Context(), module)
    module.verify()
    once = str(module)
    CheckAccessesPass().apply(Context(), module)
    assert str(module) == once
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func


@pytest.mark.parametrize("name", CASES)
def test_checks_are_made_once(name: str):
    assert any(isinstance(op, AssertOp) for op in _checked(name).walk()) or name == "guarded"


@pytest.mark.parametrize("name", ["load", "store", "parallel", "rows", "condition"])
def test_checks_come_in_front_of_loops_that_stay_free_of_them(name: str):
    *checks, loops = (op for op in _checked(name).body.block.ops if isinstance(op, ForOp))
    assert all(any(isinstance(op, AssertOp) for op in each.walk()) for each in checks)
    assert not any(isinstance(op, AssertOp) for op in loops.walk())
    # Of the first, unless a loop inside ends at data, several turns are lanes of vectors; the second is the rest.
    kinds = [op.kind.data for op in checks[0].walk() if isinstance(op, ForOp)]
    assert len(checks) == (1 if name == "rows" else 2)
    assert (kinds[-1] is LoopKind.VECTORIZED) == (name != "rows")


@pytest.mark.parametrize("name", ["changing", "while", "vectors", "part"])
def test_other_checks_stay_where_places_are_used(name: str):
    (loop,) = [op for op in _checked(name).body.block.ops if isinstance(op, ForOp | WhileOp)] or [None]
    where = _checked(name) if loop is None else loop
    assert any(isinstance(op, AssertOp) for op in where.walk())
