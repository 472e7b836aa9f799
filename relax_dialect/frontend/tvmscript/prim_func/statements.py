"""Statements of PrimFuncs: stores, loops, branches, blocks, calls."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Block

from relax_dialect.frontend.tvmscript.prim_func import blocks as tir_blocks
from relax_dialect.frontend.tvmscript.prim_func.addresses import declare_at
from relax_dialect.frontend.tvmscript.prim_func.annotations import annotated_value, says_pointer
from relax_dialect.frontend.tvmscript.prim_func.buffers import DECLARATIONS, allocate, allocate_pointer
from relax_dialect.frontend.tvmscript.prim_func.cells import assign, declare_name, new_cell, whole_of
from relax_dialect.frontend.tvmscript.prim_func.control import CONTROL
from relax_dialect.frontend.tvmscript.prim_func.effects import read_effect
from relax_dialect.frontend.tvmscript.prim_func.elsewhere import Elsewhere
from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.inline import Inline, read_inline, standing_for
from relax_dialect.frontend.tvmscript.prim_func.jumps import Jumps, jump_of
from relax_dialect.frontend.tvmscript.prim_func.masks import store_row
from relax_dialect.frontend.tvmscript.prim_func.scopes import read_scope
from relax_dialect.frontend.tvmscript.prim_func.threads import launched, read_launch
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Cell, Handle, Place, Region
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector, store_vector
from relax_dialect.frontend.tvmscript.prim_func.views import declare, match_region
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.declarations import declarations
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.names import Aliases, dotted
from relax_dialect.frontend.tvmscript.text.plain_functions import call_helper
from relax_dialect.frontend.tvmscript.text.program import Program
from relax_dialect.frontend.tvmscript.text.scope import Scope, Unbound
from tir_dialect.dims import Dim
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype

_ALLOCATIONS = frozenset({"alloc_buffer", "sblock_alloc_buffer", "alloc_local", "alloc_shared", "block_alloc_buffer"})
_SCALARS = frozenset({"local_scalar", "alloc_scalar", "shared_scalar"})


class TirStatementReader(TirExpressionReader):
    """Reads the body of one PrimFunc."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope, program: Program):
        super().__init__(source, aliases, scope)
        self.program = program
        self.jumps = Jumps(self)
        self.threads: dict[str, Scalar] = {}
        """The variables of loops that would be threads of a GPU."""
        self.rebound: frozenset[str] = frozenset()
        """The names that are assigned more than once."""
        self.extents: dict[str, tuple[Place, Place]] = {}
        """First value and number of values of the loop variables that are visible."""

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Reads statements into the current block."""
        for place, statement in enumerate(statements, 1):
            before = self.block.last_op
            if (launch := launched(self, statement)) is not None:
                read_launch(self, *launch, statements[place:])
                return
            self._statement(statement)
            self._locate(statement, before)
            if place < len(statements) and self.jumps.leaves(statement):
                op = IfOp(self.jumps.running(statement))
                with self.inside(op.then_body.block):
                    self.body(statements[place:])
                self.block.add_op(op)
                return

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
        saved = self.block, self.axes, dict(self.extents), dict(self.threads)
        self.block = self.block if block is None else block
        try:
            with self.scope.inner():
                yield
        finally:
            self.block, self.axes, self.extents, self.threads = saved

    def _statement(self, node: ast.stmt) -> None:
        if (kind := jump_of(self.aliases, node)) is not None:
            self.jumps.jump(node, kind)
            return
        if (read := CONTROL.get(type(node))) is not None:
            read(self, node)
            return
        match node:
            case ast.Assign(targets=[target]):
                self._assign(node, target, node.value)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.AugAssign():
                self._augmented(node)
            case ast.With():
                read_scope(self, node)
            case ast.Expr():
                read_effect(self, node.value)
            case ast.FunctionDef() if (inline := read_inline(self, node)) is not None:
                self.scope.bind(node.name, inline)
            case Elsewhere():
                with self.reading_in(node.scope):
                    self.body(node.body)
            case ast.Pass():
                pass
            case _:
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
                self.bind(node, target.id, self.named(target.id, value))
            case ast.Tuple() | ast.List():
                self._unpack(node, target.elts, value)
            case _:
                self.fail(target, "expected a name, or an element of a buffer")

    def _unpack(self, node: ast.AST, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """`a, b = x, y`, or the elements of a tuple such as a shape; all are evaluated before one is assigned."""
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) == len(names):
            found = [self.named(name, other) for name, other in zip(names, value.elts, strict=True)]
            for name, each in zip(names, found, strict=True):
                self.bind(node, name, each)
            return
        items = items_of(self.value(value))
        if items is None or len(items) != len(targets):
            self.fail(value, f"expected {len(targets)} values")
        for target, item in zip(targets, items, strict=True):
            if not isinstance(target, ast.Name):
                self.fail(target, "expected a name")
            self.bind(node, target.id, item)

    def bind(self, node: ast.AST, name: str, value: object) -> None:
        """Gives a name a value, or writes the value to the memory that the name stands for."""
        if not assign(self, node, name, value):
            self.scope.bind(name, value)

    def named(self, name: str, node: ast.expr) -> object:
        """What a name is bound to: a buffer, memory, or a scalar that is evaluated here."""
        node = self.meant_call(node) if isinstance(node, ast.Call) else node
        call = self.aliases.name_in("tir", node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and call is not None:
            if call in _ALLOCATIONS:
                return allocate(self, node, name, f"T.{call}")
            if call in DECLARATIONS:
                return declare(self, node, name, f"T.{call}")
            if call in _SCALARS:
                dtype = Arguments(self.source, node, f"T.{call}", "dtype scope").get("dtype")
                return new_cell(self, node, name, to_dtype("float32" if dtype is None else self.text(dtype)))
            if call == "allocate":
                return allocate_pointer(self, node)
            if call == "match_buffer":
                return self._match_buffer(name, node)
            if call == "bind":
                node = Arguments(self.source, node, "T.bind", "value type_annotation var").require("value")
        return self._kept(node, self.value(node), name)

    def _kept(self, node: ast.AST, value: object, name: str) -> object:
        """A scalar or vector, evaluated once where it is bound."""
        if isinstance(value, Region):
            value = as_vector(self, node, value) or self.load(node, value)
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
        if isinstance(value, Scalar):
            return self._memory_matched(name, node, value)
        if isinstance(value, Handle):
            self.fail(node, "T.match_buffer of a parameter belongs to the top of the function")
        self.fail(node, "T.match_buffer expected a parameter, or a region of a buffer")

    def _memory_matched(self, name: str, node: ast.Call, address: Scalar) -> Buffer:
        """`T.match_buffer(pointer, shape, dtype)` of a parameter that is an address."""
        others = [keyword for keyword in node.keywords if keyword.arg not in ("var", "param")]
        call = ast.copy_location(ast.Call(node.func, node.args[1:], others), node)
        return declare_at(self, call, name, "T.match_buffer", address)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name")
        if node.value is None:
            if not declare_name(self, node, node.target.id):
                self._assign(node, node.target, ast.copy_location(ast.Call(node.annotation, [], []), node))
            return
        if declarations(self.aliases, node.target, node.value):
            self._assign(node, node.target, node.value)
            return
        name = node.target.id
        found = annotated_value(self, node, node.value, self.named(name, node.value))
        kept = self._kept(node, found, name)
        if isinstance(kept, Scalar) and says_pointer(self, node.annotation):
            self.pointers.add(kept)
        self.bind(node, name, kept)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        operation = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        result = self.binary(operation, self.value(target), self.value(node.value))
        if isinstance(target, ast.Subscript):
            self._store(target, result)
        elif isinstance(target, ast.Name):
            self.bind(node, target.id, self._kept(node, result, target.id))
        else:
            self.fail(target, "expected a name, or an element of a buffer")

    def _store(self, target: ast.Subscript, value: object) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, Buffer):
            self.fail(target.value, "expected a buffer to store to")
        region = self.region(target, owner)
        if region.is_vector:
            store_vector(self, target, region, value)
        else:
            self.store(target, region, value)

    # Expressions

    def name(self, node: ast.Name) -> object:
        found = super().name(node)
        if not isinstance(found, Cell):
            return found
        place = whole_of(found)
        return place if place.is_vector else self.load(node, place)

    def call(self, node: ast.Call) -> object:
        from relax_dialect.frontend.tvmscript.prim_func.prim_calls import call_prim_func, callee_of

        node = self.meant_call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "vstore":
            return store_row(self, node, node.func.value)
        found = self.inline_of(node.func)
        if found is not None:
            self._expand(node, found)
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

    def _expand(self, node: ast.Call, inline: Inline) -> None:
        """Reads the body of a function in the place of its call."""
        try:
            with standing_for(self, node, inline) as body:
                self.body(body)
        except RecursionError:
            self.fail(node, f"{inline.node.name} calls itself, which nothing ends")

    def inline_of(self, node: ast.expr) -> Inline | None:
        """The function that a name stands for, alone or as one of the module."""
        match dotted(node):
            case (name,):
                found = self.scope.find(name)
            case (module, name) if self.program.is_module(module):
                found = self.scope.find(name)
            case _:
                return None
        return found if isinstance(found, Inline) else None
