"""Loops, branches and assertions of PrimFuncs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.jumps import BREAK, CONTINUE, RETURN, jumps_of
from relax_dialect.frontend.tvmscript.prim_func.loops import Loop, open_loop, place_of, read_loops
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import loads
from relax_dialect.frontend.tvmscript.prim_func.threads import open_thread
from relax_dialect.frontend.tvmscript.prim_func.values import Place
from relax_dialect.frontend.tvmscript.prim_func.widths import is_wide
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from tir_dialect import te
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp
from tir_dialect.ops.scalars import DEFAULT_ERROR, ERROR_KINDS, AssertOp
from tir_dialect.te.expr import INDEX
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import LoopKind

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader


def read_for(reader: TirStatementReader, node: ast.For) -> None:
    """Reads `for i, j in T.grid(n, m):`."""
    if node.orelse:
        reader.fail(node.orelse[0], "a loop has no else")
    loops = read_loops(reader, node.iter)
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    reader.wide = reader.wide | names if is_wide(reader.aliases, node.iter, reader.wide) else reader.wide - names
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    nest(reader, node, loops, targets, node.body)


def nest(
    reader: TirStatementReader,
    node: ast.AST,
    loops: Sequence[Loop],
    targets: Sequence[ast.expr],
    body: Sequence[ast.stmt],
) -> None:
    """Reads statements into a nest of loops."""
    targets, tuples = _spread(targets, len(loops))
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    together = names[0] if len(targets) == len(names) == 1 != len(loops) else None
    if together is not None:
        # one name for the variables of all loops
        names = [place_of(together, index) for index in range(len(loops))]
    elif len(names) != len(loops) or len(targets) != len(loops):
        reader.fail(node, f"expected {len(loops)} loop variables, got {len(targets)}")
    jumps = jumps_of(reader.aliases, body)
    if jumps and any(loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED) for loop in loops):
        reader.fail(node, "rounds of a parallel or vectorized loop are not left; write a condition")
    if BREAK in jumps and len(loops) > 1:
        reader.fail(node, "expected one loop to break, got several; write them one by one")
    with reader.inside():
        variables = [_open(reader, node, *pair) for pair in zip(loops, names, strict=True)]
        if together is not None:
            reader.scope.bind(together, tuple(variables))
        for name, place in tuples.items():
            reader.scope.bind(name, tuple(variables[place]))
        _round(reader, node, body, jumps)
    if BREAK in jumps:
        reader.jumps.reset(node, BREAK)


def _spread(targets: Sequence[ast.expr], count: int) -> tuple[Sequence[ast.expr], dict[str, slice]]:
    """The variables of so many loops, of which `*name` stands for those that are left; and where these are."""
    found: list[ast.expr] = []
    tuples: dict[str, slice] = {}
    for target in targets:
        if isinstance(target, ast.Starred) and isinstance(target.value, ast.Name):
            rest = max(count - len(targets) + 1, 0)
            tuples[target.value.id] = slice(len(found), len(found) + rest)
            names = [ast.Name(place_of(target.value.id, index), ast.Store()) for index in range(rest)]
            found += [ast.copy_location(name, target) for name in names]
        else:
            found.append(target)
    return found, tuples


def _round(reader: TirStatementReader, node: ast.AST, body: Sequence[ast.stmt], jumps: frozenset[int]) -> None:
    """One round of a loop; those after a jump out of it do nothing."""
    if BREAK in jumps or RETURN in jumps:
        op = IfOp(reader.jumps.running(node))
        with reader.inside(op.then_body.block):
            reader.body(body)
        reader.block.add_op(op)
    else:
        reader.body(body)
    if CONTINUE in jumps:
        reader.jumps.reset(node, CONTINUE)


def _open(reader: TirStatementReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    # blocks inside have the domain that the loop begins with, whatever becomes of the memory that it was read from
    loop.lower, loop.upper = (_read_once(reader, node, each) for each in (loop.lower, loop.upper))
    variable = open_loop(reader, node, loop, name) if loop.tag is None else open_thread(reader, node, loop, name)
    reader.scope.bind(name, variable)
    reader.extents.pop(name, None)
    if loop.is_plain:
        count = reader.apply(node, "Sub", loop.upper, loop.lower)
        reader.extents[name] = (loop.lower, reader.index(node, count))
    return variable


def _read_once(reader: TirStatementReader, node: ast.AST, place: Place) -> Place:
    """A bound of a loop, as a value if it is data."""
    return reader.variable(reader.index_value(node, place), INDEX) if loads(place) else place


def read_while(reader: TirStatementReader, node: ast.While) -> None:
    """Reads `while condition:`; a jump out of it ends it."""
    op, jumps = WhileOp(), jumps_of(reader.aliases, node.body)
    with reader.inside(op.before.block):
        condition = reader.condition(node.test) if not jumps else _guarded(reader, node)
        reader.block.add_op(ConditionOp(condition))
    with reader.inside(op.body.block):
        reader.body(node.body)
        if CONTINUE in jumps:
            reader.jumps.reset(node, CONTINUE)
    reader.block.add_op(op)
    if BREAK in jumps:
        reader.jumps.reset(node, BREAK)


def _guarded(reader: TirStatementReader, node: ast.While) -> SSAValue:
    operand = reader.scalar_operand(node.test, reader.value(node.test))
    scalar = te.const(operand, "i1") if isinstance(operand, bool) else reader.emit(node, lambda: promoted(operand)[0])
    return reader.values(node, reader.jumps.while_running(node, scalar))[0]


def read_if(reader: TirStatementReader, node: ast.If) -> None:
    """Reads a branch."""
    op = IfOp(reader.condition(node.test))
    for statements, region in ((node.body, op.then_body), (node.orelse, op.else_body)):
        with reader.inside(region.block):
            reader.body(statements)
    reader.block.add_op(op)


def read_assert(reader: TirStatementReader, node: ast.Assert) -> None:
    """Reads `assert condition, message`."""
    parts = [] if node.msg is None else _texts(reader, node.msg)
    # the kind of error, then the parts of the message
    kind, parts = (parts[0], parts[1:]) if len(parts) > 1 else (DEFAULT_ERROR, parts)
    if kind not in ERROR_KINDS:
        kind, parts = DEFAULT_ERROR, [kind, ": ", *parts]
    message = "".join(parts) or "the assertion does not hold"
    reader.block.add_op(AssertOp(reader.condition(node.test), message, kind))


def _texts(reader: TirStatementReader, node: ast.expr) -> list[str]:
    """The parts of a message; what a metadata section has, which is printed apart, is left out."""
    match node:
        case ast.Tuple(elts=nodes) | ast.List(elts=nodes):
            return [text for each in nodes for text in _texts(reader, each)]
        case ast.Subscript(value=ast.Subscript(value=ast.Name(id="metadata"))):
            return [" ... "]
        case _:
            return _strings(reader.value(node))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for each in items_of(value) or () for text in _strings(each)]


CONTROL: Mapping[type[ast.stmt], Callable[[TirStatementReader, Any], None]] = {
    ast.For: read_for,
    ast.While: read_while,
    ast.If: read_if,
    ast.Assert: read_assert,
}
"""What reads a statement of a class."""
