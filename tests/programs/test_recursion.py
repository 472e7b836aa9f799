"""Recursion and loops in every mode: mutual, in loops, through dataflow regions, deep, and too deep."""

from collections.abc import Callable

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from tests.support.programs import MODES, run_everywhere, runner
from vm_dialect import VirtualMachine

NUMBER = "!relax.tensor<[], i64>"
EACH_MODE = pytest.mark.parametrize("mode", MODES)
SLOW_BUT_NATIVE = pytest.mark.parametrize(
    "mode", [mode if mode == "native" else pytest.param(mode, marks=pytest.mark.slow) for mode in MODES]
)
"""For what takes machine code milliseconds and the others seconds."""


def constant(name: str, value: int) -> str:
    return f"%{name} = relax.constant dense<{value}> : tensor<i64>"


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


PARITY = f"""
relax.func @even(%n: {NUMBER}) -> !relax.prim<i1> {{
  {constant("zero", 0)}
  {constant("one", 1)}
  %done = relax.equal %n, %zero
  %r = relax.if %done {{
    %yes = relax.prim i1 true
    relax.yield %yes
  }} else {{
    %less = relax.subtract %n, %one
    %0 = relax.call @odd(%less) : !relax.prim<i1>
    relax.yield %0
  }}
  relax.return %r
}}
relax.func @odd(%n: {NUMBER}) -> !relax.prim<i1> {{
  {constant("zero", 0)}
  {constant("one", 1)}
  %done = relax.equal %n, %zero
  %r = relax.if %done {{
    %no = relax.prim i1 false
    relax.yield %no
  }} else {{
    %less = relax.subtract %n, %one
    %0 = relax.call @even(%less) : !relax.prim<i1>
    relax.yield %0
  }}
  relax.return %r
}}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_mutual_recursion(count: int):
    assert run_everywhere(PARITY, "even", [number(count)]) is (count % 2 == 0)
    assert run_everywhere(PARITY, "odd", [number(count)]) is (count % 2 == 1)


@SLOW_BUT_NATIVE
def test_tail_calls_of_each_other_100_000_deep(mode: str):
    assert runner(parse_module(PARITY), "even", mode)(number(100_000)) is True


SUM = f"""
relax.func @total(%n: {NUMBER}) -> {NUMBER} {{
  {constant("zero", 0)}
  {constant("one", 1)}
  %done = relax.equal %n, %zero
  %r = relax.if %done {{
    relax.yield %zero
  }} else {{
    %less = relax.subtract %n, %one
    %0 = relax.call @total(%less) : {NUMBER}
    %1 = relax.add %0, %n
    relax.yield %1
  }}
  relax.return %r
}}
relax.func @forever(%n: {NUMBER}) -> {NUMBER} {{
  %0 = relax.call @forever(%n) : {NUMBER}
  %1 = relax.add %0, %n
  relax.return %1
}}
relax.func @count(%n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
  {constant("zero", 0)}
  {constant("one", 1)}
  %done = relax.equal %n, %zero
  %r = relax.if %done {{
    relax.yield %acc
  }} else {{
    %less = relax.subtract %n, %one
    %more = relax.add %acc, %n
    %0 = relax.call @count(%less, %more) : {NUMBER}
    relax.yield %0
  }}
  relax.return %r
}}
relax.func @iterate(%n: !relax.prim<i64>, %x: {NUMBER}) -> {NUMBER} {{
  %begin = relax.prim 0
  %r = relax.for %i = %begin to %n (%acc: {NUMBER} = %x) {{
    %0 = relax.add %acc, %x
    relax.yield %0
  }}
  relax.return %r
}}
relax.func @in_loop(%n: !relax.prim<i64>, %x: {NUMBER}) -> {NUMBER} {{
  %begin = relax.prim 0
  %r = relax.for %i = %begin to %n (%acc: {NUMBER} = %x) {{
    %0 = relax.call @total(%acc) : {NUMBER}
    relax.yield %0
  }}
  relax.return %r
}}
"""


@EACH_MODE
def test_recursion_that_is_not_in_tail_position(mode: str):
    assert runner(parse_module(SUM), "total", mode)(number(200)) == 20_100


@EACH_MODE
def test_recursion_in_a_loop(mode: str):
    assert runner(parse_module(SUM), "in_loop", mode)(2, number(3)) == 21


@pytest.mark.sampled(2)
@EACH_MODE
def test_recursion_without_end(mode: str):
    module = parse_module(SUM)
    if mode == "bytecode":  # a million calls are the limit otherwise
        run = VirtualMachine(build(module, mode="bytecode"), max_depth=10_000)["forever"]
    else:
        run = runner(module, "forever", mode)
    for _ in range(2):  # nothing is left behind by the first
        with pytest.raises(RecursionError, match=r"forever: more than \d+ calls inside each other: turn the recursion"):
            run(number(1))


@pytest.mark.sampled(2)
@EACH_MODE
def test_tail_recursion(mode: str):
    assert runner(parse_module(SUM), "count", mode)(number(5_000), number(0)) == 12_502_500


@SLOW_BUT_NATIVE
def test_tail_recursion_100_000_deep(mode: str):
    assert runner(parse_module(SUM), "count", mode)(number(100_000), number(0)) == 5_000_050_000


@SLOW_BUT_NATIVE
def test_a_million_iterations(mode: str):
    assert runner(parse_module(SUM), "iterate", mode)(1_000_000, number(1)) == 1_000_001


LOCAL = f"""
relax.func @main(%n: {NUMBER}, %x: {NUMBER}) -> {NUMBER} {{
  %power = relax.closure rec %self(%k: {NUMBER}) -> {NUMBER} {{
    {constant("zero", 0)}
    {constant("one", 1)}
    %done = relax.equal %k, %zero
    %r = relax.if %done {{
      relax.yield %one
    }} else {{
      %less = relax.subtract %k, %one
      %0 = relax.call_closure %self(%less)
      %1 = relax.multiply %0, %x
      relax.yield %1
    }}
    relax.return %r
  }}
  %y = relax.call_closure %power(%n)
  relax.return %y
}}
"""


def test_a_local_function_that_calls_itself():
    assert run_everywhere(LOCAL, "main", [number(5), number(3)]) == 243


DATAFLOW = f"""
relax.func @main(%n: {NUMBER}) -> {NUMBER} {{
  {constant("zero", 0)}
  {constant("one", 1)}
  %step = relax.dataflow {{
    %f = relax.closure (%k: {NUMBER}) -> {NUMBER} {{
      %0 = relax.call @main(%k) : {NUMBER}
      relax.return %0
    }}
    relax.output %f
  }}
  %done = relax.equal %n, %zero
  %r = relax.if %done {{
    relax.yield %zero
  }} else {{
    %less = relax.subtract %n, %one
    %0 = relax.call_closure %step(%less)
    %1 = relax.add %0, %n
    relax.yield %1
  }}
  relax.return %r
}}
"""


def test_a_closure_of_a_dataflow_region_calls_its_function_by_name():
    assert run_everywhere(DATAFLOW, "main", [number(4)]) == 10


GROWING = """
relax.func @main[%n](%x: !relax.tensor<[n], i64>, %k: !relax.tensor<[], i64>) -> !relax.object {
  %zero = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %done = relax.equal %k, %zero
  %r = relax.if %done {
    relax.yield %x
  } else {
    %less = relax.subtract %k, %one
    %y = relax.concat %x, %x axis = 0
    %0 = relax.call @main(%y, %less) : !relax.object
    relax.yield %0
  } : !relax.object
  relax.return %r
}
"""


@EACH_MODE
def test_shapes_that_grow_from_call_to_call(mode: str):
    run: Callable[..., object] = runner(parse_module(GROWING), "main", mode)
    np.testing.assert_array_equal(run(np.arange(3), number(3)), np.tile(np.arange(3), 8))
