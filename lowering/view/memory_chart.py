"""The plan of a function's memory over time, as SVG: a rectangle for each tensor, its life across, its bytes up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from xdsl.ir import Operation

from lowering.relax.memory.plan import aligned, lifetimes
from lowering.relax.memory.plan_memory import tensor_bytes
from lowering.view.graph import short_type
from relax_dialect.ops.memory import AllocStorageOp, StorageTensorOp
from relax_dialect.ops.structure import FuncOp
from tir_dialect.dims import Dim

ASSUMED = 64
"""The value of a symbol that none is given for."""

WIDTH, HEIGHT, MARGIN = 900, 320, 70
"""Of the chart, in pixels."""

_COLOURS = ("#8ab4f8", "#81c995", "#fdd663", "#f28b82", "#c58af9", "#78d9ec", "#fcad70", "#ff8bcb")


@dataclass(frozen=True)
class Life:
    """A tensor in an arena."""

    name: str
    start: int
    """The step of the program that makes it."""
    end: int
    """The last step that needs it."""
    offset: int
    size: int
    """Bytes."""


def lives_of(func: FuncOp, sizes: Mapping[str, int]) -> list[Life]:
    """The tensors in the arenas of a function whose memory is planned, at given values of symbols."""
    facts = lifetimes(func.body)
    base, found, total = dict[Operation, int](), list[Life](), 0
    for op in func.walk():
        if isinstance(op, AllocStorageOp):
            base[op] = total
            total += _value(op.size.data, sizes)
        elif isinstance(op, StorageTensorOp):
            start, end = facts.steps[op], facts.last_use(op.result)
            owner = op.storage.owner
            offset = (base[owner] if isinstance(owner, AllocStorageOp) else 0) + _value(op.offset.data, sizes)
            size = _value(aligned(tensor_bytes(op.result.type)), sizes)
            name = f"%{op.result.name_hint or len(found)} : {short_type(op.result)}"
            found.append(Life(name, start, end, offset, size))
    return found


def _value(dim: Dim, sizes: Mapping[str, int]) -> int:
    return dim.evaluate({name: sizes.get(name, ASSUMED) for name in dim.symbols})


def chart_of(lives: Iterable[Life]) -> str:
    """The chart; empty if there is no tensor."""
    every = [life for life in lives if life.size]
    if not every:
        return ""
    first, last = min(life.start for life in every), max(life.end for life in every) + 1
    top = max(life.offset + life.size for life in every)
    across, up = (WIDTH - MARGIN) / (last - first), HEIGHT / top
    shapes = [
        f'<rect x="{MARGIN + (life.start - first) * across:.1f}" y="{HEIGHT - (life.offset + life.size) * up:.1f}" '
        f'width="{(life.end + 1 - life.start) * across:.1f}" height="{life.size * up:.1f}" '
        f'fill="{_COLOURS[number % len(_COLOURS)]}" stroke="#3c4043" stroke-width="0.5">'
        f"<title>{escape(life.name)}\n{life.size:,} bytes at {life.offset:,}\n"
        f"steps {life.start} to {life.end}</title></rect>"
        for number, life in enumerate(every)
    ]
    labels = [
        f'<text x="{MARGIN - 6}" y="12" text-anchor="end">{top:,} B</text>',
        f'<text x="{MARGIN - 6}" y="{HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{MARGIN}" y="{HEIGHT + 16}">step {first}</text>',
        f'<text x="{WIDTH}" y="{HEIGHT + 16}" text-anchor="end">step {last - 1}</text>',
    ]
    size = f'width="{WIDTH}" height="{HEIGHT + 24}" viewBox="0 0 {WIDTH} {HEIGHT + 24}"'
    font = 'font-family="Helvetica" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{"".join((*shapes, *labels))}</svg>'
