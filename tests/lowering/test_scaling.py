"""What passes do grows with a program as the program does: calls of Python functions are counted, not seconds."""

import gc
from cProfile import Profile

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.pipelines import RelaxToVMPass
from relax_dialect.builder import BlockBuilder, op

FEW, TIMES = 20, 4
MOST_GROWTH = 1.3
"""Beyond that of the program: what is sorted may take a bit more."""
LEAST_CALLS = 20_000
"""With fewer a pass takes some milliseconds, however it grows."""


def layers(count: int) -> ModuleOp:
    """One after the other, results in place of operands."""
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 16), "w": (16, 16), "b": (16,)}) as (x, w, b):
        for _ in range(count):
            x = op.exp(op.nn.relu(x @ w + b)) + x
            x = op.nn.softmax(x, axis=1) - op.mean(x, [1], keepdims=True)
        bb.emit_func_output(x)
    return bb.get()


def heads(count: int) -> ModuleOp:
    """Side by side, joined at the end."""
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 16), "w": (16, 16)}) as (x, w):
        parts = [op.sin(x * float(each)) @ w for each in range(count)]
        bb.emit_func_output(tuple(op.exp(part) for part in parts))
    return bb.get()


def functions(count: int) -> ModuleOp:
    """Each with symbols of its own."""
    bb = BlockBuilder()
    for each in range(count):
        with bb.function(f"f{each}", {"x": ("n", 16), "y": ("n", 1)}) as (x, y):
            bb.emit_func_output(op.sum(op.exp(x) + y, [0]))
    return bb.get()


def calls_by_pass(module: ModuleOp) -> dict[str, int]:
    """How many functions each pass of the pipeline calls."""
    found: dict[str, int] = {}
    profile = Profile()

    def after(name: str) -> None:
        nonlocal profile
        profile.disable()
        found[name] = found.get(name, 0) + sum(entry.callcount for entry in profile.getstats())
        profile = Profile()
        profile.enable()

    gc.disable()  # it calls what is to be finalised
    profile.enable()
    try:
        RelaxToVMPass.run(Context(), module, after=after)
    finally:
        profile.disable()
        gc.enable()
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", [layers, heads, functions])
def test_passes_are_linear(program: object):
    assert callable(program)
    calls_by_pass(program(FEW))  # what is done once
    few, many = calls_by_pass(program(FEW)), calls_by_pass(program(FEW * TIMES))
    growth = {name: count / few[name] / TIMES for name, count in many.items() if count > LEAST_CALLS}
    assert growth
    assert {name: round(each, 2) for name, each in growth.items() if each > MOST_GROWTH} == {}
