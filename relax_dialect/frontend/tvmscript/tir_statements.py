"""Statements of PrimFuncs: stores, loops, branches, blocks, calls."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Block

from relax_dialect.frontend.tvmscript import tir_blocks
from relax_dialect.frontend.tvmscript.arguments import Arguments
from relax_dialect.frontend.tvmscript.declarations import declarations
from relax_dialect.frontend.tvmscript.errors import Source
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.names import Aliases
from relax_dialect.frontend.tvmscript.program import Program
from relax_dialect.frontend.tvmscript.scope import Scope, Unbound
from relax_dialect.frontend.tvmscript.static import is_dtype_name
from relax_dialect.frontend.tvmscript.tir_buffers import DECLARATIONS, allocate, allocate_pointer
from relax_dialect.frontend.tvmscript.tir_expressions import TirExpressionReader, is_vector_region
from relax_dialect.frontend.tvmscript.tir_loops import Loop, open_loop, place_of, read_loops
from relax_dialect.frontend.tvmscript.tir_promotion import converted
from relax_dialect.frontend.tvmscript.tir_scopes import read_scope
from relax_dialect.frontend.tvmscript.tir_values import Buffer, Handle, Region, Vector
from relax_dialect.frontend.tvmscript.tir_vectors import store_vector
from relax_dialect.frontend.tvmscript.tir_views import declare, match_region
from tir_dialect.dims import Dim
from tir_dialect.dtypes import lookup
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.te.expr import Expr as Scalar

_ALLOCATIONS = frozenset({"alloc_buffer", "sblock_alloc_buffer", "alloc_local", "block_alloc_buffer"})


class TirStatementReader(TirExpressionReader):
    """Reads the body of one PrimFunc."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope, program: Program):
        super().__init__(source, aliases, scope)
        self.program = program
        self.extents: dict[str, tuple[Dim, Dim]] = {}
        """First value and number of values of the loop variables that are visible."""

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Reads statements into the current block."""
        for statement in statements:
            before = self.block.last_op
            self._statement(statement)
            self._locate(statement, before)

    def _locate(self, node: ast.stmt, before: object) -> None:
        """Gives the ops that a statement has made its place."""
        filename, line, column = self.source.location(node)
        location: LocationAttr = FileLineColLoc(StringAttr(filename), IntAttr(line), IntAttr(column))
        op = self.block.last_op
        while op is not None and op is not before:
            op.location = location
            op = op.prev_op

    @contextmanager
    def inside(self, block: Block | None = None) -> Generator[None]:
        """Reads into another block for a while; names and axes that are new end with it."""
        saved = self.block, self.axes, dict(self.extents)
        self.block = self.block if block is None else block
        try:
            with self.scope.inner():
                yield
        finally:
            self.block, self.axes, self.extents = saved

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target]):
                self._assign(node, target, node.value)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.AugAssign():
                self._augmented(node)
            case ast.For():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.If():
                self._if(node)
            case ast.With():
                read_scope(self, node)
            case ast.Assert():
                self._assert(node)
            case ast.Expr():
                self._effect(node.value)
            case ast.Pass() | ast.Return(value=None | ast.Constant(value=None)):
                pass
            case _:
                self._refuse(node)

    def _refuse(self, node: ast.stmt) -> NoReturn:
        if isinstance(node, ast.Return):
            self.fail(node, "a PrimFunc returns nothing; store the result in a buffer")
        if isinstance(node, ast.Break | ast.Continue):
            self.fail(node, "loops run to their end; write a condition, or a while loop")
        self.fail(node, "expected a store, a binding, a loop, a branch, a block or a call")

    # Bindings and stores

    def _assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        if found := declarations(self.aliases, target, value):
            for _, name, _ in found:
                if not isinstance(self.scope.find(name), Dim):
                    self.scope.bind(name, Unbound(f"{name} occurs in no shape of a parameter, and is not bound before"))
            return
        match target:
            case ast.Subscript():
                self._store(target, self.value(value))
            case ast.Name():
                self.scope.bind(target.id, self.named(target.id, value))
            case ast.Tuple() | ast.List():
                if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
                    self.fail(value, f"expected {len(target.elts)} values")
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._assign(node, one, other)
            case _:
                self.fail(target, "expected a name, or an element of a buffer")

    def named(self, name: str, node: ast.expr) -> object:
        """What a name is bound to: a buffer, memory, or a scalar that is evaluated here."""
        call = self.aliases.name_in("tir", node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and call is not None:
            if call in _ALLOCATIONS:
                return allocate(self, node, name, f"T.{call}")
            if call in DECLARATIONS:
                return declare(self, node, name, f"T.{call}")
            if call == "allocate":
                return allocate_pointer(self, node)
            if call == "match_buffer":
                return self._match_buffer(name, node)
            if call == "bind":
                node = self._bound_value(node)
        return self._kept(node, self.value(node), name)

    def _bound_value(self, node: ast.Call) -> ast.expr:
        """The value of `T.bind(value, type, var=x)`."""
        return Arguments(self.source, node, "T.bind", "value type_annotation var").require("value")

    def _kept(self, node: ast.AST, value: object, name: str) -> object:
        """A scalar, evaluated once where it is bound."""
        if isinstance(value, Region) and not is_vector_region(value):
            value = self.load(node, value)
        if not isinstance(value, Scalar):
            return value
        (made,) = self.values(node, value)
        made.name_hint = made.name_hint or as_name_hint(name)
        return self.variable(made, value.dtype, name)

    def _match_buffer(self, name: str, node: ast.Call) -> object:
        source = node.args[0] if node.args else None
        if isinstance(source, ast.Subscript):
            owner = self.value(source.value)
            if isinstance(owner, Buffer):
                return match_region(self, node, name, self.region(source, owner))
        value = None if source is None else self.value(source)
        if isinstance(value, Buffer):
            region = tir_blocks.whole(value)
            return match_region(self, node, name, region)
        if isinstance(value, Handle):
            self.fail(node, "T.match_buffer of a parameter belongs to the top of the function")
        self.fail(node, "T.match_buffer expected a parameter, or a region of a buffer")

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name")
        if node.value is None:
            self._assign(node, node.target, ast.copy_location(ast.Call(node.annotation, [], []), node))
            return
        if declarations(self.aliases, node.target, node.value):
            self._assign(node, node.target, node.value)
            return
        name = self.aliases.name_in("tir", node.annotation) or ""
        found = self.named(node.target.id, node.value)
        if is_dtype_name(name) and isinstance(found, bool | int | float | Scalar):
            dtype = self.dtype(node.annotation)
            operand: Scalar | Dim | float = found
            scalar = self.emit(node, lambda: converted(operand, lookup(dtype).type))
            found = self._kept(node, scalar, node.target.id)
        self.scope.bind(node.target.id, found)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        operation = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        result = self.binary(operation, self.value(target), self.value(node.value))
        if isinstance(target, ast.Subscript):
            self._store(target, result)
        elif isinstance(target, ast.Name):
            self.scope.bind(target.id, self._kept(node, result, target.id))
        else:
            self.fail(target, "expected a name, or an element of a buffer")

    def _store(self, target: ast.Subscript, value: object) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, Buffer):
            self.fail(target.value, "expected a buffer to store to")
        region = self.region(target, owner)
        if is_vector_region(region):
            store_vector(self, target, region, value)
            return
        if isinstance(value, Vector) or is_vector_region(value):
            store_vector(self, target, self._row_at(target, region, value), value)
            return
        operand = self.scalar_operand(target, value)
        dtype = lookup(owner.type.dtype).type
        scalar = self.emit(target, lambda: converted(operand, dtype))
        place = self.load(target, region)
        *indices, stored = self.values(target, *place.operands, scalar)
        op = self.emit(target, lambda: StoreOp(stored, owner.value, indices))
        self.block.add_op(op)

    def _row_at(self, node: ast.AST, region: Region, value: object) -> Region:
        self.fail(node, "expected as many elements as the vector has lanes, as A[i:i + 8]")

    # Control flow

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node.orelse[0], "a loop has no else")
        loops = read_loops(self, node.iter)
        targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
        self.nest(node, loops, targets, node.body)

    def nest(self, node: ast.AST, loops: Sequence[Loop], targets: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """Reads statements into a nest of loops."""
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        together = names[0] if len(targets) == len(names) == 1 != len(loops) else None
        if together is not None:
            # one name for the variables of all loops
            names = [place_of(together, index) for index in range(len(loops))]
        elif len(names) != len(loops) or len(targets) != len(loops):
            self.fail(node, f"expected {len(loops)} loop variables, got {len(targets)}")
        with self.inside():
            variables = [self._open(node, *pair) for pair in zip(loops, names, strict=True)]
            if together is not None:
                self.scope.bind(together, tuple(variables))
            self.body(body)

    def _open(self, node: ast.AST, loop: Loop, name: str) -> Scalar:
        variable = open_loop(self, node, loop, name)
        self.scope.bind(name, variable)
        self.extents.pop(name, None)
        if isinstance(loop.lower, Dim) and isinstance(loop.upper, Dim) and loop.step == 1:
            self.extents[name] = (loop.lower, loop.upper - loop.lower)
        return variable

    def _while(self, node: ast.While) -> None:
        op = WhileOp()
        with self.inside(op.before.block):
            self.block.add_op(ConditionOp(self.condition(node.test)))
        with self.inside(op.body.block):
            self.body(node.body)
        self.block.add_op(op)

    def _if(self, node: ast.If) -> None:
        op = IfOp(self.condition(node.test))
        for statements, region in ((node.body, op.then_body), (node.orelse, op.else_body)):
            with self.inside(region.block):
                self.body(statements)
        self.block.add_op(op)

    def _assert(self, node: ast.Assert) -> None:
        message = "the assertion does not hold"
        if node.msg is not None:
            found = self.value(node.msg)
            # the kind of error, then the parts of the message
            parts = _texts(found)
            message = "".join(parts[1:] if len(parts) > 1 else parts) or message
        self.block.add_op(AssertOp(self.condition(node.test), message))

    def _effect(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return
        if not isinstance(node, ast.Call):
            self.fail(node, "expected a call; a value that nothing uses is no statement")
        name = self.aliases.name_in("tir", node.func)
        match name:
            case "evaluate":
                inner = Arguments(self.source, node, "T.evaluate", "value").require("value")
                value = self.value(inner)
                if isinstance(value, Scalar):
                    self.values(node, value)
            case "bind":
                var = Arguments(self.source, node, "T.bind", "value type_annotation var").get("var")
                if not isinstance(var, ast.Name):
                    self.fail(node, "expected a name to bind: x = T.bind(value)")
                self.scope.bind(var.id, self.named(var.id, node))
            case "func_attr" | "attr" | "assume":
                # hints such as pragmas do not change what the function computes
                pass
            case "reads" | "writes" | "where" | "sblock_attr" | "block_attr":
                self.fail(node, f"T.{name} belongs into a block")
            case _:
                self._called(node)

    def _called(self, node: ast.Call) -> None:
        from relax_dialect.frontend.tvmscript.tir_prim_calls import call_prim_func

        if not call_prim_func(self, node):
            value = self.value(node)
            if isinstance(value, Scalar):
                self.values(node, value)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for each in items_of(value) or () for text in _texts(each)]
