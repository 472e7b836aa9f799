"""A module as an HTML page: one section for each function, which opens and closes, and needs no network.

A function of the graph level is its data flow, one that is large an overview of the layers of its source with a section
for each; after `plan-memory` its arenas over time follow. A kernel is its loop nest.

The plan of a function's memory is an SVG with a rectangle for each tensor: its life across, its bytes up. The loop nest
of a kernel is nested boxes: loops with their tiles of the buffers, blocks, and the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from lowering.relax.memory.plan import aligned, lifetimes
from lowering.relax.memory.plan_memory import tensor_bytes
from lowering.view.graph import Graph, Names, graph_of, short_name, short_type, to_dot, to_svg
from relax_dialect.ops.memory import AllocStorageOp, StorageTensorOp
from relax_dialect.ops.structure import FuncOp
from tir_dialect.analysis.regions import Region, tile_of
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp

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


_NUMBER = re.compile(r"\$\d+")
"""What tells symbols of loop variables of one name apart."""


def nest_of(func: Operation) -> str:
    """The boxes of a function: loops and blocks, and the code in them."""
    names = Names()
    for argument in func.regions[0].block.args if func.regions else ():
        names.of(argument)
    return f'<div class="nest">{"".join(_body(func, names))}</div>'


def _body(op: Operation, names: Names) -> Iterator[str]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if any(each.blocks for each in inner.regions):
                    names.enter_scope()  # loops side by side may have variables of one name
                    title, kind = _title(inner, names)
                    tile = _tile(inner, names) if isinstance(inner, ForOp) else ""
                    yield f'<div class="box {kind}"><b>{escape(title)}</b>{tile}{"".join(_body(inner, names))}</div>'
                    names.exit_scope()
                else:
                    yield f"<code>{escape(names.line(inner))}</code>"


def _tile(loop: ForOp, names: Names) -> str:
    """What one round of a loop touches: its tile of each buffer, in a line that opens."""
    reads, writes = tile_of(loop)
    lines = [
        f"{what} {names.of(region.buffer)}{_NUMBER.sub('', str(region)).removeprefix(f'%{region.buffer.name_hint}')}"
        for what, regions in (("reads", reads), ("writes", writes))
        for region in regions
    ]
    if not lines:
        return ""
    shapes = dict.fromkeys(f"{names.of(each.buffer)} {_extents(each)}" for each in (*reads, *writes))
    code = "".join(f"<code>{escape(line)}</code>" for line in lines)
    return f'<details class="tile"><summary>a round: {escape(", ".join(shapes))}</summary>{code}</details>'


def _extents(region: Region) -> str:
    return " x ".join(str(axis.extent) for axis in region.axes) or "1"


def _title(op: Operation, names: Names) -> tuple[str, str]:
    """What is above a box, and its class of style."""
    match op:
        case ForOp():
            kind = op.kind.data.value
            lower = "" if op.lower is None else f"{names.of(op.lower)} to "
            said = "" if kind == "serial" else f" {kind}"
            return f"for {names.of(op.induction_var)} in {lower}{names.of(op.upper)}{said}", f"loop {kind}"
        case BlockOp():
            iterators = ", ".join(
                f"{each.kind.value} {names.of(each.value)} = {names.of(each.binding)} in {names.of(each.extent)}"
                for each in op.iterators
            )
            return f"block {op.block_name.data} ({iterators})", "block"
        case _:
            return short_name(op), "region"


SUFFIXES = (".html", ".svg", ".dot")
"""The kinds of files that a module is drawn into."""

MOST_NODES = 60
"""A graph with more nodes is drawn by layer, if its ops say which they come from."""

_STYLE = """
body { font: 14px Helvetica, Arial, sans-serif; margin: 1em; color: #202124; }
summary { cursor: pointer; font-weight: bold; padding: .3em; background: #f1f3f4; border-radius: 4px; }
details { margin: .4em 0; } details > details { margin-left: 1.2em; }
.columns { display: flex; gap: 1em; } .columns > div { flex: 1; min-width: 0; }
.scroll { overflow: auto; max-height: 90vh; }
code { display: block; font: 12px Menlo, Consolas, monospace; white-space: pre-wrap; }
.box { border: 1px solid #9aa0a6; border-radius: 4px; margin: .25em 0 .25em .8em; padding: .25em .5em; }
.loop { background: #e8f0fe; } .parallel { background: #e6f4ea; } .vectorized { background: #fef7e0; }
.tile > summary { font-weight: normal; font-size: 12px; background: none; padding: 0; }
.unrolled { background: #fce8e6; } .block { background: #fafafa; }
"""


def page(module: ModuleOp, before: ModuleOp | None = None, *, sizes: Mapping[str, int] | None = None) -> str:
    """The page of a module; beside it that of the module before passes, if given.

    `sizes` are values of symbols for the plan of the memory. Raises `CannotRender` without Graphviz.
    """
    now = _module(module, sizes or {})
    if before is None:
        body = now
    else:
        sides = (("before", _module(before, sizes or {})), ("after", now))
        body = "".join(f"<div><h2>{title}</h2>{content}</div>" for title, content in sides)
        body = f'<div class="columns">{body}</div>'
    head = f'<meta charset="utf-8"><title>module</title><style>{_STYLE}</style>'
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>{body}</body></html>\n"


def write_view(path: Path, module: ModuleOp, before: ModuleOp | None = None) -> None:
    """Draws a module into a file by its suffix.

    `.html` is the page, `.svg` the graph of its first function that is no kernel, `.dot` the graphs of all such
    functions as text, which needs no Graphviz.

    Raises `ValueError` for another suffix, and for a module without functions; `CannotRender` without Graphviz.
    """
    functions = [op for op in module.ops if op.regions and op.regions[0].blocks]
    if path.suffix not in SUFFIXES:
        raise ValueError(f"expected a file that ends in one of {', '.join(SUFFIXES)}, got {path}")
    if not functions:
        raise ValueError("the module has no function to draw")
    graphs = [graph_of(op) for op in functions if not isinstance(op, PrimFuncOp)] or [graph_of(functions[0])]
    match path.suffix:
        case ".html":
            text = page(module, before)
        case ".svg":
            text = to_svg(to_dot(graphs[0]))
        case _:
            text = "".join(map(to_dot, graphs))
    path.write_text(text, encoding="utf-8")


def _module(module: ModuleOp, sizes: Mapping[str, int]) -> str:
    return "".join(section for op in module.ops if op.regions for section in _function(op, sizes))


def _function(op: Operation, sizes: Mapping[str, int]) -> Iterator[str]:
    name = op.get_attr_or_prop("sym_name")
    title = f"{op.name} @{name.data}" if isinstance(name, StringAttr) else op.name
    if not any(region.blocks for region in op.regions):
        return
    if isinstance(op, PrimFuncOp):
        yield _section(title, nest_of(op), is_open=False)
        return
    graph = graph_of(op)
    yield _section(title, "".join(_graph(graph)) + _memory(op, sizes), is_open=True)


def _graph(graph: Graph) -> Iterator[str]:
    layers = graph.layers()
    if len(list(graph.root.walk())) <= MOST_NODES or len(layers) < 2:
        yield _drawing(graph)
        return
    yield _drawing(graph.by_layer())
    for layer, inner in layers.items():
        yield _section(layer, _drawing(inner), is_open=False)


def _drawing(graph: Graph) -> str:
    return f'<div class="scroll">{to_svg(to_dot(graph))}</div>'


def _memory(op: Operation, sizes: Mapping[str, int]) -> str:
    chart = chart_of(lives_of(op, sizes)) if isinstance(op, FuncOp) else ""
    return _section("memory", f'<div class="scroll">{chart}</div>', is_open=False) if chart else ""


def _section(title: str, content: str, *, is_open: bool) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>{content}</details>"
