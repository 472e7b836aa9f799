"""Statements of PrimFuncs: which reader each has, `with` scopes, calls for their effect, calls of other PrimFuncs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.functions import call_helper, read_inline
from relax_dialect.frontend.tvmscript.prim_func.bindings import ScopedStatements, jump_of, standing_for
from relax_dialect.frontend.tvmscript.prim_func.blocks import read_block, read_init
from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc, memory_at, to_address, view
from relax_dialect.frontend.tvmscript.prim_func.expressions import store_at, store_vector_at
from relax_dialect.frontend.tvmscript.prim_func.intrinsics import refuse
from relax_dialect.frontend.tvmscript.prim_func.loops import (
    CONTROL,
    TirFlowReader,
    launched,
    nest,
    read_launch,
    read_loops,
)
from relax_dialect.frontend.tvmscript.prim_func.scalars import Buffer, Pointer, Region
from relax_dialect.frontend.tvmscript.scopes import FunctionRef, ModuleRef
from tir_dialect.dims import Dim
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType


class TirStatementReader(TirFlowReader):
    """Reads the body of one PrimFunc."""

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for index, statement in enumerate(statements, 1):
            before = self.block.last_op
            if (launch := launched(self, statement)) is not None:
                read_launch(self, *launch, statements[index:])
                return
            self._statement(statement)
            # Gives the ops that a statement has made its position.
            filename, line, column = self.source.location(statement)
            location: LocationAttr = FileLineColLoc(StringAttr(filename), IntAttr(line), IntAttr(column))
            op = self.block.last_op
            while op is not None and op is not before:
                op.location = location
                op = op.prev_op
            if index < len(statements) and self.jumps.leaves(statement):
                op = IfOp(self.jumps.running(statement))
                with self.inside(op.then_body.block):
                    self.body(statements[index:])
                self.block.add_op(op)
                return

    def _statement(self, node: ast.stmt) -> None:
        if (kind := jump_of(self.aliases, node)) is not None:
            self.jumps.jump(node, kind)
            return
        if (read := CONTROL.get(type(node))) is not None:
            read(self, node)
            return
        match node:
            case ast.Assign(targets=[target]):
                self.assign(node, target, node.value)
            case ast.AnnAssign():
                self.annotated(node)
            case ast.AugAssign():
                self.augmented(node)
            case ast.With():
                read_scope(self, node)
            case ast.Expr():
                read_effect(self, node.value)
            case ast.FunctionDef() if (inline := read_inline(self, node)) is not None:
                self.scope.bind(node.name, inline)
            case ScopedStatements():
                with self.reading_in(node.scope):
                    self.body(node.body)
            case ast.Pass():
                pass
            case _:
                self.fail(node, "expected a store, a binding, a loop, a branch, a block or a call")

    def call(self, node: ast.Call) -> object:
        node = self.meant_call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "vstore":
            return store_vector_at(self, node, node.func.value)
        found = self.inline_of(node.func)
        if found is not None:
            # Expands a macro: reads its body instead of the call.
            inline = found
            try:
                with standing_for(self, node, inline) as body:
                    self.body(body)
            except RecursionError:
                self.fail(node, f"{inline.node.name} calls itself, which nothing ends")
            return None
        if self.aliases.name_in("tir", node.func) == "call_tir" and node.args:
            # what T.call_tir(module.f, x) calls
            node = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
        if (callee := callee_of(self, node.func)) is not None:
            return call_prim_func(self, node, callee)
        try:
            helper = call_helper(self, node)
        except RecursionError:
            self.fail(node, f"{ast.unparse(node.func)} calls itself, which nothing ends")
        return super().call(node) if helper is None else helper[0]


def read_effect(reader: TirFlowReader, node: ast.expr) -> None:
    """Reads an expression that is a statement."""
    name = reader.aliases.name_in("tir", node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and name is not None and (read := _EFFECTS.get(name)) is not None:
        read(reader, node)
    elif not isinstance(node, ast.Constant):
        evaluate(reader, node)


def evaluate(reader: TirFlowReader, node: ast.expr) -> None:
    """Evaluates an expression for what its calls do."""
    reader.wants_value = False
    try:
        value = reader.value(node)
    finally:
        reader.wants_value = True
    if isinstance(value, Scalar):
        reader.values(node, value)


def _evaluate(reader: TirFlowReader, node: ast.Call) -> None:
    """`T.evaluate(value)`."""
    evaluate(reader, reader.arguments(node, "T.evaluate", "value").require("value"))


def _bind(reader: TirFlowReader, node: ast.Call) -> None:
    """`T.bind(value, var=x)`."""
    var = reader.arguments(node, "T.bind", "value type_annotation var").get("var")
    if not isinstance(var, ast.Name):
        reader.fail(node, "expected a name to bind: x = T.bind(value)")
    reader.scope.bind(var.id, reader.named(var.id, node))


def _buffer(reader: TirFlowReader, node: ast.expr) -> Buffer:
    found = reader.value(node)
    if not isinstance(found, Buffer):
        reader.fail(node, "expected a buffer to store to")
    return found


def _buffer_store(reader: TirFlowReader, node: ast.Call) -> None:
    """`T.buffer_store(A, value, [i, j], predicate)`."""
    given = reader.arguments(node, "T.buffer_store", "buffer value indices predicate")
    buffer, value = _buffer(reader, given.require("buffer")), reader.value(given.require("value"))
    store_at(reader, node, buffer, given.require("indices"), value, given.get("predicate"))


def _masked_store(reader: TirFlowReader, node: ast.Call) -> None:
    """`T.masked_store(A, value, i, j, mask)`."""
    given = reader.arguments(node, "T.masked_store", "buffer value *places")
    if len(given.rest) < 2:
        reader.fail(node, "T.masked_store expected a buffer, a value, the place and a mask")
    *indices, mask = given.rest
    begin = ast.copy_location(ast.List(indices, ast.Load()), node)
    buffer, value = _buffer(reader, given.require("buffer")), reader.value(given.require("value"))
    store_at(reader, node, buffer, begin, value, mask)


def _static_assert(reader: TirFlowReader, node: ast.Call) -> None:
    """`T.static_assert(condition, message)`: at once if it is known, else when the program runs."""
    given = reader.arguments(node, "T.static_assert", "condition message")
    condition, message = given.require("condition"), given.get("message")
    text = "the assertion does not hold" if message is None else reader.text(message)
    known = reader.value(condition)
    if isinstance(known, bool | int):
        if not known:
            reader.fail(condition, text or "the assertion does not hold")
        return
    reader.block.add_op(AssertOp(reader.condition(condition), text))


def _hint(reader: TirFlowReader, node: ast.Call) -> None:
    """What passes of TVM are told, which does not change what the function computes."""


def _of_block(reader: TirFlowReader, node: ast.Call) -> None:
    reader.fail(node, f"T.{reader.aliases.name_in('tir', node.func)} belongs into a block")


_EFFECTS: Mapping[str, Callable[[TirFlowReader, ast.Call], None]] = {
    "evaluate": _evaluate,
    "bind": _bind,
    "buffer_store": _buffer_store,
    "masked_store": _masked_store,
    "static_assert": _static_assert,
    **dict.fromkeys(("func_attr", "attr", "assume", "hint", "prefetch"), _hint),
    **dict.fromkeys(("reads", "writes", "where", "sblock_attr", "block_attr"), _of_block),
}


def call_prim_func(reader: TirFlowReader, node: ast.Call, callee: str) -> object:
    """Calls a PrimFunc; the value is what it returns, which it writes after its other arguments."""
    func = reader.program.prim_func(callee)
    if func is None:
        reader.fail(node.func, f"{callee} is a relax function, which a PrimFunc cannot call")
    given = reader.arguments(node, callee, "*arguments").rest
    arguments: list[SSAValue] = []
    sizes: dict[str, SSAValue] = {}
    params = iter(func.op.params)
    for index, argument in enumerate(given):
        name = func.symbol_at(index)
        if name is not None:
            sizes[name] = reader.index_value(argument, reader.value(argument))
        elif func.is_unused(index):
            continue
        elif (param := next(params, None)) is not None:
            arguments.append(_argument(reader, argument, param))
        else:
            reader.fail(argument, f"{callee} takes {len(func.op.params)} arguments")
    result = None if func.result is None else alloc(reader, node, func.result, "returned")
    if result is not None:
        arguments.append(result.value)
    _solve(reader, node, func.op, arguments, sizes)
    values = [sizes[name] for name in func.op.symbol_names]
    reader.block.add_op(reader.emit(node, lambda: CallOp(callee, values, arguments)))
    if result is None:
        return None
    # read at once: the next call writes elsewhere, but what is returned may be used after other effects
    (value,) = reader.values(node, reader.load(node, Region(result, ())))
    return reader.variable(value, result.tensor.dtype)


def callee_of(reader: TirFlowReader, node: ast.expr) -> str | None:
    """The PrimFunc of the module that an expression names."""
    if isinstance(node, ast.Name):
        found = reader.scope.find(node.id)
        if isinstance(found, FunctionRef):
            return found.name
        return node.id if found is None and node.id in reader.program else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = reader.scope.find(node.value.id)
        if (isinstance(owner, ModuleRef) or reader.program.is_module(node.value.id)) and node.attr in reader.program:
            return node.attr
    return None


def _argument(reader: TirFlowReader, node: ast.expr, param: SSAValue) -> SSAValue:
    value = reader.value(node)
    if isinstance(param.type, BufferType):
        if isinstance(value, Pointer):
            value = _over_memory(reader, node, value, param.type)
        if not isinstance(value, Buffer):
            reader.fail(node, f"expected a buffer of type {param.type}")
        return value.value
    # what has no dtype of its own takes that of the parameter
    is_open = isinstance(value, bool | int | float | Dim) or (isinstance(value, Scalar) and is_index(value.dtype))
    made = reader.scalar_value(node, value, to_dtype(str(param.type)) if is_open else None)
    if made.type != param.type:
        reader.fail(node, f"expected a scalar of type {param.type}, got {made.type}; convert it with T.Cast")
    return made


def _over_memory(reader: TirFlowReader, node: ast.expr, memory: Pointer, kind: BufferType) -> Buffer:
    """The buffer that a callee declares over memory; a vector of what is left, where it does not say how much."""
    if kind.symbols:
        left = reader.emit(node, lambda: memory.extent - reader.to_dim(node, memory.start))
        kind = BufferType([left], memory.dtype, scope=memory.scope)
    return view(reader, node, memory, kind)


def _solve(
    reader: TirFlowReader,
    node: ast.AST,
    func: PrimFuncOp,
    arguments: list[SSAValue],
    sizes: dict[str, SSAValue],
) -> None:
    """The values of the callee's symbols that stand alone in a shape."""
    for param, argument in zip(func.params, arguments, strict=False):
        if isinstance(param.type, BufferType) and isinstance(argument.type, BufferType):
            for dim, known in zip(param.type.shape, argument.type.shape, strict=False):
                if dim.as_symbol is not None and dim.as_symbol not in sizes:
                    sizes[dim.as_symbol] = reader.dim_value(node, known)
    for name in func.symbol_names:
        if name not in sizes:
            reader.fail(node, f"the dimension {name} of {func.sym_name.data} follows from no argument's shape")


