"""Statements of relax functions: bindings, dataflow regions, branches, nested functions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Operation

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.relax_func.bindings import BindingReader
from relax_dialect.frontend.tvmscript.relax_func.placements import placed, sharding_in
from relax_dialect.frontend.tvmscript.relax_func.purity import Writes, impure_calls
from relax_dialect.frontend.tvmscript.relax_func.refusals import STATEMENTS
from relax_dialect.frontend.tvmscript.text.names import spelled
from relax_dialect.frontend.tvmscript.text.scope import Unbound
from relax_dialect.frontend.tvmscript.text.signature import (
    decorator_options,
    parameters,
    read_signature,
    type_param_names,
)
from relax_dialect.frontend.tvmscript.text.usage import bound_names, name_counts, returned_behind, returns
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import PrimType
from relax_dialect.verifiers import dataflow_violation, purity_violation


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
                    return self._returned(statement)
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
            self._statement(node, whole)
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

    def _returned(self, statement: ast.Return) -> Expr:
        if statement.value is None:
            return self.expr(statement, None)
        return self.read(statement.value)

    def _statement(self, node: ast.stmt, whole: Sequence[ast.stmt]) -> None:
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
                self._nested(node)
            case ast.Pass():
                pass
            case _:
                self._refuse(node)

    def _refuse(self, node: ast.stmt) -> NoReturn:
        reason = STATEMENTS.get(type(node), "expected a binding, R.dataflow, if, a nested function or return")
        self.fail(node, reason)

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
            with self.scope.inner(), self.builder.dataflow():
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
        values = [self.expr(statements[-1], self.scope.find(name)) for name in shared]
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

    def _nested(self, node: ast.FunctionDef) -> None:
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
                self.scope.bind(name, placed(self, node, param, sharding_in(self, annotations[name])))
        before = len(self.program.findings)
        value = self.body(node.body, node.body)
        if value is None:
            value = self.expr(node, None)
        if ret is not None:
            with self.program.findings.collected():
                value = self.refine(node.returns or node, value, refine(ret, value.type))
        self._require_none_since(before, node, node.name)
        result = value
        self.emit(node, lambda: self.builder.emit_func_output(result))
