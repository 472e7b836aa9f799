"""The loop nest of a kernel as nested boxes, in HTML: loops with their tiles of the buffers, blocks, and the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.view.graph import short_name
from tir_dialect.analysis.regions import Region, tile_of
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp

_NUMBER = re.compile(r"\$\d+")
"""What tells symbols of loop variables of one name apart."""


def nest_of(func: Operation) -> str:
    """The boxes of a function: loops and blocks, and the code in them."""
    return f'<div class="nest">{"".join(_body(func))}</div>'


def _body(op: Operation) -> Iterator[str]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if any(each.blocks for each in inner.regions):
                    title, kind = _title(inner)
                    tile = _tile(inner) if isinstance(inner, ForOp) else ""
                    yield f'<div class="box {kind}"><b>{escape(title)}</b>{tile}{"".join(_body(inner))}</div>'
                else:
                    yield f"<code>{escape(str(inner))}</code>"


def _tile(loop: ForOp) -> str:
    """What one round of a loop touches: its tile of each buffer, in a line that opens."""
    reads, writes = tile_of(loop)
    lines = [
        f"{what} {_NUMBER.sub('', str(region))}"
        for what, regions in (("reads", reads), ("writes", writes))
        for region in regions
    ]
    if not lines:
        return ""
    shapes = dict.fromkeys(f"%{each.buffer.name_hint or '?'} {_extents(each)}" for each in (*reads, *writes))
    code = "".join(f"<code>{escape(line)}</code>" for line in lines)
    return f'<details class="tile"><summary>a round: {escape(", ".join(shapes))}</summary>{code}</details>'


def _extents(region: Region) -> str:
    return " x ".join(str(axis.extent) for axis in region.axes) or "1"


def _title(op: Operation) -> tuple[str, str]:
    """What is above a box, and its class of style."""
    match op:
        case ForOp():
            kind = op.kind.data.value
            lower = "" if op.lower is None else f"{_name(op.lower)} to "
            said = "" if kind == "serial" else f" {kind}"
            return f"for %{op.induction_var.name_hint or ''} in {lower}{_name(op.upper)}{said}", f"loop {kind}"
        case BlockOp():
            iterators = ", ".join(
                f"{each.kind.value} {_name(each.value)} in {_name(each.extent)}" for each in op.iterators
            )
            return f"block {op.block_name.data} ({iterators})", "block"
        case _:
            return short_name(op), "region"


def _name(value: SSAValue) -> str:
    """How a value is called; a constant by its number."""
    if isinstance(value.owner, ConstantOp) and isinstance(value.owner.value, IntegerAttr):
        return str(value.owner.value.value.data)
    return f"%{value.name_hint or '?'}"
