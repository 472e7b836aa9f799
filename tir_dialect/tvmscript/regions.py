"""The regions of buffers that blocks read and write."""

from __future__ import annotations

from collections.abc import Mapping

from tir_dialect.analysis.regions import Region, block_regions
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.regions import ReadsOp, RegionOp, WritesOp
from tir_dialect.tvmscript.expressions import Expressions
from tir_dialect.tvmscript.text import dim_text


def declared_regions(expressions: Expressions, op: BlockOp) -> list[str]:
    """What a block declares; or touches, where memory of a loop inside would count for TVM."""
    lines: list[str] = []
    for kind, function in ((ReadsOp, "reads"), (WritesOp, "writes")):
        regions = [region_text(expressions, each) for each in op.body.block.ops if isinstance(each, kind)]
        lines += [f"T.{function}({', '.join(regions)})"] if regions else []
    inside = (inner for inner in op.walk() if isinstance(inner, AllocBufferOp))
    if lines or all(inner.parent_op() is op for inner in inside):
        return lines
    found = block_regions(op)
    known = expressions.names
    names = {name: known[each.value].text for name, each in found.space.variables.items() if each.value in known}
    return [
        f"T.{function}({', '.join(_box(expressions, region, names) for region in regions)})"
        for function, regions in (("reads", found.reads), ("writes", found.writes))
    ]


def _box(expressions: Expressions, region: Region, names: Mapping[str, str]) -> str:
    parts = [
        [dim_text(dim.substitute(names)).text for dim in (axis.lower, axis.lower + axis.extent)] for axis in region.axes
    ]
    return f"{expressions.buffer(region.buffer)}[{', '.join(map(':'.join, parts)) or '()'}]"


def region_text(expressions: Expressions, op: RegionOp) -> str:
    """A region of a buffer: an index, or a range, per dimension."""
    parts: list[str] = []
    for axis in op.axes:
        low = expressions.of(axis.lower).text
        parts.append(low if axis.upper is None else f"{low}:{expressions.of(axis.upper).text}")
    return f"{expressions.buffer(op.buffer)}[{', '.join(parts) or '()'}]"
