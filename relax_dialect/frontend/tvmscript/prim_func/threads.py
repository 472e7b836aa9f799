"""Threads of GPUs as loops: `T.thread_binding`, `T.launch_thread`, `T.env_thread`.

Threads that do not exchange data do what rounds of a loop do, and run one after the other. A name of a thread that is
bound again inside stands for the same round.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.loops import Loop, open_loop
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.static import StaticReader
from tir_dialect.dims import constant
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import LoopKind

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader

_LAUNCHES = frozenset({"thread_binding", "launch_thread", "env_thread"})
_EXCHANGED = frozenset({"shared", "warp"})


@dataclass(frozen=True)
class Thread:
    """A thread that `T.env_thread` names, and `T.launch_thread` gives an extent."""

    tag: str


def refuse_exchange(reader: StaticReader, function: ast.AST) -> None:
    """Refuses a function whose threads exchange data by memory that they share: rounds of a loop cannot."""
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    if not any(reader.aliases.name_in("tir", each.func) in _LAUNCHES for each in calls):
        return
    for call in calls:
        for scope in [*call.args, *(each.value for each in call.keywords)]:
            text = scope.value if isinstance(scope, ast.Constant) else None
            if isinstance(text, str) and text.partition(".")[0] in _EXCHANGED:
                reader.fail(scope, f'threads of GPUs exchange data in "{text}" memory; GPUs are not a target')


def env_thread(reader: StaticReader, node: ast.Call) -> Thread:
    """`tx = T.env_thread("threadIdx.x")`."""
    return Thread(reader.text(Arguments(reader.source, node, "T.env_thread", "thread_tag dtype").require("thread_tag")))


def open_thread(reader: TirStatementReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    """Goes into the loop of a thread, or stays in that of the same one; gives its variable."""
    tag = loop.tag or ""
    variable = reader.threads.get(tag)
    if variable is None:
        variable = open_loop(reader, node, loop, name)
        reader.threads[tag] = variable
    return variable


def launched(reader: TirStatementReader, statement: ast.stmt) -> tuple[ast.Call, str | None] | None:
    """The call and the name of `bx = T.launch_thread("blockIdx.x", n)`, in whose loop the statements behind it are."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=found)], value=ast.Call() as call):
            name = found
        case ast.Expr(value=ast.Call() as call):
            name = None
        case _:
            return None
    return (call, name) if reader.aliases.name_in("tir", call.func) == "launch_thread" else None


def read_launch(reader: TirStatementReader, call: ast.Call, name: str | None, body: Sequence[ast.stmt]) -> None:
    """Reads statements for every thread of an extent."""
    given = Arguments(reader.source, call, "T.launch_thread", "thread extent")
    thread_node, extent = given.require("thread"), given.require("extent")
    thread = reader.value(thread_node)
    tag = thread.tag if isinstance(thread, Thread) else reader.text(thread_node)
    if name is None:
        name = thread_node.id if isinstance(thread_node, ast.Name) else tag.replace(".", "_")
    upper = reader.index(extent, reader.value(extent))
    with reader.inside():
        loop = Loop(constant(0), upper, kind=LoopKind.THREAD_BINDING, tag=tag)
        reader.scope.bind(name, open_thread(reader, call, loop, name))
        reader.extents[name] = (constant(0), upper)
        reader.body(body)
