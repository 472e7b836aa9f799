"""What one core of the machine can do at most: fused multiply-adds in registers, counted by a loop of them."""

from __future__ import annotations

import ctypes
from functools import cache

from benchmarks.timing import time_in_turns
from lowering.llvm.compiler import compile_object
from lowering.llvm.loading.loader import LoadedCode, load_objects
from tir_dialect.target import Target

SUMS = 12
TURNS = 20_000
ROUNDS = 10

_found: list[float] = []
"""What it was each time."""


def peak() -> float:
    """Floating-point operations in f32 per second on one thread, two for a multiply-add: the most found so far.

    Other programs disturb the processor for seconds at a time, so each call measures anew.
    """
    lanes = Target.host().lanes(32)
    code = _code(lanes)
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(code.address("spin"))
    seconds = time_in_turns({"peak": lambda: function(TURNS)}, ROUNDS, min, 0.002)["peak"]
    _found.append(2 * SUMS * lanes * TURNS / seconds)
    return max(_found)


@cache
def _code(lanes: int) -> LoadedCode:
    kind = f"<{lanes} x float>"
    names = range(SUMS)
    phis = "\n".join(f"  %s{i} = phi {kind} [ %x{i}, %entry ], [ %t{i}, %loop ]" for i in names)
    starts = "\n".join(f"  %x{i} = fadd {kind} %w, splat (float {i}.0)" for i in names)
    steps = "\n".join(f"  %t{i} = call {kind} @fma({kind} %s{i}, {kind} %w, {kind} %w)" for i in names)
    total = "\n".join(f"  %u{i} = fadd {kind} %{f'u{i - 1}' if i else 'w'}, %t{i}" for i in names)
    text = f"""
declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})
define float @spin(i64 %n) {{
entry:
  %f = sitofp i64 %n to float
  %one = insertelement {kind} poison, float %f, i64 0
  %w = shufflevector {kind} %one, {kind} poison, <{lanes} x i32> zeroinitializer
{starts}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{total}
  %r = extractelement {kind} %u{SUMS - 1}, i64 0
  ret float %r
}}""".replace("@fma(", f"@llvm.fma.v{lanes}f32(")
    return load_objects([compile_object(text, Target.host())])
