"""Programs as text whose bodies tests fill in."""

from __future__ import annotations

from tests.support.tir import parse_prim_func
from tir_dialect.schedule import Schedule

NEST = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[n, m], i32>, %T: !tir.buffer<[m], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = tir.dim n + 1
  %rest = tir.dim n - m
  %zero = arith.constant 0 : i32
  {body}
}}
"""


def nest(body: str) -> Schedule:
    """Over two axes."""
    return Schedule(parse_prim_func(NEST.format(body=body)))


def block(name: str, body: str, *iterators: str) -> str:
    """A block with spatial iterators: `"%i %n"` is `%vi`, bound to `%i`, below `%n`."""
    bound = ", ".join(f"%v{each[1:]} = spatial {each} in {extent}" for each, extent in map(str.split, iterators))
    return f'tir.block "{name}" ({bound}) {{ {body} }}'


LINES = """
tir.prim_func @f[%n](
  %X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>, %M: !tir.buffer<[n], i1>, %K: !tir.buffer<[n], i64>
) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  {body}
}}
"""


def lines(body: str) -> Schedule:
    """Over one axis, with a temporary, a mask and indices."""
    return Schedule(parse_prim_func(LINES.format(body=body)))


def loop(body: str, name: str = "i") -> str:
    """A loop over the axis."""
    return f"tir.for (%{name}) in (%n) {{ {body} }}"


SET = block("T", "%x = tir.load %X[%vi] tir.store %x, %T[%vi]", "%i %n")
GET = block("Y", "%t = tir.load %T[%vj] tir.store %t, %Y[%vj]", "%j %n")
UPDATE = "%t = tir.load %T[%vi] %x = tir.load %X[%vr] %s = arith.addi %t, %x : i32 tir.store %s, %T[%vi]"
SUM_BLOCK = f"""tir.block "T" (%vi = spatial %i in %n, %vr = reduce %r in %n) WHERE {{
  tir.init {{ tir.store %zero, %T[%vi] }}
  {UPDATE}
}}"""


def sums(range: str = "%n", where: str = "", before: str = "", name: str = "T") -> str:
    """`T[i] += X[r]` from 0 on, for all `r` of a range, under a condition, after other statements."""
    inner = SUM_BLOCK.replace("WHERE", where).replace('"T"', f'"{name}"')
    return loop(f"{before} tir.for (%r) in ({range}) {{ {inner} }}")
