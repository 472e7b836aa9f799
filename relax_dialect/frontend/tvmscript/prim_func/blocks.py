"""Blocks of PrimFuncs: iterators, predicate, declared regions, init."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.prim_func.bindings import ScopedStatements, block_body, walk_own_scope
from relax_dialect.frontend.tvmscript.prim_func.loops import Loop, TirFlowReader, loop_names, open_loop
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from relax_dialect.frontend.tvmscript.prim_func.scalars import Axis, Buffer, Index, Region, whole
from relax_dialect.frontend.tvmscript.scopes import Scope
from relax_dialect.frontend.tvmscript.types import as_attributes, read_dictionary
from tir_dialect.analysis.functions import misused_iterators
from tir_dialect.analysis.regions import block_regions
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, DeclarationOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import RegionAxis
from tir_dialect.te import nodes
from tir_dialect.te.expr import INDEX
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import IteratorKind, IteratorKindAttr, as_name_hint

_AXES = {
    "spatial": IteratorKind.SPATIAL,
    "S": IteratorKind.SPATIAL,
    "reduce": IteratorKind.REDUCE,
    "R": IteratorKind.REDUCE,
    "scan": IteratorKind.SCAN,
    "opaque": IteratorKind.OPAQUE,
}

_REMAP = {"S": IteratorKind.SPATIAL, "R": IteratorKind.REDUCE}

Extents: TypeAlias = "Mapping[str, tuple[Index, Index]]"
"""First value and number of values of loop variables."""


@dataclass
class Iterator:
    """One iterator of a block: what it is bound to, and its domain."""

    name: str
    kind: IteratorKind
    lower: Index
    extent: Index
    binding: Index
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


def read_head(reader: TirFlowReader, statements: Sequence[ast.stmt], extents: Extents) -> tuple[Head, list[ast.stmt]]:
    """The head of a block, and the statements that are left; `extents` are the domains of loop variables."""
    head, rest = Head(), list[ast.stmt]()
    for statement in statements:
        if isinstance(statement, ScopedStatements):
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


def _directive(reader: TirFlowReader, head: Head, call: ast.Call) -> bool:
    """Reads `T.where`, `T.reads`, `T.writes` or `T.sblock_attr`; false if the call is none of them."""
    match reader.aliases.name_in("tir", call.func):
        case "where":
            head.where = reader.condition(reader.arguments(call, "T.where", "predicate").require("predicate"))
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


def _axes(reader: TirFlowReader, target: ast.expr, value: ast.expr, extents: Extents) -> list[Iterator] | None:
    """The iterators that `vi = T.axis.spatial(...)` makes; `None` for another statement."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        several = [_axes(reader, one, other, extents) for one, other in pairs]
        return None if None in several else [axis for axes in several for axis in axes or ()]
    name = reader.aliases.name_in("tir", value.func) if isinstance(value, ast.Call) else None
    if name is None or not name.startswith("axis.") or not isinstance(value, ast.Call):
        return None
    kind = name.removeprefix("axis.")
    if kind == "remap":
        # `vi, vj = T.axis.remap("SR", [i, j])`: an iterator for each loop, over the same values.
        given = reader.arguments(value, "T.axis.remap", "kinds bindings dtype")
        kinds, bindings = reader.text(given.require("kinds")), given.require("bindings")
        loops = loop_names(reader, bindings)
        targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if not len(kinds) == len(loops) == len(targets):
            reader.fail(
                value, f"expected as many kinds as loops and names, got {len(kinds)}, {len(loops)}, {len(targets)}"
            )
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
    if kind not in _AXES or not isinstance(target, ast.Name):
        reader.fail(value, "expected T.axis.spatial, reduce, scan, opaque or remap, bound to one name")
    given = reader.arguments(value, f"T.{name}", "dom binding dtype")
    domain, binding_node = given.require("dom"), given.get("binding")
    lower, extent = _domain(reader, domain)
    binding: Index = lower
    if binding_node is not None:
        binding = reader.index(binding_node, reader.value(binding_node))
    return [Iterator(target.id, _AXES[kind], lower, extent, binding, reader.scope)]


def _domain(reader: TirFlowReader, node: ast.expr) -> tuple[Index, Index]:
    """`n`, or `(lower, upper)`: the first value and how many there are."""
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2:
        lower, upper = (reader.index(each, reader.value(each)) for each in node.elts)
        return lower, reader.index(node, reader.apply(node, "Sub", upper, lower))
    return constant(0), reader.index(node, reader.value(node))


def loops_used(reader: TirFlowReader, head: Head, rest: Sequence[ast.stmt], extents: Extents) -> list[Iterator]:
    """Opaque iterators for the loop variables that a block uses without one of its own."""
    own = {each.name for each in head.iterators}
    found: list[Iterator] = []
    regions = ((scope, [region]) for scope, region in (*head.reads, *head.writes))
    for scope, trees in (*_by_scope(reader.scope, rest), *regions):
        names = [each for tree in trees for each in walk_own_scope(tree) if isinstance(each, ast.Name)]
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
        if isinstance(each, ScopedStatements):
            found += _by_scope(each.scope, each.body)
    return found


