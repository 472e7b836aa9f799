"""The pattern of each kind of function."""

import pytest

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.patterns import OpPattern, op_pattern

A, B, C = "%A: !tir.buffer<[n, m], f32>", "%B: !tir.buffer<[n, m], f32>", "%C: !tir.buffer<[n, m], f32>"
ROW, COLUMN = "%R: !tir.buffer<[m], f32>", "%K: !tir.buffer<[n, 1], f32>"
SUM = "%S: !tir.buffer<[n], f32>"

PRELUDE = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
"""


def func(params, body, flags=""):
    return parse_prim_func(f"tir.prim_func @f[%n, %m]({', '.join(params)}) {flags} {{ {PRELUDE} {body} }}")


def spatial(body, name="b"):
    return f"""
  tir.for (%i, %j) in (%n, %m) {{
    tir.block "{name}" (%vi = spatial %i in %n, %vj = spatial %j in %m) {{ {body} }}
  }}
"""


def reduction(body, target="%S"):
    return f"""
  tir.for (%i, %j) in (%n, %m) {{
    tir.block "r" (%vi = spatial %i in %n, %vj = reduce %j in %m) {{
      tir.init {{ tir.store %zero, {target}[%vi] }}
      %acc = tir.load {target}[%vi]
      {body}
      tir.store %v, {target}[%vi]
    }}
  }}
