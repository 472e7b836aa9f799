"""`infer-struct-info`: result types are what can be inferred from operands."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.diagnostics import Finding, refuse
from lowering.relax.call_graph import CallGraph
from lowering.relax.struct_info_inference import StructInfoInference
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import called_functions


class InferStructInfoPass(ModulePass):
    """Infers the types of all values anew, after a rewrite has refined some of them.

    Before:

    ```mlir
    relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<*, f32> { ... relax.return %x }
    ...
    %y = relax.call @f(%z) : !relax.tensor<*, f32>     // %z : !relax.tensor<[4], f32>
    %e = relax.exp %y : !relax.tensor<*, f32>
    ```

    After:

    ```mlir
    relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... relax.return %x }
    ...
    %y = relax.call @f(%z) : !relax.tensor<[4], f32>
    %e = relax.exp %y
    ```

    * Results of operators, tuples, dataflow regions, branches and function values follow from what they are made of;
      of a call they are what the callee returns for these arguments.
    * Types that a program declares (results of functions and closures, of `match_cast` and `call_tir` with a shape)
      get what they leave open, and keep what they say: it is checked at run time.
    * Loops carry what their first and yielded values have in common.
    * Callees come before callers; functions that call each other are inferred until nothing changes. What they return
      is inferred to a depth of four tuples, since a function may return a tuple around its own result.

    Parameters keep their types. Nothing is moved or removed, and no check is lost. Refuses ops that can never be right,
    all at once, each at its position. Idempotent.
    """

    name = "infer-struct-info"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Infers every function."""
        functions = {func.sym_name.data: func for func in op.ops if isinstance(func, FuncOp)}
        calls = {name: _callees(func, functions) for name, func in functions.items()}
        inference = StructInfoInference(CallGraph.of(op).recursive())
        pending, findings = deque(_callees_first(calls)), dict[str, tuple[Finding, ...]]()
        while pending:
            name = pending.popleft()
            changed = inference.function(functions[name])
            findings[name] = tuple(inference.findings)
            if changed:
                pending.extend(user for user in findings if name in calls[user] and user not in pending)
        refuse(found for name in functions for found in findings[name])


def _callees(func: FuncOp, functions: Mapping[str, FuncOp]) -> tuple[str, ...]:
    names = (name for op in func.walk() for name in called_functions(op))
    return tuple(dict.fromkeys(name for name in names if name in functions))


def _callees_first(calls: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The functions in postorder of the call graph."""
    entered: set[str] = set()
    for root in calls:
        stack = [(root, iter(calls[root]))] if root not in entered else []
        entered.add(root)
        while stack:
            name, callees = stack[-1]
            callee = next((each for each in callees if each not in entered), None)
            if callee is None:
                stack.pop()
                yield name
            else:
                entered.add(callee)
                stack.append((callee, iter(calls[callee])))