def open_block(reader: TirFlowReader, node: ast.AST, name: str, head: Head) -> BlockOp:
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
        # An iterator as a scalar, of which is known that it is not negative if its extent is a dimension.
        if not isinstance(each.extent, Dim):
            variable = reader.variable(argument, INDEX, each.name)
        else:
            variable = nodes.IterVar(each.name, constant(0), each.extent, each.kind.value)
            reader.names.variables[variable] = argument
            reader.axes = (*reader.axes, variable)
        shifted = variable if _is_zero(each.lower) else FUNCTIONS["Add"](variable, each.lower)
        each.scope.bind(each.name, shifted)
    return op


def _is_zero(index: Index) -> bool:
    return isinstance(index, Dim) and index.constant_value == 0


def _from_zero(reader: TirFlowReader, node: ast.AST, iterator: Iterator) -> Index:
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


def declare_regions(reader: TirFlowReader, head: Head) -> None:
    """Writes down what the block declares to read and write."""
    for kind, regions in ((ReadsOp, head.reads), (WritesOp, head.writes)):
        for scope, node in regions:
            with reader.reading_in(scope):
                region = _declared(reader, node)
                axes = [_declared_axis(reader, node, axis) for axis in region.axes]
            reader.block.add_op(kind(region.buffer.value, axes))


def _declared(reader: TirFlowReader, node: ast.expr) -> Region:
    owner = reader.value(node.value if isinstance(node, ast.Subscript) else node)
    if not isinstance(owner, Buffer):
        reader.fail(node, "expected a region of a buffer, as A[i, 0:4]")
    if isinstance(node, ast.Subscript):
        return reader.region(node, owner)
    return whole(owner)


def _declared_axis(reader: TirFlowReader, node: ast.AST, axis: Axis) -> RegionAxis:
    lower = reader.index_value(node, axis.lower)
    return RegionAxis(lower, None if axis.upper is None else reader.index_value(node, axis.upper))


def drop_inferable_regions(func: PrimFuncOp) -> None:
    """Removes declarations that say what the accesses of the block show anyway."""
    for block in [op for op in func.walk() if isinstance(op, BlockOp)]:
        declared = [op for op in block.body.block.ops if isinstance(op, DeclarationOp)]
        if not declared:
            continue
        said = block_regions(block)
        following = declared[-1].next_op
        for op in declared:
            op.detach()
        seen = block_regions(block)
        # Whether a text declares what is read, but for what the block writes, too, as an update of its
        # own init does.
        left_out = set(seen.reads) - set(said.reads)
        same = (set(said.reads) <= set(seen.reads) and left_out <= set(seen.writes)) and set(said.writes) == set(
            seen.writes
        )
        for op in declared:
            if same:
                _erase_with_operands(op)
            elif following is not None:
                block.body.block.insert_op_before(op, following)
            else:
                block.body.block.add_op(op)


def _erase_with_operands(op: DeclarationOp) -> None:
    """Erases a declaration, and what only it has used."""
    pending = [operand.owner for operand in op.operands]
    op.erase()
    while pending:
        owner = pending.pop()
        if not isinstance(owner, Operation):
            continue
        if all(not result.uses for result in owner.results) and owner.parent is not None and not owner.regions:
            pending += [operand.owner for operand in owner.operands]
            owner.detach()
            owner.erase()