"""


EXP = spatial("%a = tir.load %A[%vi, %vj] %v = math.exp %a : f32 tir.store %v, %C[%vi, %vj]")
ADD = "%v = arith.addf %a, %b : f32 tir.store %v, %C[%vi, %vj]"
ROW_SUM = reduction("%a = tir.load %A[%vi, %vj] %v = arith.addf %acc, %a : f32")
DIVIDE = spatial(
    "%a = tir.load %A[%vi, %vj] %s = tir.load %S[%vi] %v = arith.divf %a, %s : f32 tir.store %v, %C[%vi, %vj]"
)
LOCAL_SUM = "%S = tir.alloc_buffer : !tir.buffer<[n], f32>"

CASES = {
    "elementwise": ([A, C], EXP, OpPattern.ELEMENTWISE),
    "elementwise-of-two": (
        [A, B, C],
        spatial(f"%a = tir.load %A[%vi, %vj] %b = tir.load %B[%vi, %vj] {ADD}"),
        OpPattern.ELEMENTWISE,
    ),
    "elementwise-and-broadcast": (
        [A, ROW, C],
        spatial(f"%a = tir.load %A[%vi, %vj] %b = tir.load %R[%vj] {ADD}"),
        OpPattern.ELEMENTWISE,
    ),
    "fill": ([C], spatial("tir.store %zero, %C[%vi, %vj]"), OpPattern.ELEMENTWISE),
    "in-place": (
        [C],
        spatial("%c = tir.load %C[%vi, %vj] %v = arith.negf %c : f32 tir.store %v, %C[%vi, %vj]"),
        OpPattern.ELEMENTWISE,
    ),
    "broadcast": ([ROW, C], spatial("%v = tir.load %R[%vj] tir.store %v, %C[%vi, %vj]"), OpPattern.BROADCAST),
    "broadcast-of-a-column": (
        [COLUMN, C],
        spatial("%v = tir.load %K[%vi, %c0] tir.store %v, %C[%vi, %vj]"),
        OpPattern.BROADCAST,
    ),
    "transpose": (
        ["%A: !tir.buffer<[m, n], f32>", C],
        spatial("%v = tir.load %A[%vj, %vi] tir.store %v, %C[%vi, %vj]"),
        OpPattern.INJECTIVE,
    ),
    "slice": (
        ["%A: !tir.buffer<[n + 1, m], f32>", C],
        spatial("%k = arith.addi %vi, %c1 : index %v = tir.load %A[%k, %vj] tir.store %v, %C[%vi, %vj]"),
        OpPattern.INJECTIVE,
    ),
    "take": (
        ["%I: !tir.buffer<[n], i64>", A, C],
        spatial(
            "%q = tir.load %I[%vi] %k = arith.index_cast %q : i64 to index "
            "%v = tir.load %A[%k, %vj] tir.store %v, %C[%vi, %vj]"
        ),
        OpPattern.INJECTIVE,
    ),
    "pad": (
        [A, C],
        spatial(
            """
      %k = arith.subi %vj, %c1 : index
      %low = arith.cmpi sge, %k, %c0 : index
      %v = tir.if %low -> (f32) { %a = tir.load %A[%vi, %k] tir.yield %a } else { tir.yield %zero }
      tir.store %v, %C[%vi, %vj]
    """
        ),
        OpPattern.INJECTIVE,
    ),
    "sum": ([A, SUM], ROW_SUM, OpPattern.REDUCTION),
    "sum-of-squares": (
        [A, SUM],
        reduction(
            "%a = tir.load %A[%vi, %vj] %b = tir.load %A[%vi, %vj] "
            "%p = arith.mulf %a, %b : f32 %v = arith.addf %acc, %p : f32"
        ),
        OpPattern.REDUCTION,
    ),
    "map-then-sum": (
        [B, SUM],
        "%C = tir.alloc_buffer : !tir.buffer<[n, m], f32>" + EXP.replace("%A", "%B") + ROW_SUM.replace("%A", "%C"),
        OpPattern.REDUCTION,
    ),
    "product": (
        [A, ROW, SUM],
        reduction(
            "%a = tir.load %A[%vi, %vj] %b = tir.load %R[%vj] "
            "%p = arith.mulf %a, %b : f32 %v = arith.addf %p, %acc : f32"
        ),
        OpPattern.OUT_ELEMENTWISE_FUSABLE,
    ),
    "product-in-wider-type": (
        ["%A: !tir.buffer<[n, m], f16>", "%R: !tir.buffer<[m], f16>", SUM],
        reduction(
            "%a = tir.load %A[%vi, %vj] %b = tir.load %R[%vj] %x = arith.extf %a : f16 to f32 "
            "%y = arith.extf %b : f16 to f32 %v = math.fma %x, %y, %acc : f32"
        ),
        OpPattern.OUT_ELEMENTWISE_FUSABLE,
    ),
    "normalise": ([A, C], LOCAL_SUM + ROW_SUM + DIVIDE, OpPattern.OUT_ELEMENTWISE_FUSABLE),
    "loops-without-blocks": (
        [A, C],
        "tir.for (%i, %j) in (%n, %m) { %v = tir.load %A[%i, %j] tir.store %v, %C[%i, %j] }",
        OpPattern.ELEMENTWISE,
    ),
    "reduction-without-blocks": (
        [A, SUM],
        """tir.for (%i, %j) in (%n, %m) {
             %a = tir.load %A[%i, %j] %s = tir.load %S[%i] %v = arith.addf %s, %a : f32 tir.store %v, %S[%i]
           }""",
        OpPattern.REDUCTION,
    ),
    "call": ([A], 'tir.call_packed "sort"(%A)', OpPattern.OPAQUE),
    "pure-call": (
        [A, C],
        EXP.replace("math.exp %a : f32", 'tir.call_extern pure "erff"(%a) : f32'),
        OpPattern.ELEMENTWISE,
    ),
    "scan": (
        [ROW],
        'tir.for (%j) in (%m) { tir.block "scan" (%vj = scan %j in %m) { tir.store %zero, %R[%vj] } }',
        OpPattern.OPAQUE,
    ),
    "scatter": (
        ["%I: !tir.buffer<[n, m], i64>", ROW],
        spatial("%q = tir.load %I[%vi, %vj] %k = arith.index_cast %q : i64 to index tir.store %zero, %R[%k]"),
        OpPattern.OPAQUE,
    ),
    "stencil-in-place": (
        ["%A: !tir.buffer<[n + 1, m], f32>"],
        spatial("%k = arith.addi %vi, %c1 : index %v = tir.load %A[%k, %vj] tir.store %v, %A[%vi, %vj]"),
        OpPattern.OPAQUE,
    ),
    "diagonal": (
        [ROW, "%D: !tir.buffer<[m, m], f32>"],
        'tir.for (%j) in (%m) { tir.block "d" (%v = spatial %j in %m) '
        "{ %r = tir.load %R[%v] tir.store %r, %D[%v, %v] } }",
        OpPattern.OPAQUE,
    ),
    "nothing": ([A], "", OpPattern.OPAQUE),
}


@pytest.mark.parametrize("case", CASES)
def test_pattern(case):
    params, body, expected = CASES[case]
    assert op_pattern(func(params, body)) is expected


def test_functions_whose_buffers_may_overlap_are_opaque():
    assert op_pattern(func([A, C], EXP, "may_alias")) is OpPattern.OPAQUE
