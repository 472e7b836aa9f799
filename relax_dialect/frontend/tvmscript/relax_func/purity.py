"""Which functions have effects, where the text does not say it: `@R.function` without `pure=`.

Only what the text shows is asked; the verifier has the last word.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from relax_dialect.frontend.tvmscript.text.names import Aliases, dotted
from relax_dialect.frontend.tvmscript.text.usage import name_counts

IMPURE_FORMS = frozenset(
    {
        "assert_op",
        "call_builtin_with_ctx",
        "call_packed",
        "call_py_func",
        "invoke_closure",
        "memory.kill_storage",
        "memory.kill_tensor",
        "print",
        "vm.kill_object",
    }
)
"""Calls that make a function impure, beside those that write memory; packed functions do not in a dataflow region."""


class Writes:
    """Which calls of a function write memory that others can see, as far as names show it."""

    def __init__(self, aliases: Aliases, statements: Sequence[ast.stmt], writers: Collection[str]):
        self._aliases = aliases
        self._writers = writers
        self._statements = statements

    @cached_property
    def _loads(self) -> Counter[str]:
        return name_counts(self._statements)

    @cached_property
    def _bound(self) -> set[str]:
        names = (each for statement in self._statements for each in ast.walk(statement) if isinstance(each, ast.Name))
        return {each.id for each in names if isinstance(each.ctx, ast.Store)}

    def seen(self, node: ast.AST) -> bool:
        """Whether a node is a call that writes a parameter, or what is used elsewhere, or memory given to a writer."""
        if not isinstance(node, ast.Call):
            return False
        name = self._aliases.name_in("relax", node.func)
        if name == "call_tir_inplace":
            return any(each not in self._bound or self._loads[each] > 1 for each in _written(node))
        parts = dotted(node.func) if name is None else None
        return name == "call_inplace_packed" or (parts is not None and parts[-1] in self._writers)

    def in_region(self, region: ast.With) -> bool:
        """Whether a dataflow region has such a call, so that it is none: its statements stand for themselves."""
        return any(map(self.seen, ast.walk(region)))


class _Calls(ast.NodeVisitor):
    """Collects what is called, and whether one of the calls has effects by itself."""

    def __init__(self, aliases: Aliases, node: ast.FunctionDef, kernels: Collection[str]):
        self._aliases = aliases
        self._writes = Writes(aliases, node.body, kernels)
        self._in_dataflow = 0
        self.impure = False
        """Whether a call has an effect that is no writing of memory."""
        self.writes = False
        self.callees: set[str] = set()

    def visit_With(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        is_region = isinstance(call, ast.Call) and self._aliases.name_in("relax", call.func) == "dataflow"
        is_region = is_region and not self._writes.in_region(node)
        self._in_dataflow += is_region
        self.generic_visit(node)
        self._in_dataflow -= is_region

    def visit_Call(self, node: ast.Call) -> None:
        name = self._aliases.name_in("relax", node.func)
        if name == "call_inplace_packed":
            self.writes = True
        elif name in IMPURE_FORMS:
            self.impure |= not (self._in_dataflow and name == "call_packed")
        elif name == "vm.call_tir_dyn":
            self.impure |= bool(node.args) and isinstance(node.args[0], ast.Constant)
        elif name == "call_tir_inplace":
            self.writes |= self._writes.seen(node)
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


def impure_calls(aliases: Aliases, node: ast.FunctionDef, kernels: Collection[str]) -> bool:
    """Whether the statements of a function call something that has effects by itself."""
    calls = _Calls(aliases, node, kernels)
    for statement in node.body:
        calls.visit(statement)
    return calls.impure or calls.writes


@dataclass(frozen=True)
class Effects:
    """The functions of a module that have effects, by themselves or through others."""

    impure: Collection[str]
    writers: Collection[str]
    """Those of which the only effect is that they write memory, as TVM lets pure functions do."""


def effects(aliases: Aliases, functions: Mapping[str, ast.FunctionDef], kernels: Collection[str]) -> Effects:
    """What effects functions have; those that declare it are the caller's.

    `kernels` are PrimFuncs, whose call by name writes memory.
    """
    callers: dict[str, list[str]] = {}
    writing: list[str] = []
    others: list[str] = []
    for name, node in functions.items():
        calls = _Calls(aliases, node, kernels)
        for statement in node.body:
            calls.visit(statement)
        if calls.impure or _takes_impure_functions(node, calls.callees):
            others.append(name)
        elif calls.writes or not calls.callees.isdisjoint(kernels):
            writing.append(name)
        for callee in calls.callees & functions.keys():
            callers.setdefault(callee, []).append(name)
    impure = _with_callers(others, callers)
    writers = _with_callers(writing, callers) - impure
    return Effects(impure | writers, writers)


def _with_callers(functions: Sequence[str], callers: Mapping[str, Sequence[str]]) -> set[str]:
    """The functions, and all that call them directly or through others."""
    found: set[str] = set()
    pending = [*functions]
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