def read_block(reader: TirFlowReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    """Reads `with T.sblock("name"):`."""
    if call.args and not _is_text(call.args[0]):
        _sketched_block(reader, node, call, targets)
        return
    given = reader.arguments(call, "T.sblock", "name no_realize")
    name = "" if (text := given.get("name")) is None else reader.text(text)
    with reader.inside(), block_body(reader, node.body) as body:
        head, rest = read_head(reader, body, reader.extents)
        if head.is_plain and name in ("root", ""):
            first = rest[0] if rest else None
            if isinstance(first, ast.With) and _is_init(reader, first):
                rest = [*first.body, *rest[1:]]  # every run of the block is the first one
            reader.body(rest)
            return
        is_open = head.is_plain
        head.iterators += loops_used(reader, head, rest, reader.extents)
        _fill_block(reader, node, name, head, rest, is_open)


def _fill_block(
    reader: TirFlowReader,
    node: ast.With,
    name: str,
    head: Head,
    rest: Sequence[ast.stmt],
    is_open: bool = False,
) -> None:
    """Reads a block; one that is open is none where it uses what is computed in the loops around."""
    op = reader.emit(node, lambda: open_block(reader, node, name, head))
    init, bindings, rest = _split_at_init(reader, rest)
    first: Sequence[ast.stmt] = ()
    if init is not None:
        if any(each.kind in (IteratorKind.REDUCE, IteratorKind.SCAN) for each in head.iterators):
            read_init(reader, init, bindings)
        else:
            first = init.body  # every run of the block is the first one
    content = [*bindings, *first, *rest]
    count = _bindings_of_regions(head, content)
    reader.body(content[:count])
    declare_regions(reader, head)
    reader.body(content[count:])
    keep_in_order(op)
    if is_open and not _is_valid(op):
        # Puts what a block computes instead of it.
        for argument, binding in zip(op.body.block.args, op.bindings, strict=True):
            argument.replace_all_uses_with(binding)
        for inner in list(op.body.block.ops):
            if isinstance(inner, ReadsOp | WritesOp):
                Rewriter.erase_op(inner)
            else:
                inner.detach()
                Rewriter.insert_op(inner, InsertPoint.before(op))
        Rewriter.erase_op(op)
    else:
        reader.emit(node, op.verify_)


def _is_valid(op: BlockOp) -> bool:
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


def _split_at_init(
    reader: TirFlowReader, statements: Sequence[ast.stmt]
) -> tuple[ast.With | None, Sequence[ast.stmt], Sequence[ast.stmt]]:
    """The init of a block, which runs first wherever it stands, the bindings that it uses, and all other statements."""
    for at, each in enumerate(statements):
        if not isinstance(each, ScopedStatements):
            continue
        there, used, others = _split_at_init(reader, each.body)
        if there is not None:
            init = ast.copy_location(ast.With(there.items, [each.of(there.body)]), there)
            return init, [each.of(used)], [*statements[:at], each.of(others), *statements[at + 1 :]]
    index = next(
        (at for at, each in enumerate(statements) if isinstance(each, ast.With) and _is_init(reader, each)), -1
    )
    init = statements[index] if index >= 0 else None
    if not isinstance(init, ast.With):
        return None, (), statements
    bindings = [each for each in statements[:index] if isinstance(each, ast.Assign | ast.AnnAssign)]
    used = [each for each in bindings if _is_used(each, init)]
    others = [each for each in statements[:index] if each not in used]
    return init, used, [*others, *statements[index + 1 :]]


def _is_used(binding: ast.stmt, tree: ast.AST) -> bool:
    """Whether an init, or a region, mentions a name of a binding before it."""
    bound = {each.id for each in ast.walk(binding) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return any(isinstance(each, ast.Name) and each.id in bound for each in ast.walk(tree))


def _bindings_of_regions(head: Head, content: Sequence[ast.stmt]) -> int:
    """How many of the first statements of a block bind names with which it says what it reads and writes."""
    bindings = list(takewhile(lambda each: isinstance(each, ast.Assign | ast.AnnAssign), content))
    regions = [node for _, node in (*head.reads, *head.writes)]
    used = (at for at, each in enumerate(bindings, 1) if any(_is_used(each, node) for node in regions))
    return max(used, default=0)


def _is_init(reader: TirFlowReader, node: ast.With) -> bool:
    call = node.items[0].context_expr
    return isinstance(call, ast.Call) and reader.aliases.name_in("tir", call.func) == "init"


def _sketched_block(reader: TirFlowReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    """`with T.block([n, m]) as [i, j]:` of the first texts: loops and spatial iterators in one."""
    nodes = [each for each in call.args if not _is_text(each)]
    names = [reader.text(each) for each in call.args if _is_text(each)]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
        nodes = list(nodes[0].elts)
    labels = [each.id for each in targets if isinstance(each, ast.Name)]
    if len(labels) != len(nodes):
        reader.fail(call, f"expected {len(nodes)} names after `as`, got {len(labels)}")
    loops: list[Loop] = []
    kinds: list[IteratorKind] = []
    for each in nodes:
        name = reader.aliases.name_in("tir", each.func) if isinstance(each, ast.Call) else None
        kind = {"reduce_axis": IteratorKind.REDUCE, "scan_axis": IteratorKind.SCAN}.get(name or "")
        if isinstance(each, ast.Call) and kind is not None:
            each = each.args[-1]
        loops.append(Loop(constant(0), reader.dim(each)))
        kinds.append(kind or IteratorKind.SPATIAL)
    with reader.inside():
        head = Head()
        for loop, label, kind in zip(loops, labels, kinds, strict=True):
            variable = open_loop(reader, node, loop, label)
            upper = loop.upper
            if not isinstance(upper, Dim):
                reader.fail(call, "expected dimensions as the extents of a block")
            head.iterators.append(Iterator(label, kind, constant(0), upper, variable, reader.scope))
        more, rest = read_head(reader, node.body, {})
        head.where, head.reads, head.writes = more.where, more.reads, more.writes
        _fill_block(reader, node, names[0] if names else "block", head, rest)


def read_init(reader: TirFlowReader, node: ast.With, bindings: Sequence[ast.stmt] = ()) -> None:
    """Reads `with T.init():`; views that it uses are made in it too."""
    op = InitOp()
    with reader.inside(op.body.block):
        reader.body([*bindings, *node.body])
    reader.block.add_op(op)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
