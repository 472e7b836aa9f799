"""What the memory planner has done: planned and naive bytes of every function.

The naive peak is that of a program in which every tensor has memory of its own for the whole call; the live peak is
the least that any plan could reach, where it is a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.relax.memory.plan import Lifetimes, aligned, lifetimes
from lowering.relax.memory.plan_memory import tensor_bytes
from lowering.relax.memory.use_inplace_calls import IN_PLACE
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, StorageTensorOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant


@dataclass(frozen=True)
class FunctionMemory:
    """The memory that one call of a function takes besides its arguments."""

    name: str
    tensors: int
    """How many tensors the arenas hold."""
    arenas: int
    planned: Dim
    """Bytes of the arenas."""
    naive: Dim
    """Bytes if no two tensors shared memory."""
    live: int | None
    """The greatest number of bytes that are alive at once, `None` if sizes are symbolic."""
    own: int
    """How many tensors have memory of their own, since they leave the function or code that we do not see."""
    own_bytes: Dim | None
    """Bytes of these, `None` if some shape is only known at run time."""
    reused: int = 0
    """How many results took the memory of an operand; they count in none of the other figures but `naive`."""

    def as_text(self) -> str:
        """Two or three lines."""
        lines = [f"@{self.name}"]
        if self.tensors:
            live = "" if self.live is None else f", at least {self.live} B are alive at once"
            what = f"{_count(self.tensors, 'tensor')} in {_count(self.arenas, 'arena')}"
            lines.append(f"  {what}: planned {self.planned} B, naive {self.naive} B{live}")
        if self.own:
            size = "of sizes known at run time" if self.own_bytes is None else f"{self.own_bytes} B"
            lines.append(f"  {self.own} with memory of their own: {size}")
        if self.reused:
            lines.append(f"  {_count(self.reused, 'result')} in the memory of an operand")
        return "\n".join(lines if len(lines) > 1 else [*lines, "  no tensors"])


@dataclass(frozen=True)
class MemoryReport:
    """The memory of all functions of a module."""

    functions: tuple[FunctionMemory, ...]

    def as_text(self) -> str:
        """The functions one after the other."""
        return "\n".join(function.as_text() for function in self.functions)

    def __getitem__(self, name: str) -> FunctionMemory:
        """The function of that name; `KeyError` if there is none."""
        found = {function.name: function for function in self.functions}
        return found[name]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def memory_report(module: ModuleOp, *, optimize: bool = True) -> MemoryReport:
    """Lowers a copy of a module as far as memory is planned, and reports on it; without `optimize` nothing is fused.

    Raises what the passes raise. Functions that are lowered further are not in the report.
    """
    from lowering.pipelines import RelaxToVMPass, RelaxToVMPlainPass

    lowered = module.clone()
    for each in (RelaxToVMPass if optimize else RelaxToVMPlainPass).passes():
        each.apply(Context(), lowered)
        if each.name == "plan-memory":
            break
    return MemoryReport(tuple(_report(func) for func in lowered.ops if isinstance(func, FuncOp)))


def _report(func: FuncOp) -> FunctionMemory:
    storages = [op for op in func.walk() if isinstance(op, AllocStorageOp)]
    placed = [op for op in func.walk() if isinstance(op, StorageTensorOp)]
    own = [op for op in func.walk() if isinstance(op, AllocTensorOp)]
    reused = _results_in_place(func)
    sizes = [aligned(tensor_bytes(info)) for info in (*(op.result.type for op in placed), *reused)]
    return FunctionMemory(
        func.sym_name.data,
        len(placed),
        len(storages),
        sum((op.size.data for op in storages), constant(0)),
        sum(sizes, constant(0)),
        _live_peak(placed, lifetimes(func.body)),
        len(own),
        _bytes(own),
        len(reused),
    )


def _results_in_place(func: FuncOp) -> list[TensorType]:
    """The types of results that took the memory of an operand; the result is the last argument."""
    calls = (op for op in func.walk() if isinstance(op, CallKernelOp) and IN_PLACE in op.attributes)
    return [info for op in calls if isinstance(info := op.arguments[-1].type, TensorType)]


def _bytes(allocations: list[AllocTensorOp]) -> Dim | None:
    total = constant(0)
    for op in allocations:
        if op.result.type.known_dims is None:
            return None
        total = total + tensor_bytes(op.result.type)
    return total


def _live_peak(placed: list[StorageTensorOp], facts: Lifetimes) -> int | None:
    changes: dict[int, int] = {}
    for op in placed:
        size = aligned(tensor_bytes(op.result.type)).constant_value
        if size is None:
            return None
        for step, change in _interval(op, facts, size):
            changes[step] = changes.get(step, 0) + change
    peak = alive = 0
    for step in sorted(changes):
        alive += changes[step]
        peak = max(peak, alive)
    return peak


def _interval(op: StorageTensorOp, facts: Lifetimes, size: int) -> Iterator[tuple[int, int]]:
    yield facts.steps[op], size
    yield facts.last_use(op.result) + 1, -size
