"""Scopes of PrimFuncs, `with ...:`: blocks, init, loops, bindings, allocations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.prim_func import blocks as tir_blocks
from relax_dialect.frontend.tvmscript.prim_func.addresses import memory_at, to_address
from relax_dialect.frontend.tvmscript.prim_func.control import nest
from relax_dialect.frontend.tvmscript.prim_func.declared_regions import declare_regions
from relax_dialect.frontend.tvmscript.prim_func.elsewhere import Elsewhere
from relax_dialect.frontend.tvmscript.prim_func.inline import block_body
from relax_dialect.frontend.tvmscript.prim_func.intrinsics import refuse
from relax_dialect.frontend.tvmscript.prim_func.loops import Loop, open_loop, read_loops
from relax_dialect.frontend.tvmscript.prim_func.threads import read_launch
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.types import IteratorKind

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader

_BLOCKS = frozenset({"sblock", "block"})


def read_scope(reader: TirStatementReader, node: ast.With) -> None:
    """Reads a statement `with ...:`."""
    item = node.items[0]
    call = item.context_expr
    name = reader.aliases.name_in("tir", call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or name is None:
        reader.fail(call, "expected T.sblock, T.init, or a loop")
    targets = _targets(node)
    if name in _BLOCKS:
        _block(reader, node, call, targets)
    elif name == "init":
        _init(reader, node)
    elif name in ("grid", "serial", "parallel", "vectorized", "unroll"):
        nest(reader, node, read_loops(reader, call), targets, node.body)
    elif name in ("Let", "LetStmt", "let"):
        _let(reader, node, call, targets)
    elif name in ("allocate", "decl_buffer", "buffer_decl"):
        _scoped(reader, node, call, targets)
    elif name == "launch_thread":
        label = next((each.id for each in targets if isinstance(each, ast.Name)), None)
        read_launch(reader, call, label, node.body)
    elif name == "hint":
        reader.body(node.body)
    elif name in ("attr", "Assert", "realize"):
        _marked(reader, node, call, name)
    else:
        refuse(reader, call, name)


def _block(reader: TirStatementReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    if call.args and not _is_text(call.args[0]):
        _sketched_block(reader, node, call, targets)
        return
    given = Arguments(reader.source, call, "T.sblock", "name no_realize")
    name = "" if (text := given.get("name")) is None else reader.text(text)
    with reader.inside(), block_body(reader, node.body) as body:
        head, rest = tir_blocks.read_head(reader, body, reader.extents)
        if head.is_plain and name in ("root", ""):
            first = rest[0] if rest else None
            if isinstance(first, ast.With) and _is_init(reader, first):
                rest = [*first.body, *rest[1:]]  # every run of the block is the first one
            reader.body(rest)
            return
        is_open = head.is_plain
        head.iterators += tir_blocks.loops_used(reader, head, rest, reader.extents)
        _fill_block(reader, node, name, head, rest, is_open)


def _fill_block(
    reader: TirStatementReader,
    node: ast.With,
    name: str,
    head: tir_blocks.Head,
    rest: Sequence[ast.stmt],
    is_open: bool = False,
) -> None:
    """Reads a block; one that is open is none where it uses what is computed in the loops around."""
    op = reader.emit(node, lambda: tir_blocks.open_block(reader, node, name, head))
    init, bindings, rest = _split_at_init(reader, rest)
    first: Sequence[ast.stmt] = ()
    if init is not None:
        if any(each.kind in (IteratorKind.REDUCE, IteratorKind.SCAN) for each in head.iterators):
            _init(reader, init, bindings)
        else:
            first = init.body  # every run of the block is the first one
    content = [*bindings, *first, *rest]
    count = _bindings_of_regions(head, content)
    reader.body(content[:count])
    declare_regions(reader, head)
    reader.body(content[count:])
    tir_blocks.keep_in_order(op)
    if is_open and not _is_valid(op):
        _dissolve(op)
    else:
        reader.emit(node, op.verify_)


def _is_valid(op: BlockOp) -> bool:
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


def _dissolve(op: BlockOp) -> None:
    """Puts what a block computes in its place."""
    for argument, binding in zip(op.body.block.args, op.bindings, strict=True):
        argument.replace_all_uses_with(binding)
    for inner in list(op.body.block.ops):
        if isinstance(inner, ReadsOp | WritesOp):
            Rewriter.erase_op(inner)
        else:
            inner.detach()
            Rewriter.insert_op(inner, InsertPoint.before(op))
    Rewriter.erase_op(op)


def _split_at_init(
    reader: TirStatementReader, statements: Sequence[ast.stmt]
) -> tuple[ast.With | None, Sequence[ast.stmt], Sequence[ast.stmt]]:
    """The init of a block, which runs first wherever it stands, the bindings that it uses, and all other statements."""
    for at, each in enumerate(statements):
        if not isinstance(each, Elsewhere):
            continue
        there, used, others = _split_at_init(reader, each.body)
        if there is not None:
            init = ast.copy_location(ast.With(there.items, [each.of(there.body)]), there)
            return init, [each.of(used)], [*statements[:at], each.of(others), *statements[at + 1 :]]
    place = next(
        (at for at, each in enumerate(statements) if isinstance(each, ast.With) and _is_init(reader, each)), -1
    )
    init = statements[place] if place >= 0 else None
    if not isinstance(init, ast.With):
        return None, (), statements
    bindings = [each for each in statements[:place] if isinstance(each, ast.Assign | ast.AnnAssign)]
    used = [each for each in bindings if _is_used(each, init)]
    others = [each for each in statements[:place] if each not in used]
    return init, used, [*others, *statements[place + 1 :]]


def _is_used(binding: ast.stmt, tree: ast.AST) -> bool:
    """Whether an init, or a region, mentions a name of a binding in front of it."""
    bound = {each.id for each in ast.walk(binding) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return any(isinstance(each, ast.Name) and each.id in bound for each in ast.walk(tree))


def _bindings_of_regions(head: tir_blocks.Head, content: Sequence[ast.stmt]) -> int:
    """How many of the first statements of a block bind names with which it says what it reads and writes."""
    bindings = list(takewhile(lambda each: isinstance(each, ast.Assign | ast.AnnAssign), content))
    regions = [node for _, node in (*head.reads, *head.writes)]
    used = (at for at, each in enumerate(bindings, 1) if any(_is_used(each, node) for node in regions))
    return max(used, default=0)


def _is_init(reader: TirStatementReader, node: ast.With) -> bool:
    call = node.items[0].context_expr
    return isinstance(call, ast.Call) and reader.aliases.name_in("tir", call.func) == "init"


def _sketched_block(reader: TirStatementReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    """`with T.block([n, m]) as [i, j]:` of the first texts: loops and spatial iterators in one."""
    nodes = [each for each in call.args if not _is_text(each)]
    names = [reader.text(each) for each in call.args if _is_text(each)]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
        nodes = list(nodes[0].elts)
    labels = [each.id for each in targets if isinstance(each, ast.Name)]
    if len(labels) != len(nodes):
        reader.fail(call, f"expected {len(nodes)} names after `as`, got {len(labels)}")
    loops, kinds = _sketched_loops(reader, nodes)
    with reader.inside():
        head = tir_blocks.Head()
        for loop, label, kind in zip(loops, labels, kinds, strict=True):
            variable = open_loop(reader, node, loop, label)
            upper = loop.upper
            if not isinstance(upper, Dim):
                reader.fail(call, "expected dimensions as the extents of a block")
            head.iterators.append(tir_blocks.Iterator(label, kind, constant(0), upper, variable, reader.scope))
        more, rest = tir_blocks.read_head(reader, node.body, {})
        head.where, head.reads, head.writes = more.where, more.reads, more.writes
        _fill_block(reader, node, names[0] if names else "block", head, rest)


def _sketched_loops(reader: TirStatementReader, nodes: Sequence[ast.expr]) -> tuple[list[Loop], list[IteratorKind]]:
    loops: list[Loop] = []
    kinds: list[IteratorKind] = []
    for each in nodes:
        name = reader.aliases.name_in("tir", each.func) if isinstance(each, ast.Call) else None
        kind = {"reduce_axis": IteratorKind.REDUCE, "scan_axis": IteratorKind.SCAN}.get(name or "")
        if isinstance(each, ast.Call) and kind is not None:
            each, kind = each.args[-1], kind
        loops.append(Loop(constant(0), reader.dim(each)))
        kinds.append(kind or IteratorKind.SPATIAL)
    return loops, kinds


def _init(reader: TirStatementReader, node: ast.With, bindings: Sequence[ast.stmt] = ()) -> None:
    """Reads `with T.init():`; views that it uses are made in it too."""
    op = InitOp()
    with reader.inside(op.body.block):
        reader.body([*bindings, *node.body])
    reader.block.add_op(op)


# Other scopes


def _let(reader: TirStatementReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    given = Arguments(reader.source, call, "T.LetStmt", "value type_annotation var")
    value, var = given.require("value"), given.get("var")
    if isinstance(var, ast.Attribute) and var.attr == "data":
        with reader.inside():
            _give_memory(reader, var.value, value)
            reader.body(node.body)
        return
    names = [*targets, *([] if var is None else [var])]
    if len(names) != 1 or not isinstance(names[0], ast.Name):
        reader.fail(node, "expected one name after `as`")
    with reader.inside():
        reader.scope.bind(names[0].id, reader.named(names[0].id, value))
        reader.body(node.body)


def _give_memory(reader: TirStatementReader, target: ast.expr, value: ast.expr) -> None:
    """`T.LetStmt(pointer, var=A.data)`: a buffer that has been declared lies at an address."""
    buffer = reader.value(target)
    if not isinstance(target, ast.Name) or not isinstance(buffer, Buffer):
        reader.fail(target, "expected the name of a buffer")
    address = to_address(reader, value, reader.value(value))
    reader.scope.bind(target.id, memory_at(reader, value, address, buffer.type, target.id))


def _scoped(reader: TirStatementReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        reader.fail(node, "expected one name after `as`")
    with reader.inside():
        reader.scope.bind(targets[0].id, reader.named(targets[0].id, call))
        reader.body(node.body)


def _marked(reader: TirStatementReader, node: ast.With, call: ast.Call, name: str) -> None:
    if name == "realize":
        reader.fail(call, "T.realize is for storage that TVM no longer has; write T.alloc_buffer")
    if name == "Assert":
        given = Arguments(reader.source, call, "T.Assert", "condition message")
        message = given.get("message")
        text = "the assertion does not hold" if message is None else reader.text(message)
        reader.block.add_op(AssertOp(reader.condition(given.require("condition")), text))
        reader.body(node.body)
        return
    given = Arguments(reader.source, call, "T.attr", "node key value")
    named = given.get("key")
    key = "" if named is None else reader.text(named)  # without a key, a dictionary says several things
    if key in ("thread_extent", "virtual_thread"):
        reader.fail(call, "threads of GPUs are not a target; write loops")
    # hints such as pragmas do not change what the function computes
    reader.body(node.body)


def _targets(node: ast.With) -> list[ast.expr]:
    """The names after `as`; `with T.block(n, m) as i, j` reads as two items."""
    first = node.items[0].optional_vars
    if first is None:
        return []
    names = list(first.elts) if isinstance(first, ast.Tuple | ast.List) else [first]
    return names + [item.context_expr for item in node.items[1:]]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
