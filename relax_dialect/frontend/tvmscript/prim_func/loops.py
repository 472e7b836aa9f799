"""Control flow of PrimFuncs: loops, threads of GPUs as loops, branches, assertions, and jumps out of them."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.prim_func.bindings import (
    BREAK,
    CONTINUE,
    RETURN,
    TirBindingReader,
    jump_of,
    jumps_of,
    loop_variable_name,
    returned_value,
)
from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc, to_address
from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.intrinsics import Thread, is_wide
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS, loads, logical_and, promoted
from relax_dialect.frontend.tvmscript.prim_func.scalars import Buffer, Index, Pointer
from relax_dialect.frontend.tvmscript.program import Program
from relax_dialect.frontend.tvmscript.scopes import Scope
from relax_dialect.frontend.tvmscript.source import Aliases, Source
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.frontend.tvmscript.types import as_attributes
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.ops.arithmetic import DEFAULT_ERROR, ERROR_KINDS, AssertOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te.expr import INDEX
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType, LoopKind, as_name_hint

_KINDS = {
    "serial": LoopKind.SERIAL,
    "parallel": LoopKind.PARALLEL,
    "vectorized": LoopKind.VECTORIZED,
    "unroll": LoopKind.UNROLLED,
    "unrolled": LoopKind.UNROLLED,
    "range": LoopKind.SERIAL,
    "thread_binding": LoopKind.THREAD_BINDING,
}


@dataclass
class Loop:
    """One loop of the text."""

    lower: Scalar | Dim
    upper: Scalar | Dim
    step: Scalar | Dim | int = 1
    kind: LoopKind = LoopKind.SERIAL
    annotations: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    tag: str | None = None
    """The thread of a GPU that a round would be."""

    @property
    def is_plain(self) -> bool:
        """Whether the loop goes through all values from its first one on."""
        return isinstance(self.step, int) and self.step == 1


def read_loops(reader: TirExpressionReader, node: ast.expr) -> list[Loop]:
    """The loops that the iterator of a `for` stands for, outermost first."""
    if isinstance(node, ast.Call):
        node = reader.meant_call(node)
        name = node.func.id if isinstance(node.func, ast.Name) else reader.aliases.name_in("tir", node.func)
        if name == "grid":
            for keyword in node.keywords:
                if keyword.arg != "dtype":
                    reader.fail(keyword.value, "T.grid expected the numbers of rounds, and dtype")
            return [loop for each in node.args for loop in _extents(reader, each)]
        if name in _KINDS:
            return [_loop(reader, node, name)]
    reader.fail(node, "expected range, T.serial, T.parallel, T.vectorized, T.unroll or T.grid")


def loop_names(reader: TirExpressionReader, node: ast.expr) -> Sequence[ast.expr]:
    """The loop variables of a list, or of one name for several."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_loop_name(each) for each in node.elts]
    items = items_of(reader.value(node)) if isinstance(node, ast.Name) else None
    if items is None or not isinstance(node, ast.Name):
        return [_loop_name(node)]
    names = [ast.Name(loop_variable_name(node.id, index), ast.Load()) for index in range(len(items))]
    return [ast.copy_location(name, node) for name in names]


