"""Which functions have effects, where the text does not say it: `@R.function` without `pure=`.

Only what the text shows is asked; the verifier has the last word.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from relax_dialect.frontend.tvmscript.names import Aliases, dotted

IMPURE_FORMS = frozenset(
    {
        "assert_op",
        "call_builtin_with_ctx",
        "call_inplace_packed",
        "call_packed",
        "call_py_func",
        "invoke_closure",
        "memory.kill_storage",
        "memory.kill_tensor",
        "print",
        "vm.kill_object",
    }
)
"""Calls that make a function impure; packed functions do not in a dataflow region."""


class _Calls(ast.NodeVisitor):
    """Collects what is called, and whether one of the calls has effects by itself."""

    def __init__(self, aliases: Aliases, node: ast.FunctionDef):
        self._aliases = aliases
        self._parameters = {argument.arg for argument in node.args.args}
        self._in_dataflow = 0
        self.impure = False
        self.callees: set[str] = set()

    def visit_With(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        is_region = isinstance(call, ast.Call) and self._aliases.name_in("relax", call.func) == "dataflow"
        self._in_dataflow += is_region
        self.generic_visit(node)
        self._in_dataflow -= is_region

    def visit_Call(self, node: ast.Call) -> None:
        name = self._aliases.name_in("relax", node.func)
        if name in IMPURE_FORMS:
            self.impure |= not (self._in_dataflow and name == "call_packed")
        elif name == "call_tir_inplace":
            self.impure |= not self._in_dataflow and not self._parameters.isdisjoint(_written(node))
        elif name is None and (parts := dotted(node.func)) is not None:
            self.callees.add(parts[-1])
        self.generic_visit(node)


def _written(node: ast.Call) -> list[str]:
    """The names among the arguments that `R.call_tir_inplace(f, (x, y), [0], ...)` writes."""
    keywords = {each.arg: each.value for each in node.keywords}
    args = node.args[1] if len(node.args) > 1 else keywords.get("args")
    places = node.args[2] if len(node.args) > 2 else keywords.get("inplace_indices")
    given = args.elts if isinstance(args, ast.Tuple | ast.List) else [args]
    indices = places.elts if isinstance(places, ast.Tuple | ast.List) else [places]
    numbers = [each.value for each in indices if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    named = [given[number] for number in numbers if number < len(given)]
    return [each.id for each in named if isinstance(each, ast.Name)]


def impure_calls(aliases: Aliases, node: ast.FunctionDef) -> bool:
    """Whether the statements of a function call something that has effects by itself."""
    calls = _Calls(aliases, node)
    for statement in node.body:
        calls.visit(statement)
    return calls.impure


def impure_functions(aliases: Aliases, functions: Mapping[str, ast.FunctionDef], kernels: Collection[str]) -> set[str]:
    """The functions that have effects, by themselves or through others; those that declare it are the caller's.

    `kernels` are PrimFuncs, whose call by name writes memory.
    """
    callers: dict[str, list[str]] = {}
    pending: list[str] = []
    for name, node in functions.items():
        calls = _Calls(aliases, node)
        for statement in node.body:
            calls.visit(statement)
        if calls.impure or not calls.callees.isdisjoint(kernels) or _takes_impure_functions(node, calls.callees):
            pending.append(name)
        for callee in calls.callees & functions.keys():
            callers.setdefault(callee, []).append(name)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers.get(name, ())
    return found


def _takes_impure_functions(node: ast.FunctionDef, callees: set[str]) -> bool:
    """Whether the function calls a parameter whose type says that it is not pure."""
    for argument in node.args.args:
        if argument.arg in callees and argument.annotation is not None:
            text = ast.unparse(argument.annotation)
            if "purity=False" in text or "None" in text or text.endswith("Callable"):
                return True
    return False
