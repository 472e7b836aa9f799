"""Calls in tail position, of function values above all: they nest in no mode, and results are checked all the same."""

from functools import cache

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from tests.support.programs import MODES, as_arguments, as_plain, runner
from vm_dialect import VirtualMachine

NUMBER = "!relax.tensor<[], i64>"
ANY = f"!relax.func<* -> {NUMBER}, pure>"
BOTH = f"!relax.tuple<{ANY}, {ANY}>"
EACH_MODE = pytest.mark.parametrize("mode", MODES)
DEPTH = {"interpret": 2_100, "bytecode": 2_100, "native": 100_000}
"""More than may be inside each other where frames are counted; only machine code takes no time for it."""


def counting_down(end: str, call: str) -> str:
    """A body that returns `end` when `%n` is 0, else what `call` makes of `%less` and `%more`."""
    return f"""
      %zero = relax.constant dense<0> : tensor<i64>
      %one = relax.constant dense<1> : tensor<i64>
      %done = relax.equal %n, %zero
      %r = relax.if %done {{
        relax.yield {end}
      }} else {{
        %less = relax.subtract %n, %one
        %more = relax.add %acc, %n
        {call}
        relax.yield %0
      }}
      relax.return %r
    """


PROGRAM = f"""
relax.func @argument(%count: {NUMBER}) -> {NUMBER} {{
  %f = relax.closure (%self: {ANY}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
    {counting_down("%acc", "%0 = relax.call_closure %self(%self, %less, %more)")}
  }}
  %y = relax.call_closure %f(%f, %count, %count)
  relax.return %y
}}
relax.func @each_other(%count: {NUMBER}) -> {NUMBER} {{
  %f = relax.closure (%both: {BOTH}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
    %other = relax.tuple_get %both[1]
    {counting_down("%acc", "%0 = relax.call_closure %other(%both, %less, %more)")}
  }}
  %g = relax.closure (%both: {BOTH}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
    %other = relax.tuple_get %both[0]
    {counting_down("%acc", "%0 = relax.call_closure %other(%both, %less, %more)")}
  }}
  %both = relax.tuple(%f, %g)
  %y = relax.call_closure %f(%both, %count, %count)
  relax.return %y
}}
relax.func private @step(%f: {ANY}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
  {counting_down("%acc", f"%0 = relax.call @apply(%f, %less, %more) : {NUMBER}")}
}}
relax.func private @apply(%f: {ANY}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
  %0 = relax.call_closure %f(%f, %n, %acc)
  relax.return %0
}}
relax.func @by_name_and_by_value(%count: {NUMBER}) -> {NUMBER} {{
  %f = relax.make_closure @step() : !relax.func<({ANY}, {NUMBER}, {NUMBER}) -> {NUMBER}, pure>
  %y = relax.call @apply(%f, %count, %count) : {NUMBER}
  relax.return %y
}}
relax.func private @with_three(%n: {NUMBER}, %acc: {NUMBER}, %x: {NUMBER}) -> {NUMBER} {{
  {counting_down("%acc", f"%0 = relax.call @with_five(%x, %x, %less, %more, %x) : {NUMBER}")}
}}
relax.func private @with_five(%x: {NUMBER}, %y: {NUMBER}, %n: {NUMBER}, %acc: {NUMBER}, %z: {NUMBER}) -> {NUMBER} {{
  {counting_down("%acc", f"%0 = relax.call @with_three(%less, %more, %y) : {NUMBER}")}
}}
relax.func @more_and_fewer_arguments(%count: {NUMBER}) -> {NUMBER} {{
  %y = relax.call @with_three(%count, %count, %count) : {NUMBER}
  relax.return %y
}}
relax.func @wrong_result(%count: {NUMBER}) -> !relax.object {{
  %f = relax.closure (%self: {ANY}, %n: {NUMBER}, %acc: {NUMBER}) -> !relax.object {{
    %1 = relax.tuple(%n, %acc)
    relax.return %1
  }}
  %g = relax.closure (%last: {ANY}, %n: {NUMBER}, %acc: {NUMBER}) -> {NUMBER} {{
    %0 = relax.call_closure %last(%last, %n, %acc)
    relax.return %0
  }}
  %fs = relax.tuple(%f, %g)
  %y = relax.call @second(%fs, %count) : !relax.object
  relax.return %y
}}
relax.func private @second(%fs: {BOTH}, %n: {NUMBER}) -> {NUMBER} {{
  %f = relax.tuple_get %fs[0]
  %g = relax.tuple_get %fs[1]
  %y = relax.call_closure %g(%f, %n, %n)
  relax.return %y
}}
relax.func @endless(%count: {NUMBER}) -> {NUMBER} {{
  %f = relax.closure (%self: {ANY}, %n: {NUMBER}) -> {NUMBER} {{
    %0 = relax.call_closure %self(%self, %n)
    %1 = relax.add %0, %n
    relax.return %1
  }}
  %y = relax.call_closure %f(%f, %count)
  relax.return %y
}}
"""


@cache
def machines() -> dict[str, VirtualMachine]:
    """The program in the compiled modes."""
    module = parse_module(PROGRAM)
    return {mode: VirtualMachine(build(module.clone(), mode=mode)) for mode in ("bytecode", "native")}


def run(mode: str, entry: str, count: int) -> object:
    """What a function of the program returns."""
    if mode == "interpret":
        return runner(parse_module(PROGRAM), entry, mode)(np.array(count))
    return as_plain(machines()[mode][entry](*as_arguments([np.array(count)])))


@pytest.mark.sampled(4)
@EACH_MODE
@pytest.mark.parametrize("entry", ["argument", "each_other", "by_name_and_by_value", "more_and_fewer_arguments"])
def test_calls_in_tail_position(mode: str, entry: str):
    depth = DEPTH[mode]
    assert run(mode, entry, depth) == depth * (depth + 3) // 2


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_calls_between_programs_nest(mode: str):
    """Each program sees a function of the other as any packed function, which returns before the caller does."""
    text = f"""
relax.func @turn(%other: {ANY}, %n: {NUMBER}) -> {NUMBER} {{
  %me = relax.make_closure @turn() : !relax.func<({ANY}, {NUMBER}) -> {NUMBER}, pure>
  {counting_down("%n", "%0 = relax.call_closure %other(%me, %less)").replace("%acc", "%n")}
}}
"""
    one, another = (VirtualMachine(build(parse_module(text), mode=mode))["turn"] for _ in range(2))
    assert as_plain(one(another, *as_arguments([np.array(20)]))) == 0
    with pytest.raises(RecursionError, match=r"no stack is left|maximum recursion depth"):
        one(another, *as_arguments([np.array(1_000_000)]))


@EACH_MODE
def test_what_the_last_function_returns_is_checked(mode: str):
    with pytest.raises(TypeError, match=r"result of a closure.*: expected a tensor, got tuple"):
        run(mode, "wrong_result", 1)


@pytest.mark.parametrize("mode", ["interpret", "native"])
def test_function_values_that_nest_without_end(mode: str):
    with pytest.raises(
        RecursionError, match=r"more than \d+ calls inside each other: turn the recursion into a loop or"
    ):
        run(mode, "endless", 1)
