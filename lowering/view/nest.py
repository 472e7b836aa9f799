"""The loop nest of a kernel as nested boxes, in HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.view.graph import short_name
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp


def nest_of(func: Operation) -> str:
    """The boxes of a function: loops and blocks, and the code in them."""
    return f'<div class="nest">{"".join(_body(func))}</div>'


def _body(op: Operation) -> Iterator[str]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if any(each.blocks for each in inner.regions):
                    title, kind = _title(inner)
                    yield f'<div class="box {kind}"><b>{escape(title)}</b>{"".join(_body(inner))}</div>'
                else:
                    yield f"<code>{escape(str(inner))}</code>"


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
