"""Blocks of PrimFuncs: iterators, predicate, declared regions, init."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from relax_dialect.frontend.tvmscript.prim_func.elsewhere import Elsewhere, walk_here
from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.loops import loop_names
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Place, Region
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.signature import as_attributes, read_dictionary
from tir_dialect.analysis.blocks import misused_iterators
from tir_dialect.dims import Dim, constant
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.te import nodes
from tir_dialect.te.expr import INDEX
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import IteratorKind, IteratorKindAttr

_AXES = {
    "spatial": IteratorKind.SPATIAL,
    "S": IteratorKind.SPATIAL,
    "reduce": IteratorKind.REDUCE,
    "R": IteratorKind.REDUCE,
    "scan": IteratorKind.SCAN,
    "opaque": IteratorKind.OPAQUE,
}
_REMAP = {"S": IteratorKind.SPATIAL, "R": IteratorKind.REDUCE}


Extents: TypeAlias = "Mapping[str, tuple[Place, Place]]"
"""First value and number of values of loop variables."""


@dataclass
class Iterator:
    """One iterator of a block: what it is bound to, and its domain."""

    name: str
    kind: IteratorKind
    lower: Place
    extent: Place
    binding: Place
    scope: Scope
    """Where its name is visible."""


Declaration: TypeAlias = "tuple[Scope, ast.expr]"
"""A region of a buffer, with the scope of its names."""


@dataclass
class Head:
    """What a block says before it computes."""

    iterators: list[Iterator] = field(default_factory=list[Iterator])
    where: SSAValue | None = None
    reads: list[Declaration] = field(default_factory=list[Declaration])
    writes: list[Declaration] = field(default_factory=list[Declaration])
    annotations: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    @property
    def is_plain(self) -> bool:
        """Whether the block says nothing at all, as the block around a function's body."""
        return not (self.iterators or self.where or self.annotations)

    def add(self, other: Head) -> None:
        """Says what another head says, too."""
        self.iterators += other.iterators
        self.where = self.where or other.where
        self.reads += other.reads
        self.writes += other.writes
        self.annotations |= other.annotations


def read_head(
    reader: TirExpressionReader, statements: Sequence[ast.stmt], extents: Extents
) -> tuple[Head, list[ast.stmt]]:
    """The head of a block, and the statements that are left; `extents` are the domains of loop variables."""
    head, rest = Head(), list[ast.stmt]()
    for statement in statements:
        if isinstance(statement, Elsewhere):
            with reader.reading_in(statement.scope):
                more, left = read_head(reader, statement.body, extents)
            head.add(more)
            rest.append(statement.of(left))
            continue
        target = _target(statement)
        if target is not None and (found := _axes(reader, *target, extents)) is not None:
            head.iterators += found
            continue
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and _directive(reader, head, call)):
            rest.append(statement)
    return head, rest


def _target(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """What a statement assigns to, and the value; what it says of the type of an iterator does not matter."""
    match statement:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.Call() as value):
            return target, value
        case _:
            return None


def _directive(reader: TirExpressionReader, head: Head, call: ast.Call) -> bool:
    """Reads `T.where`, `T.reads`, `T.writes` or `T.sblock_attr`; false if the call is none of them."""
    match reader.aliases.name_in("tir", call.func):
        case "where":
            head.where = reader.condition(Arguments(reader.source, call, "T.where", "predicate").require("predicate"))
        case "reads":
            head.reads += ((reader.scope, each) for each in _flattened(call.args))
        case "writes":
            head.writes += ((reader.scope, each) for each in _flattened(call.args))
        case "sblock_attr" | "block_attr":
            values = _plain(read_dictionary(reader, call, "T.sblock_attr", "attrs"))
            head.annotations |= as_attributes(reader.source, call, values)
        case _:
            return False
    return True


def _plain(value: Any) -> Any:
    """A value in which buffers are given by their names."""
    if isinstance(value, Buffer):
        return value.tensor.name
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in cast("dict[str, object]", value).items()}
    items = items_of(value)
    return value if items is None else tuple(_plain(each) for each in items)


