"""`inline-functions`: the body of a private function replaces its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowering.relax.functions.inlining import can_inline, inline_call
from lowering.relax.substitution import all_symbols
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import called_functions


class InlineFunctionsPass(ModulePass):
    """Inlines calls of private functions, and removes the functions that become unused.

    Before:

    ```mlir
    relax.func private @twice[%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
      %0 = relax.add %y, %y
      relax.return %0
    }
    relax.func @main[%n](%x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> {
      %0 = relax.call @twice(%x) : !relax.tensor<[4 * n], f32>
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> {
      %0 = relax.add %x, %x
      relax.return %0
    }
    ```

    Symbols of the callee become what the arguments say; where only the run time knows, a `relax.match_cast` binds and
    checks them. Inlined ops have the location of the call. These stay calls: recursion, functions between two
    recursions, `force_pure` functions, functions with a closure that binds symbols, calls bound to
    fail at run time, and inside a dataflow region functions with control flow or closures. Idempotent.
    """

    name = "inline-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits callees before callers, so that every body is copied in its final form."""
        functions = {func.sym_name.data: func for func in op.ops if isinstance(func, FuncOp)}
        order, recursive = _callees_first(functions)
        candidates = {name: func for name, func in functions.items() if name not in recursive}
        inlined: set[str] = set()
        for name in order:
            inlined |= _inline_into(functions[name], candidates)
        _remove_unused(op, [functions[name] for name in reversed(order) if name in inlined])


def _inline_into(func: FuncOp, candidates: Mapping[str, FuncOp]) -> set[str]:
    """Inlines the calls in one function; gives the names of the callees."""
    taken: set[str] | None = None
    inlined: set[str] = set()
    for call in [inner for inner in func.walk() if isinstance(inner, CallOp)]:
        name = call.callee.string_value()
        callee = candidates.get(name)
        if callee is not None and can_inline(callee, call):
            taken = all_symbols(func) if taken is None else taken
            if inline_call(call, callee, taken):
                inlined.add(name)
    return inlined


def _remove_unused(module: ModuleOp, functions: Iterable[FuncOp]) -> None:
    """Erases those functions, callers first, that nothing in the module refers to."""
    uses: dict[str, int] = {}
    for op in module.walk():
        for name in called_functions(op):
            uses[name] = uses.get(name, 0) + 1
    for func in functions:
        if not uses.get(func.sym_name.data):
            for op in func.walk():
                for name in called_functions(op):
                    uses[name] -= 1
            Rewriter.erase_op(func)


def _callees_first(functions: Mapping[str, FuncOp]) -> tuple[list[str], set[str]]:
    """All names, each after those that it calls as far as recursion lets, and the names in or between recursions."""
    calls = {
        name: {callee for op in func.walk() for callee in called_functions(op) if callee in functions}
        for name, func in functions.items()
    }
    leaves = _peel(calls)
    left = dict.fromkeys(name for name in functions if name not in set(leaves))
    callers: dict[str, set[str]] = {name: set() for name in left}
    for name in left:
        for callee in calls[name] & left.keys():
            callers[callee].add(name)
    roots = _peel(callers)
    recursive = set(left).difference(roots)
    return [*leaves, *(name for name in left if name in recursive), *reversed(roots)], recursive


def _peel(edges: Mapping[str, set[str]]) -> list[str]:
    """The nodes from which no cycle is reached, each after all that its edges lead to."""
    sources: dict[str, list[str]] = {name: [] for name in edges}
    for name, targets in edges.items():
        for target in targets:
            sources[target].append(name)
    missing = {name: len(targets) for name, targets in edges.items()}
    order = [name for name, count in missing.items() if count == 0]
    for name in order:
        for source in sources[name]:
            missing[source] -= 1
            if missing[source] == 0:
                order.append(source)
    return order
