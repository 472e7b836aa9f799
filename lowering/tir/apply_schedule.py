"""`apply-schedule`: recorded schedules from a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from lowering.diagnostics import Finding, refuse
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Schedule, ScheduleError, Trace, trace
from vm_dialect.files import open_regular

MARK = "schedule"
"""The attribute of a scheduled function or module: which trace it has been through."""


@dataclass(frozen=True)
class ApplySchedulePass(ModulePass):
    """Replays the traces in a JSON file, as `tir_dialect.schedule.trace.save` writes them, on the functions they name.

    ```mlir
    // {"version": 1, "functions": {"f": [
    //   {"call": "get_block", "args": ["B"], "outputs": {"b": 0}},
    //   {"call": "get_loops", "args": [{"b": 0}], "outputs": [{"l": 1}]},
    //   {"call": "parallel", "args": [{"l": 1}]}]}}
    tir.for (%i) in (%n) { tir.block "B" ... }
    // becomes
    tir.for parallel (%i) in (%n) { tir.block "B" ... }
    ```

    On the shell: `relax-opt -p 'apply-schedule{file="steps.json"}'`. Functions without a trace stay as they are. A
    file may also have a trace of the whole module, `"module": [...]`, whose calls say which function they mean. What
    has been through its trace, functions and modules, is marked by the attribute `schedule`; run the pass again and it
    stays as it is. With `validate`, the interpreter runs every function before and after each step, at some small
    sizes, and steps after which it finds another result are refused. Refuses files that cannot be read, traces of
    functions that are not in the module, and steps that cannot be applied.
    """

    name = "apply-schedule"

    file: str
    """The path of the JSON file."""

    validate: bool = False
    """Whether to compare what the functions compute before and after each step."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """All functions, then one report of those that could not be scheduled."""
        traces, of_module = _read(self.file)
        funcs = {func.sym_name.data: func for func in op.ops if isinstance(func, PrimFuncOp)}
        missing = sorted(traces.keys() - funcs.keys())
        if missing:
            raise PassFailedException(
                f"apply-schedule: {self.file} has a trace of @{missing[0]}, which is no prim_func here"
            )
        findings = [found for name, steps in traces.items() if (found := self._replay(funcs[name], steps)) is not None]
        refuse(findings)
        if of_module is not None:
            refuse(list(filter(None, [self._replay(op, of_module)])))

    def _replay(self, root: PrimFuncOp | ModuleOp, steps: Trace) -> Finding | None:
        digest = StringAttr(hashlib.sha256(steps.as_python().encode()).hexdigest()[:16])
        if root.attributes.get(MARK) == digest:
            return None
        try:
            steps.replay(Schedule(root, validate=self.validate))
        except ScheduleError as error:
            kind = "function" if isinstance(root, PrimFuncOp) else "module"
            return Finding.at(root, f"cannot be scheduled: {error}", f"record the trace on this {kind}")
        root.attributes[MARK] = digest
        return None


def _read(path: str) -> tuple[dict[str, Trace], Trace | None]:
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8")
        return trace.load(text), trace.load_module(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except UnicodeDecodeError:
        reason = "expected JSON, got no text"
    except ValueError as error:
        reason = str(error)
    raise PassFailedException(f"apply-schedule: expected a file of schedule traces, got {path}: {reason}")
