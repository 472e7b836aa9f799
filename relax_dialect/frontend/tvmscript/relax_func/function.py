"""One relax function of a text: its head, and the statements of its body with nested functions and macros."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, i1
from xdsl.ir import Operation, OpResult, SSAValue

from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.functions import Inline, arguments_of
from relax_dialect.frontend.tvmscript.program import (
    Caller,
    Program,
    Writes,
    bound_names,
    impure_calls,
    name_counts,
    returned_behind,
    returns,
)
from relax_dialect.frontend.tvmscript.relax_func.call_tir import placed_as
from relax_dialect.frontend.tvmscript.relax_func.calls import CallReader
from relax_dialect.frontend.tvmscript.relax_func.expressions import ShapeDims
from relax_dialect.frontend.tvmscript.relax_func.operators import REFUSED_STATEMENTS, relax_op
from relax_dialect.frontend.tvmscript.relax_func.packed import call_match_shape
from relax_dialect.frontend.tvmscript.scopes import Failed, ModuleRef, Scope, Unbound, declarations
from relax_dialect.frontend.tvmscript.source import Aliases, Source, TVMScriptError, spelled
from relax_dialect.frontend.tvmscript.types import (
    Signature,
    decorator_options,
    parameters,
    read_signature,
    type_param_names,
)
from relax_dialect.struct_info.join import refine
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, StructInfo, TensorType, TupleType
from relax_dialect.traits import dataflow_violation, purity_violation
from tir_dialect.dims import Dim, constant
from tir_dialect.types import as_name_hint


class BindingReader(CallReader):
    """Reads statements that give names a meaning."""

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.fail(node, "expected one target; write one binding for each name")
        target = node.targets[0]
        if found := declarations(self.aliases, target, node.value):
            for each, name, _ in found:
                self._declare(each, name)
            return
        match node.value:
            case ast.Call(func=func, args=[_], keywords=[]) if (
                isinstance(target, ast.Tuple) and self.aliases.name_in("relax", func) == "match_shape"
            ):
                call_match_shape(self, node.value, target.elts)  # the form of the first texts
            case ast.Name(id=name) if name not in self.scope and self.program.is_module(name):
                self._bind(target, ModuleRef())
            case value:
                if not self._binds_some(target, value):
                    self._bind(target, self.value(value))

    def _binds_some(self, target: ast.expr, value: ast.expr) -> bool:
        """Binds `n, x = T.int64(), f(x)`: dimensions and values side by side; whether it was that."""
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
            return False
        pairs = list(zip(target.elts, value.elts, strict=False))
        declared = [declarations(self.aliases, *pair) for pair in pairs]
        if not any(declared) or len(target.elts) != len(value.elts):
            return False
        values = [None if found else self.value(each) for found, each in zip(declared, value.elts, strict=True)]
        for found, (name, _), each in zip(declared, pairs, values, strict=True):
            if found:
                self._declare(name, found[0][1])
            else:
                self._bind(name, each)
        return True

    def _condition(self, node: ast.expr) -> Expr:
        """A truth value; a tensor of one element, which is not 0, stands for that."""
        value = self.read(node)
        info = value.type
        if not isinstance(info, TensorType) or (info.known_dims == () and info.dtype == i1):
            return value
        if info.known_dims is not None and any(dim != constant(1) for dim in info.known_dims):
            return value
        if info.dtype not in (i1, None):
            zeros = self.emit(node, lambda: relax_op("zeros_like")(value))
            value = self.emit(node, lambda: relax_op("not_equal")(value, zeros))
        return self.emit(node, lambda: relax_op("reshape")(value, []))

    def _declare(self, node: ast.AST, name: str) -> None:
        if name not in self.scope or isinstance(self.scope.find(name), Expr | Unbound):
            self.declare(node, name)

    def _bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, Expr) and isinstance(value.type, ShapeType) and value.type.known_dims is not None:
                value = value.type.known_dims
            fields = self.fields(target, value)
            if len(fields) != len(target.elts):
                self.fail(target, f"expected {len(fields)} names, got {len(target.elts)}")
            for each, field in zip(target.elts, fields, strict=True):
                self._bind(each, field)
            return
        if not isinstance(target, ast.Name):
            self.fail(target, "expected a name to bind; values do not change")
        if isinstance(value, Expr):
            self._label(value.value, target.id)
        if target.id != "_" or not isinstance(self.scope.find("_"), Dim):
            self.scope.bind(target.id, value)

    def _label(self, value: SSAValue, name: str) -> None:
        is_new = isinstance(value, OpResult) and value.name_hint in (None, "gv", "lv")
        if is_new and name != "_":
            value.name_hint = as_name_hint(name) or value.name_hint

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name to bind")
        if node.value is None:
            if self.types.scalar(node.annotation) is None:
                self.fail(node, "expected a value; only dimensions are declared without one, as n: T.int64")
            self._declare(node.target, node.target.id)
            return
        if found := declarations(self.aliases, node.target, node.value):
            self._declare(node.target, found[0][1])
            return
        # a value may bind dimensions that the annotation only names
        with self.scope.inner():
            self.expected = self.types.read(node.annotation, implicit=True)
        try:
            value = self.value(node.value)
        finally:
            self.expected = None
        declared = self.types.read(node.annotation)
        found = self._conformed(node, value, declared)
        self._bind(node.target, placed_as(self, node, found, node.annotation))

    def _conformed(self, node: ast.AnnAssign, value: object, declared: StructInfo) -> object:
        """The value, checked to be what the annotation says."""
        items = items_of(value)
        if items is not None and isinstance(declared, TupleType) and len(items) == len(declared.fields):
            pairs = zip(items, declared.fields, strict=True)
            return tuple(self._conformed(node, each, info) for each, info in pairs)
        if items is not None and isinstance(declared, ShapeType):
            shape = self.shape(node, value)
            value = shape if isinstance(shape, Expr) else ShapeDims(shape)
        if isinstance(value, bool | int | float) and isinstance(declared, TensorType | PrimType):
            number = value
            if isinstance(declared, TensorType):
                value = self.emit(node, lambda: self.builder.const(number, declared.dtype))
            else:
                value = self.emit(node, lambda: self.builder.prim(number, declared.dtype))
        if isinstance(value, str) and not isinstance(declared, ObjectType):
            self.fail(node.value or node, f'expected a value of type {declared}, got "{value}"')
        expr = self.expr(node, value)
        if isinstance(declared, PrimType) and expr.type == TensorType((), declared.dtype):
            return expr  # what a PrimFunc returns is an element
        return self.refine(node, expr, declared)


class StatementReader(BindingReader):
    """Reads the body of one function."""

    pure_subject: str | None = None
    """What messages call the function that is read, if it must have no effects."""
    _counted: tuple[Sequence[ast.stmt], Counter[str]] | None = None

    def body(self, statements: Sequence[ast.stmt], whole: Sequence[ast.stmt]) -> Expr | None:
        """Reads statements up to the end, or to `return`, whose value it gives; `whole` is all of the function."""
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                if index + 1 < len(statements):
                    self.fail(statements[index + 1], "nothing can follow a return")
                with self.builder.at(self._location(statement)), self.program.findings.collected():
                    if statement.value is None:
                        return self.expr(statement, None)
                    return self.read(statement.value)
                raise self.source.follows(statement, "the result is wrong")
            if isinstance(statement, ast.If) and returns(statement):
                with self.builder.at(self._location(statement)):
                    return self._returning_branch(statement, statements[index + 1 :], whole)
            if isinstance(statement, ast.With) and (split := returned_behind(statement)) is not None:
                return self.body([*split, *statements[index + 1 :]], whole)
            self._step(statement, whole)
        return None

    def _step(self, node: ast.stmt, whole: Sequence[ast.stmt]) -> None:
        """Reads one statement; its errors, and effects where none may be, are kept for the end."""
        block = self.builder.frame.block
        last = block.last_op
        with self.builder.at(self._location(node)), self.program.findings.collected(self.scope, node):
            match node:
                case ast.Assign():
                    self._assign(node)
                case ast.AnnAssign():
                    self._annotated(node)
                case ast.AugAssign(target=ast.Name() as target):
                    operation = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
                    self._bind(target, self.binary(operation, self.name(target), self.value(node.value)))
                case ast.Expr():
                    self._effect(node.value)
                case ast.With():
                    self._dataflow(node, whole)
                case ast.If():
                    self._branch(node, whole)
                case ast.FunctionDef():
                    around = self.in_dataflow, self.pure_subject
                    options = self._nested_options(node)
                    pure = options.get("pure", not impure_calls(self.aliases, node, self.program.kernel_names()))
                    self.in_dataflow, self.pure_subject = False, "'relax.closure' op" if pure else None
                    try:
                        value = self._closure(node, pure)
                    finally:
                        self.in_dataflow, self.pure_subject = around
                    self._label(value.value, node.name)
                    self.scope.bind(node.name, value)
                case ast.Pass():
                    pass
                case _:
                    known = "a binding, R.dataflow, if, a nested function or return"
                    self.fail(node, REFUSED_STATEMENTS.get(type(node), f"expected {known}"))
        op = block.first_op if last is None else last.next_op
        while op is not None:
            if (message := self._violation(op)) is not None:
                self.program.findings.note(self.source.error(node, message))
            op = op.next_op

    def _violation(self, op: Operation) -> str | None:
        if self.in_dataflow:
            return dataflow_violation(op)
        return None if self.pure_subject is None else purity_violation(op, self.pure_subject)

    def _require_none_since(self, before: int, node: ast.AST, what: str) -> None:
        """Ends what cannot be made as there were errors in it."""
        if len(self.program.findings) != before:
            raise self.source.follows(node, f"{what} has errors")

    def _location(self, node: ast.AST) -> FileLineColLoc:
        filename, line, column = self.source.location(node)
        return FileLineColLoc(StringAttr(filename), IntAttr(line), IntAttr(column))

    def _effect(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return
        if not isinstance(node, ast.Call):
            self.fail(node, "expected a call; a value that nothing uses is no statement")
        name = self.aliases.name_in("relax", node.func)
        if name in ("output", "outputs"):
            self.fail(node, "R.output belongs to the end of `with R.dataflow()`")
        if name != "func_attr":
            self.value(node)

    # Regions

    def _dataflow(self, node: ast.With, whole: Sequence[ast.stmt]) -> None:
        call = node.items[0].context_expr
        name = self.aliases.name_in("relax", call.func) if isinstance(call, ast.Call) else None
        if name != "dataflow" or len(node.items) != 1 or node.items[0].optional_vars is not None:
            self.fail(call, "expected `with R.dataflow():`")
        if self.in_dataflow:
            self.fail(node, "a dataflow region cannot stand in another one")
        if Writes(self.aliases, whole, {*self.program.kernel_names(), *self.program.writers}).in_region(node):
            self._plain_region(node, whole)
            return
        outputs: dict[str, Expr] = {}
        before = len(self.program.findings)
        self.in_dataflow = True
        try:
            with self.scope.inner() as local, self.builder.dataflow():
                for index, statement in enumerate(node.body):
                    if (found := self._output(statement)) is None:
                        self._step(statement, whole)
                        continue
                    if index + 1 < len(node.body):
                        self.fail(node.body[index + 1], "nothing can follow R.output")
                    outputs = self._outputs(found, node, whole)
                self._require_none_since(before, node, "the region")
        finally:
            self.in_dataflow = False
        for key, value in outputs.items():
            self.scope.bind(key, value)
        for key, value in local.items():
            if key not in self.scope and isinstance(value, Expr):
                where = f"the dataflow region of line {node.lineno}"
                self.scope.bind(key, Unbound(f"the name {key} is local to {where}; add it to its R.output"))

    def _plain_region(self, node: ast.With, whole: Sequence[ast.stmt]) -> None:
        """The statements of a region that writes memory: their order is kept."""
        outputs: dict[str, object] = {}
        with self.scope.inner():
            for statement in node.body:
                if (found := self._output(statement)) is None:
                    self._step(statement, whole)
                else:
                    outputs |= {ast.unparse(each): self.value(each) for each in found.args}
        for name, value in outputs.items():
            self.scope.bind(name, value)

    def _output(self, statement: ast.stmt) -> ast.Call | None:
        call = statement.value if isinstance(statement, ast.Expr) else None
        is_output = isinstance(call, ast.Call) and self.aliases.name_in("relax", call.func) in ("output", "outputs")
        return call if is_output and isinstance(call, ast.Call) else None

    def _outputs(self, call: ast.Call, region: ast.With, whole: Sequence[ast.stmt]) -> dict[str, Expr]:
        found: dict[str, Expr] = {}
        symbols = dict(self.builder.frame.symbols)
        needed: set[str] = self._used_outside(whole, region) & symbols.keys()
        for argument in call.args:
            if not isinstance(argument, ast.Name):
                self.fail(argument, "R.output expected names")
            value = self.read(argument)
            needed |= symbols.keys() & set(iter_symbols(value.type))
            found[argument.id] = self.emit(argument, lambda value=value: self.builder.emit_output(value))
        for symbol in sorted(needed):
            witness = self.builder.symbol(symbol)
            self.emit(call, lambda witness=witness: self.builder.emit_output(witness))
        return found

    # Branches

    def _branch(self, node: ast.If, whole: Sequence[ast.stmt]) -> None:
        if self.in_dataflow:
            self.fail(node, "a dataflow region has no branches; end it before the if")
        condition = self._condition(node.test)
        bound = bound_names(node.body), bound_names(node.orelse)
        used = self._used_outside(whole, node)
        shared = [name for name in bound[0] if name in bound[1] and (name in used or name == bound[0][-1])]
        branch = self.emit(node, lambda: self.builder.if_(condition))
        before = len(self.program.findings)
        with self.errors_at(node.test), branch:
            for arm, opened in ((node.body, branch.then), (node.orelse, branch.otherwise)):
                with self.program.findings.collected(), self.scope.inner(), opened():
                    self._arm(arm, whole, shared)
            self._require_none_since(before, node, "the branch")
        for name in {*bound[0], *bound[1]}.difference(shared):
            reason = (
                f"the name {name} is not defined here: it is bound in a branch of the if on line {node.lineno} only"
            )
            if name not in self.scope:
                self.scope.bind(name, Unbound(reason))
        for name, result in zip(shared, branch.results, strict=True):
            self._label(result.value, name)
            self.scope.bind(name, result)

    def _arm(self, statements: Sequence[ast.stmt], whole: Sequence[ast.stmt], shared: Sequence[str]) -> None:
        before = len(self.program.findings)
        for statement in statements:
            self._step(statement, whole)
        if statements:
            self._require_none_since(before, statements[0], "the branch")
        values: list[Expr] = []
        for found in map(self.scope.find, shared):
            if isinstance(found, Failed):
                raise self.source.follows(statements[-1], found.reason)
            values.append(self.expr(statements[-1], found))
        self.builder.yield_(*values)

    def _returning_branch(self, node: ast.If, rest: Sequence[ast.stmt], whole: Sequence[ast.stmt]) -> Expr:
        """An `if` that ends the function, with what follows it as part of the branch that does not return."""
        condition = self._condition(node.test)
        arms = [*node.body], [*node.orelse]
        for arm in arms:
            if not any(isinstance(each, ast.Return) or (isinstance(each, ast.If) and returns(each)) for each in arm):
                arm.extend(rest)
        branch = self.emit(node, lambda: self.builder.if_(condition))
        before = len(self.program.findings)
        with self.errors_at(node.test), branch:
            for arm, opened in zip(arms, (branch.then, branch.otherwise), strict=True):
                with self.program.findings.collected(), self.scope.inner(), opened():
                    value = self.body(arm, whole)
                    if value is None:
                        self.fail(node, "expected a return at the end of both branches, or of neither")
                    self.builder.yield_(value)
            self._require_none_since(before, node, "the branch")
        return branch.result

    def _used_outside(self, whole: Sequence[ast.stmt], node: ast.stmt) -> set[str]:
        """The names that the function uses anywhere but in one statement."""
        if self._counted is None or self._counted[0] is not whole:
            self._counted = (whole, name_counts(whole))
        inside = name_counts([node])
        return {name for name, count in self._counted[1].items() if count > inside[name]}

    # Nested functions

    def _closure(self, node: ast.FunctionDef, pure: bool) -> Expr:
        itself = node.name if node.name in name_counts(node.body) else None
        with self.scope.inner():
            names = type_param_names(self.program.type_params.get(node.lineno, ""))
            signature = read_signature(self, node, names)
            if itself is not None and signature.ret is None:
                self.fail(node, f"{node.name} calls itself, so its result needs a type: -> R.Tensor(...)")
            scope = self.emit(
                node,
                lambda: self.builder.closure(
                    signature.params, ret=signature.ret, pure=pure, recursive=itself, bounds=signature.bounds
                ),
            )
            with self.errors_at(node), scope as closure:
                if itself is not None:
                    self.scope.bind(node.name, closure.itself)
                self.finish(node, list(signature.params), closure.params, signature.ret)
        return scope.value

    def _nested_options(self, node: ast.FunctionDef) -> dict[str, bool]:
        for decorator in node.decorator_list:
            head = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self.aliases.name_in("relax", head) in ("function", "func"):
                return decorator_options(self.source, self.aliases, decorator)
            self.fail(decorator, f"a nested function is decorated with R.function, got {spelled(head)}")
        self.fail(node, "expected @R.function before a nested function")

    def finish(
        self, node: ast.FunctionDef, names: Sequence[str], params: Sequence[Expr], ret: StructInfo | None
    ) -> None:
        """Reads the body of a function whose scope is open, with its parameters, up to its result."""
        annotations = {each.arg: each.annotation for each in parameters(self.source, node)}
        for name, param in zip(names, params, strict=True):
            if not (isinstance(param.type, PrimType) and param.type.symbol == name):
                self.scope.bind(name, placed_as(self, node, param, annotations[name]))
        before = len(self.program.findings)
        value = self.body(node.body, node.body)
        if value is None and node.returns is not None and not (isinstance(ret, TupleType) and not ret.fields):
            self._require_none_since(before, node, node.name)
            self.fail(node.returns, f"{node.name} says what it returns, and has no return at its end")
        if value is None:
            value = self.expr(node, None)
        if ret is not None:
            with self.program.findings.collected():
                value = self.refine(node.returns or node, value, refine(ret, value.type))
                value = self.expr(node, placed_as(self, node, value, node.returns))
        self._require_none_since(before, node, node.name)
        result = value
        self.emit(node, lambda: self.builder.emit_func_output(result))


class MacroReader(StatementReader):
    """Reads the body of one function, with the macros that it calls."""

    def call(self, node: ast.Call) -> object:
        found = self.scope.find(node.func.id) if isinstance(node.func, ast.Name) else None
        return self._expanded(node, found) if isinstance(found, Inline) else super().call(node)

    def _expanded(self, node: ast.Call, macro: Inline) -> object:
        """What a macro returns; nothing if it returns nothing."""
        if not macro.of_relax:
            self.fail(node.func, f"{macro.node.name} belongs into a PrimFunc; functions of relax call R.macro")
        values = arguments_of(self, node, macro.node)
        before, source, statements = self.scope, self.source, macro.node.body
        self.scope = before if macro.scope is None else macro.scope.shared()
        self.source = macro.source or source
        try:
            with self.scope.inner():
                for name, value in values.items():
                    self.scope.bind(name, value)
                return self.body(statements, statements)
        finally:
            self.scope, self.source = before, source


class RelaxFunctionReader:
    """A function between its head and its op in the module."""

    def __init__(
        self,
        source: Source,
        aliases: Aliases,
        constants: Scope,
        builder: BlockBuilder,
        program: Program,
        node: ast.FunctionDef,
    ):
        self._node = node
        self._builder = builder
        outermost = {name: constants.find(name) for name in constants.names()}
        self._reader = MacroReader(source, aliases, Scope(outermost), builder, program)
        self._signature = Signature({}, None)
        self._pure = True
        self._private = False
        self._state = "new"

    def prepare(self, *, pure: bool, private: bool) -> None:
        """Reads the head, and announces the function if its result type is known from it."""
        node, reader = self._node, self._reader
        self._private = private
        names = type_param_names(reader.program.type_params.get(node.lineno, ""))
        self._signature = signature = read_signature(reader, node, names)
        self._pure = pure = pure or signature.force_pure
        if (ret := signature.ret) is not None:
            bounds = signature.bounds
            declare = self._builder.declare
            reader.emit(node, lambda: declare(node.name, signature.params, ret, pure=pure, bounds=bounds))

    def build(self, caller: Caller | None, node: ast.AST) -> None:
        """Builds the function unless a call can do with its head."""
        if self._signature.ret is not None or self._state == "done":
            return
        if self._state == "failed":
            raise self._reader.source.follows(node, f"{self._node.name} is wrong itself")
        if self._state == "open":
            (caller or self._reader).fail(
                node, f"{self._node.name} is called before its end, so its result needs a type: -> R.Tensor(...)"
            )
        self.build_body()

    def build_body(self) -> None:
        """Builds the function, once."""
        if self._state != "new":
            return
        self._state = "open"
        try:
            node, reader, signature = self._node, self._reader, self._signature
            reader.pure_subject = f"'relax.func' op @{node.name}" if self._pure and not signature.force_pure else None
            with reader.errors_at(node):
                scope = self._builder.function(
                    node.name,
                    signature.params,
                    ret=signature.ret,
                    attrs=signature.attributes,
                    private=self._private,
                    pure=self._pure,
                    force_pure=signature.force_pure,
                    bounds=signature.bounds,
                )
                filename, line, column = reader.source.location(node)
                with self._builder.at(f"{filename}:{line}:{column}"), scope as function:
                    reader.finish(node, list(signature.params), function.params, signature.ret)
        except TVMScriptError:
            self._state = "failed"
            raise
        self._state = "done"
