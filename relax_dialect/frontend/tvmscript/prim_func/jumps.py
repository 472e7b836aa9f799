"""`break`, `continue` and `return` inside of a body, by a state that what follows them asks for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.addresses import to_address
from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS, logical_and
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Pointer
from relax_dialect.frontend.tvmscript.text.names import Aliases
from tir_dialect import te
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader

_RUNS = 0
CONTINUE, BREAK, RETURN = 1, 2, 3
"""What has been left: the round of a loop, the loop, the function."""

_NAMES = {
    "continue_loop": CONTINUE,
    "Continue": CONTINUE,
    "break_loop": BREAK,
    "Break": BREAK,
    "ret": RETURN,
    "Return": RETURN,
}


def jump_of(aliases: Aliases, statement: ast.AST) -> int | None:
    """What a statement leaves, if it is a jump."""
    match statement:
        case ast.Continue():
            return CONTINUE
        case ast.Break():
            return BREAK
        case ast.Return():
            return RETURN
        case ast.Expr(value=ast.Call() as call):
            return _NAMES.get(aliases.name_in("tir", _evaluated(call).func) or "")
        case _:
            return None


def _evaluated(call: ast.Call) -> ast.Call:
    """The call in `T.evaluate(T.ret(x))`, or the call itself."""
    match call:
        case ast.Call(func=ast.Attribute(attr="evaluate"), args=[ast.Call() as inner]):
            return inner
        case _:
            return call


def jumps_of(aliases: Aliases, statements: Iterable[ast.stmt]) -> frozenset[int]:
    """What may be left by statements, beyond loops among them."""
    found: set[int] = set()
    for statement in statements:
        if (own := jump_of(aliases, statement)) is not None:
            found.add(own)
        inner = [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
        nested = jumps_of(aliases, inner)
        found |= nested - {CONTINUE, BREAK} if isinstance(statement, ast.For | ast.While) else nested
    return frozenset(found)


def returned_value(statement: ast.AST) -> ast.expr | None:
    """The expression that a `return`, `T.ret` or `T.Return` gives; `None` if it gives nothing."""
    match statement:
        case ast.Return(value=value):
            found = value
        case ast.Expr(value=ast.Call() as call):
            found = next(iter(_evaluated(call).args), None)
        case _:
            found = None
    return None if isinstance(found, ast.Constant) and found.value is None else found


class Jumps:
    """The state of one function: 0 while it runs, else what has been left."""

    def __init__(self, reader: TirStatementReader):
        self._reader = reader
        self._state: Buffer | None = None
        self.result: Buffer | None = None
        """Where the returned value goes."""

    def prepare(self, node: ast.AST, statements: Sequence[ast.stmt]) -> None:
        """Makes the state, unless the only jump is the last statement."""
        aliases = self._reader.aliases
        for each in statements:
            if jumps_of(aliases, [each]) - {RETURN}:
                self._reader.fail(each, "break and continue belong into a loop")
        ends = bool(statements) and jump_of(aliases, statements[-1]) == RETURN
        body = statements[:-1] if ends else statements
        if any(jumps_of(aliases, [each]) for each in body) or any(map(self._in_loop, body)):
            self._state = alloc(self._reader, node, BufferType([], i32, scope="local"), "left")
            self.store(node, _RUNS)

    def _in_loop(self, statement: ast.stmt) -> bool:
        return any(jump_of(self._reader.aliases, each) is not None for each in ast.walk(statement))

    def leaves(self, statement: ast.stmt) -> bool:
        """Whether what follows a statement is skipped if that has jumped."""
        return self._state is not None and bool(jumps_of(self._reader.aliases, [statement]))

    def jump(self, node: ast.stmt, kind: int) -> None:
        """Reads a jump."""
        if kind == RETURN and (value := returned_value(node)) is not None:
            self._return(node, value)
        self.store(node, kind)

    def _return(self, node: ast.stmt, value: ast.expr) -> None:
        reader, result = self._reader, self.result
        if result is None:
            reader.fail(node, "expected the type of what is returned, as -> T.int32")
        given = reader.value(value)
        given = to_address(reader, value, given) if isinstance(given, Buffer | Pointer) else given
        stored = reader.scalar_value(node, given, result.tensor.dtype)
        reader.block.add_op(reader.emit(node, lambda: StoreOp(stored, result.value, [])))

    def store(self, node: ast.AST, kind: int) -> None:
        """Says what has been left, if anything asks for it."""
        if self._state is not None:
            (value,) = self._reader.values(node, te.const(kind, "i32"))
            self._reader.block.add_op(StoreOp(value, self._state.value, []))

    def _is(self, node: ast.AST, kind: int) -> Scalar:
        state = self._state
        if state is None:
            return te.const(kind == _RUNS, "i1")
        return self._reader.emit(node, lambda: FUNCTIONS["EQ"](state.tensor[()], kind))

    def running(self, node: ast.AST) -> SSAValue:
        """Whether nothing has been left."""
        return self._reader.values(node, self._is(node, _RUNS))[0]

    def while_running(self, node: ast.AST, condition: Scalar | float) -> Scalar:
        """A condition that is asked for while nothing has been left."""
        running = self._is(node, _RUNS)
        return self._reader.emit(node, lambda: logical_and(running, condition))

    def reset(self, node: ast.AST, kind: int) -> None:
        """Goes on behind what has been left."""
        (left,) = self._reader.values(node, self._is(node, kind))
        op = IfOp(left)
        with self._reader.inside(op.then_body.block):
            self.store(node, _RUNS)
        self._reader.block.add_op(op)