def _loop_name(node: ast.expr) -> ast.expr:
    """The variable that `i[0]` means, for a name of several."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
            return ast.copy_location(ast.Name(loop_variable_name(name, index), ast.Load()), node)
        case _:
            return node


def _extents(reader: TirExpressionReader, node: ast.expr) -> list[Loop]:
    """One loop for an argument of `T.grid`; of `*A.shape`, one for each dimension."""
    if not isinstance(node, ast.Starred):
        return [_counted(reader, node, reader.value(node))]
    items = items_of(reader.value(node.value))
    if items is None:
        reader.fail(node, "expected a tuple of dimensions after *")
    return [_counted(reader, node, item) for item in items]


def _counted(reader: TirExpressionReader, node: ast.expr, value: object) -> Loop:
    ends = items_of(value)
    if ends is not None and len(ends) == 2:
        return Loop(reader.index(node, ends[0]), reader.index(node, ends[1]))
    return Loop(constant(0), reader.index(node, value))


def _loop(reader: TirExpressionReader, node: ast.Call, name: str) -> Loop:
    what = name if name == "range" else f"T.{name}"
    given = reader.arguments(
        node, what, "start stop third annotations step thread dtype", {"begin": "start", "end": "stop"}
    )
    start, stop, thread = given.get("start"), given.get("stop"), given.get("thread")
    if name == "thread_binding" and thread is None:
        thread = given.get("third") or stop
        stop = None if thread is stop else stop
    if stop is None:
        start, stop = None, start
    if stop is None:
        reader.fail(node, f"{what} expected the end of the range")
    lower = constant(0) if start is None else reader.index(start, reader.value(start))
    loop = Loop(lower, reader.index(stop, reader.value(stop)), kind=_KINDS[name])
    if name == "thread_binding":
        loop.tag = reader.text(thread) if thread is not None else reader.fail(node, f"{what} expected the thread")
    step = given.get("step") if loop.tag is not None else given.first("step", "third")
    if step is not None:
        value = reader.value(step)
        loop.step = value if isinstance(value, int) else reader.index(step, value)
        if isinstance(loop.step, int) and loop.step == 0:
            reader.fail(step, "expected a step that is not 0")
    if (notes := given.get("annotations")) is not None:
        found = reader.value(notes)
        if isinstance(found, dict):
            loop.annotations = as_attributes(reader.source, notes, cast("dict[str, object]", found))
    return loop


def open_loop(reader: TirExpressionReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    """Appends a loop and goes into it; gives its variable."""
    lower, upper = loop.lower, loop.upper
    start = None if isinstance(lower, Dim) and lower.constant_value == 0 else lower
    if not loop.is_plain:
        upper = _rounds(reader, node, loop)
        start = None
    op = ForOp(
        reader.index_value(node, upper),
        lower=None if start is None else reader.index_value(node, start),
        kind=loop.kind,
        thread_tag=loop.tag,
        annotations=loop.annotations or None,
        name_hint=as_name_hint(name),
    )
    reader.block.add_op(op)
    reader.block = op.body.block
    variable = reader.variable(op.induction_var, INDEX, name)
    if loop.is_plain:
        return variable
    return reader.emit(node, lambda: FUNCTIONS["Add"](lower, FUNCTIONS["Mul"](variable, loop.step)))


def _rounds(reader: TirExpressionReader, node: ast.AST, loop: Loop) -> Scalar | Dim:
    """How often a loop with a step runs, downwards if it is negative; never, if one that is data is negative."""
    lower, upper, step = loop.lower, loop.upper, loop.step
    if isinstance(step, int) and step < 0:
        lower, upper, step = upper, lower, -step
    if isinstance(lower, Dim) and isinstance(upper, Dim) and isinstance(step, int):
        return ceildiv(upper - lower, constant(step))
    return reader.emit(node, lambda: FUNCTIONS["ceildiv"](FUNCTIONS["Sub"](upper, lower), step))


_RUNS = 0


class Jumps:
    """The state of one function: 0 while it runs, else what has been left."""

    def __init__(self, reader: TirBindingReader):
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
        if any(jump_of(aliases, each) is not None for statement in body for each in ast.walk(statement)):
            self._state = alloc(self._reader, node, BufferType([], i32, scope="local"), "left")
            self.store(node, _RUNS)

    def leaves(self, statement: ast.stmt) -> bool:
        """Whether what follows a statement is skipped if that has jumped."""
        return self._state is not None and bool(jumps_of(self._reader.aliases, [statement]))

    def jump(self, node: ast.stmt, kind: int) -> None:
        """Reads a jump."""
        if kind == RETURN and (value := returned_value(node)) is not None:
            reader, result = self._reader, self.result
            if result is None:
                reader.fail(node, "expected the type of what is returned, as -> T.int32")
            given = reader.value(value)
            given = to_address(reader, value, given) if isinstance(given, Buffer | Pointer) else given
            stored = reader.scalar_value(node, given, result.tensor.dtype)
            reader.block.add_op(reader.emit(node, lambda: StoreOp(stored, result.value, [])))
        self.store(node, kind)

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
        """Goes on after what has been left."""
        (left,) = self._reader.values(node, self._is(node, kind))
        op = IfOp(left)
        with self._reader.inside(op.then_body.block):
            self.store(node, _RUNS)
        self._reader.block.add_op(op)


_LAUNCHES = frozenset({"thread_binding", "launch_thread", "env_thread"})

_SHARED_SCOPES = frozenset({"shared", "warp"})


def refuse_exchange(reader: StaticReader, function: ast.AST) -> None:
    """Refuses a function whose threads exchange data by memory that they share: rounds of a loop cannot."""
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    if not any(reader.aliases.name_in("tir", each.func) in _LAUNCHES for each in calls):
        return
    for call in calls:
        for scope in [*call.args, *(each.value for each in call.keywords)]:
            text = scope.value if isinstance(scope, ast.Constant) else None
            if isinstance(text, str) and text.partition(".")[0] in _SHARED_SCOPES:
                reader.fail(scope, f'threads of GPUs exchange data in "{text}" memory; GPUs are not a target')


def open_thread(reader: TirFlowReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    """Goes into the loop of a thread, or stays in that of the same one; gives its variable."""
    tag = loop.tag or ""
    variable = reader.threads.get(tag)
    if variable is None:
        variable = open_loop(reader, node, loop, name)
        reader.threads[tag] = variable
    return variable


def launched(reader: TirFlowReader, statement: ast.stmt) -> tuple[ast.Call, str | None] | None:
    """The call and the name of `bx = T.launch_thread("blockIdx.x", n)`, in whose loop the statements after it are."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=found)], value=ast.Call() as call):
            name = found
        case ast.Expr(value=ast.Call() as call):
            name = None
        case _:
            return None
    return (call, name) if reader.aliases.name_in("tir", call.func) == "launch_thread" else None