_BLOCKS = frozenset({"sblock", "block"})


def read_scope(reader: TirFlowReader, node: ast.With) -> None:
    """Reads a statement `with ...:`."""
    item = node.items[0]
    call = item.context_expr
    name = reader.aliases.name_in("tir", call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or name is None:
        reader.fail(call, "expected T.sblock, T.init, or a loop")
    targets = _targets(node)
    if name in _BLOCKS:
        read_block(reader, node, call, targets)
    elif name == "init":
        read_init(reader, node)
    elif name in ("grid", "serial", "parallel", "vectorized", "unroll"):
        nest(reader, node, read_loops(reader, call), targets, node.body)
    elif name in ("Let", "LetStmt", "let"):
        _let(reader, node, call, targets)
    elif name in ("allocate", "decl_buffer", "buffer_decl"):
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            reader.fail(node, "expected one name after `as`")
        with reader.inside():
            reader.scope.bind(targets[0].id, reader.named(targets[0].id, call))
            reader.body(node.body)
    elif name == "launch_thread":
        label = next((each.id for each in targets if isinstance(each, ast.Name)), None)
        read_launch(reader, call, label, node.body)
    elif name == "hint":
        reader.body(node.body)
    elif name in ("attr", "Assert", "realize"):
        _marked(reader, node, call, name)
    else:
        refuse(reader, call, name)


# Other scopes


def _let(reader: TirFlowReader, node: ast.With, call: ast.Call, targets: Sequence[ast.expr]) -> None:
    given = reader.arguments(call, "T.LetStmt", "value type_annotation var")
    value, var = given.require("value"), given.get("var")
    if isinstance(var, ast.Attribute) and var.attr == "data":
        with reader.inside():
            # `T.LetStmt(pointer, var=A.data)`: a buffer that has been declared lies at an address.
            target = var.value
            buffer = reader.value(target)
            if not isinstance(target, ast.Name) or not isinstance(buffer, Buffer):
                reader.fail(target, "expected the name of a buffer")
            address = to_address(reader, value, reader.value(value))
            reader.scope.bind(target.id, memory_at(reader, value, address, buffer.type, target.id))
            reader.body(node.body)
        return
    names = [*targets, *([] if var is None else [var])]
    if len(names) != 1 or not isinstance(names[0], ast.Name):
        reader.fail(node, "expected one name after `as`")
    with reader.inside():
        reader.scope.bind(names[0].id, reader.named(names[0].id, value))
        reader.body(node.body)


def _marked(reader: TirFlowReader, node: ast.With, call: ast.Call, name: str) -> None:
    if name == "realize":
        reader.fail(call, "T.realize is for storage that TVM no longer has; write T.alloc_buffer")
    if name == "Assert":
        given = reader.arguments(call, "T.Assert", "condition message")
        message = given.get("message")
        text = "the assertion does not hold" if message is None else reader.text(message)
        reader.block.add_op(AssertOp(reader.condition(given.require("condition")), text))
        reader.body(node.body)
        return
    given = reader.arguments(call, "T.attr", "node key value")
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
