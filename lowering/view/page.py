"""A module as an HTML page: one section for each function, which opens and closes, and needs no network.

A function of the graph level is its data flow, one that is large an overview of the layers of its source with a section
for each; after `plan-memory` its arenas over time follow. A kernel is its loop nest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from lowering.view.dot import to_dot, to_svg
from lowering.view.graph import Graph, graph_of
from lowering.view.memory_chart import chart_of, lives_of
from lowering.view.nest import nest_of
from relax_dialect.ops.structure import FuncOp
from tir_dialect.ops.function import PrimFuncOp

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