def read_launch(reader: TirFlowReader, call: ast.Call, name: str | None, body: Sequence[ast.stmt]) -> None:
    """Reads statements for every thread of an extent."""
    given = reader.arguments(call, "T.launch_thread", "thread extent")
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


def read_for(reader: TirFlowReader, node: ast.For) -> None:
    """Reads `for i, j in T.grid(n, m):`."""
    if node.orelse:
        reader.fail(node.orelse[0], "a loop has no else")
    loops = read_loops(reader, node.iter)
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    reader.wide = reader.wide | names if is_wide(reader.aliases, node.iter, reader.wide) else reader.wide - names
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    nest(reader, node, loops, targets, node.body)


def nest(
    reader: TirFlowReader,
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
        names = [loop_variable_name(together, index) for index in range(len(loops))]
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
        for name, position in tuples.items():
            reader.scope.bind(name, tuple(variables[position]))
        # One round of a loop; those after a jump out of it do nothing.
        if BREAK in jumps or RETURN in jumps:
            op = IfOp(reader.jumps.running(node))
            with reader.inside(op.then_body.block):
                reader.body(body)
            reader.block.add_op(op)
        else:
            reader.body(body)
        if CONTINUE in jumps:
            reader.jumps.reset(node, CONTINUE)
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
            names = [ast.Name(loop_variable_name(target.value.id, index), ast.Store()) for index in range(rest)]
            found += [ast.copy_location(name, target) for name in names]
        else:
            found.append(target)
    return found, tuples


def _open(reader: TirFlowReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    # blocks inside have the domain that the loop begins with, whatever becomes of the memory that it was read from
    loop.lower, loop.upper = (_read_once(reader, node, each) for each in (loop.lower, loop.upper))
    variable = open_loop(reader, node, loop, name) if loop.tag is None else open_thread(reader, node, loop, name)
    reader.scope.bind(name, variable)
    reader.extents.pop(name, None)
    if loop.is_plain:
        count = reader.apply(node, "Sub", loop.upper, loop.lower)
        reader.extents[name] = (loop.lower, reader.index(node, count))
    return variable


def _read_once(reader: TirFlowReader, node: ast.AST, index: Index) -> Index:
    """A bound of a loop, as a value if it is data."""
    return reader.variable(reader.index_value(node, index), INDEX) if loads(index) else index


def read_while(reader: TirFlowReader, node: ast.While) -> None:
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


def _guarded(reader: TirFlowReader, node: ast.While) -> SSAValue:
    operand = reader.scalar_operand(node.test, reader.value(node.test))
    scalar = te.const(operand, "i1") if isinstance(operand, bool) else reader.emit(node, lambda: promoted(operand)[0])
    return reader.values(node, reader.jumps.while_running(node, scalar))[0]


def read_if(reader: TirFlowReader, node: ast.If) -> None:
    """Reads a branch."""
    op = IfOp(reader.condition(node.test))
    for statements, region in ((node.body, op.then_body), (node.orelse, op.else_body)):
        with reader.inside(region.block):
            reader.body(statements)
    reader.block.add_op(op)


def read_assert(reader: TirFlowReader, node: ast.Assert) -> None:
    """Reads `assert condition, message`."""
    parts = [] if node.msg is None else _texts(reader, node.msg)
    # the kind of error, then the parts of the message
    kind, parts = (parts[0], parts[1:]) if len(parts) > 1 else (DEFAULT_ERROR, parts)
    if kind not in ERROR_KINDS:
        kind, parts = DEFAULT_ERROR, [kind, ": ", *parts]
    message = "".join(parts) or "the assertion does not hold"
    reader.block.add_op(AssertOp(reader.condition(node.test), message, kind))


def _texts(reader: TirFlowReader, node: ast.expr) -> list[str]:
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


CONTROL: Mapping[type[ast.stmt], Callable[[TirFlowReader, Any], None]] = {
    ast.For: read_for,
    ast.While: read_while,
    ast.If: read_if,
    ast.Assert: read_assert,
}
"""What reads a statement of a class."""


class TirFlowReader(TirBindingReader):
    """Reads statements that control what runs, of which the reader of all statements is a subclass."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope, program: Program):
        super().__init__(source, aliases, scope, program)
        self.jumps = Jumps(self)

    @abstractmethod
    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Reads statements into the current block."""