def _flattened(args: Sequence[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for each in args:
        found += each.elts if isinstance(each, ast.List | ast.Tuple) else [each]
    return found


# Iterators


def _axes(reader: TirExpressionReader, target: ast.expr, value: ast.expr, extents: Extents) -> list[Iterator] | None:
    """The iterators that `vi = T.axis.spatial(...)` makes; `None` for another statement."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        found = [_axes(reader, one, other, extents) for one, other in pairs]
        return None if None in found else [axis for axes in found for axis in axes or ()]
    name = reader.aliases.name_in("tir", value.func) if isinstance(value, ast.Call) else None
    if name is None or not name.startswith("axis.") or not isinstance(value, ast.Call):
        return None
    kind = name.removeprefix("axis.")
    if kind == "remap":
        return _remap(reader, target, value, extents)
    if kind not in _AXES or not isinstance(target, ast.Name):
        reader.fail(value, "expected T.axis.spatial, reduce, scan, opaque or remap, bound to one name")
    given = Arguments(reader.source, value, f"T.{name}", "dom binding dtype")
    domain, binding_node = given.require("dom"), given.get("binding")
    lower, extent = _domain(reader, domain)
    binding: Place = lower
    if binding_node is not None:
        binding = reader.index(binding_node, reader.value(binding_node))
    return [Iterator(target.id, _AXES[kind], lower, extent, binding, reader.scope)]


def _domain(reader: TirExpressionReader, node: ast.expr) -> tuple[Place, Place]:
    """`n`, or `(lower, upper)`: the first value and how many there are."""
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2:
        lower, upper = (reader.index(each, reader.value(each)) for each in node.elts)
        return lower, reader.index(node, reader.apply(node, "Sub", upper, lower))
    return constant(0), reader.index(node, reader.value(node))


def _remap(reader: TirExpressionReader, target: ast.expr, call: ast.Call, extents: Extents) -> list[Iterator]:
    """`vi, vj = T.axis.remap("SR", [i, j])`: an iterator for each loop, over the same values."""
    given = Arguments(reader.source, call, "T.axis.remap", "kinds bindings dtype")
    kinds, bindings = reader.text(given.require("kinds")), given.require("bindings")
    loops = loop_names(reader, bindings)
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    if not len(kinds) == len(loops) == len(targets):
        reader.fail(call, f"expected as many kinds as loops and names, got {len(kinds)}, {len(loops)}, {len(targets)}")
    found: list[Iterator] = []
    for letter, loop, name in zip(kinds, loops, targets, strict=True):
        if letter not in _REMAP or not isinstance(name, ast.Name):
            reader.fail(name, f'expected S or R for each name, got "{letter}"')
        if not isinstance(loop, ast.Name) or loop.id not in extents:
            reader.fail(loop, "T.axis.remap expected the variables of loops around the block")
        lower, extent = extents[loop.id]
        binding = reader.index(loop, reader.value(loop))
        found.append(Iterator(name.id, _REMAP[letter], lower, extent, binding, reader.scope))
    return found


def loops_used(reader: TirExpressionReader, head: Head, rest: Sequence[ast.stmt], extents: Extents) -> list[Iterator]:
    """Opaque iterators for the loop variables that a block uses without one of its own."""
    own = {each.name for each in head.iterators}
    found: list[Iterator] = []
    regions = ((scope, [region]) for scope, region in (*head.reads, *head.writes))
    for scope, places in (*_by_scope(reader.scope, rest), *regions):
        names = [each for place in places for each in walk_here(place) if isinstance(each, ast.Name)]
        used = {each.id for each in names} - own - {each.id for each in names if isinstance(each.ctx, ast.Store)}
        for name, (lower, extent) in extents.items():
            variable = scope.find(name)
            if name in used and isinstance(variable, Scalar):
                found.append(Iterator(name, IteratorKind.OPAQUE, lower, extent, variable, scope))
    return list({(each.name, each.scope): each for each in found}.values())


def _by_scope(scope: Scope, statements: Sequence[ast.stmt]) -> list[tuple[Scope, Sequence[ast.AST]]]:
    """Statements by the scope of their names."""
    found: list[tuple[Scope, Sequence[ast.AST]]] = [(scope, statements)]
    for each in statements:
        if isinstance(each, Elsewhere):
            found += _by_scope(each.scope, each.body)
    return found


def open_block(reader: TirExpressionReader, node: ast.AST, name: str, head: Head) -> BlockOp:
    """Appends a block and goes into it, with its iterators bound."""
    bindings = [_from_zero(reader, node, each) for each in head.iterators]
    operands = [
        (each.kind, reader.index_value(node, binding), reader.index_value(node, each.extent))
        for each, binding in zip(head.iterators, bindings, strict=True)
    ]
    hints = [as_name_hint(each.name) for each in head.iterators]
    op = BlockOp(name, operands, where=head.where, annotations=head.annotations or None, name_hints=hints)
    reader.block.add_op(op)
    reader.block = op.body.block
    for each, argument in zip(head.iterators, op.body.block.args, strict=True):
        variable = _variable(reader, each, argument)
        shifted = variable if _is_zero(each.lower) else FUNCTIONS["Add"](variable, each.lower)
        each.scope.bind(each.name, shifted)
    return op


def _variable(reader: TirExpressionReader, iterator: Iterator, argument: SSAValue) -> Scalar:
    """An iterator as a scalar, of which is known that it is not negative if its extent is a dimension."""
    if not isinstance(iterator.extent, Dim):
        return reader.variable(argument, INDEX, iterator.name)
    variable = nodes.IterVar(iterator.name, constant(0), iterator.extent, iterator.kind.value)
    reader.names.variables[variable] = argument
    reader.axes = (*reader.axes, variable)
    return variable


def _is_zero(place: Place) -> bool:
    return isinstance(place, Dim) and place.constant_value == 0


def _from_zero(reader: TirExpressionReader, node: ast.AST, iterator: Iterator) -> Place:
    """The binding counted from the start of the domain, where ours begin."""
    if _is_zero(iterator.lower):
        return iterator.binding
    return reader.index(node, reader.apply(node, "Sub", iterator.binding, iterator.lower))


def keep_in_order(block: BlockOp) -> None:
    """Makes iterators opaque that stores do not use as their kinds promise: instances run in the order of the text.

    With `T.init`, which runs where the reduce iterators are 0, these stay as they are. Scan iterators beside them do
    not stop it in TVM, and become opaque.
    """
    wrong = set(misused_iterators(block))
    if block.init is not None:
        reduced = {each.value for each in block.iterators if each.kind is IteratorKind.REDUCE}
        scans = {each.value for each in block.iterators if each.kind is IteratorKind.SCAN}
        wrong = (wrong | scans) - reduced if reduced else wrong - scans
    kinds = [IteratorKind.OPAQUE if each.value in wrong else each.kind for each in block.iterators]
    block.iterator_kinds = ArrayAttr([IteratorKindAttr(kind) for kind in kinds])


def whole(buffer: Buffer) -> Region:
    """All of a buffer."""
    return Region(buffer, tuple(Axis(constant(0), dim) for dim in buffer.type.shape))
