"""`plan-memory`: tensors that do not leave their function share one arena; and a report of planned and naive bytes.

The naive peak is that of a program in which every tensor has memory of its own for the whole call; the live peak is
the least that any plan could reach, where it is a number. `poison-memory`: tensors in the arena hold NaN before they
are written and after their last use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from lowering.locations import inherit_location
from lowering.relax.memory.plan import Buffer, Lifetimes, Plan, aligned, bounded, lifetimes, plan
from lowering.relax.memory.use_inplace_calls import IN_PLACE
from relax_dialect.analysis.aliases import leaves, views
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, StorageTensorOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import prover_at, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, Prover, constant, product, symbol
from tir_dialect.dtypes import byte_size, dtype_name, is_bool, is_float, is_unsigned
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te.coerce import integer_range


class PlanMemoryPass(ModulePass):
    """Places every tensor that does not escape at an offset of a shared storage.

    Before:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    ```

    After:

    ```mlir
    %s = relax.alloc_storage size 64 * floordiv(4 * n + 63, 64)
    %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    ```

    Expects `lower-call-tir`. A tensor escapes if it, or a view of it, is returned, yielded, captured, put into a tuple
    or passed to anything but a kernel; it keeps memory of its own. There is one storage for each point where the last
    symbol of some sizes becomes known, made right there, so that its size is always computable: as a rule one, at the
    function's entry. Where the function's symbols have upper bounds, sizes are planned at their greatest values.
    Tensors whose shape is a run-time value are not planned. Idempotent.
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plans each function by itself."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                plan_function(func)


@dataclass(frozen=True)
class Arena:
    """A planned storage: its tensors and their offsets."""

    storage: AllocStorageOp
    plan: Plan


def plan_function(func: FuncOp) -> list[Arena]:
    """Plans one function; returns the arenas it made."""
    facts = lifetimes(func.body)
    prover = prover_at(func.body.block.first_op) if func.body.block.first_op is not None else Prover()
    witnesses = _Witnesses(func.body, facts)
    groups: dict[InsertPointKey, list[AllocTensorOp]] = {}
    for alloc in _planned(func.body):
        point = witnesses.known_at(alloc, bounded(tensor_bytes(alloc.result.type), prover))
        groups.setdefault(point, []).append(alloc)
    return [_arena(point, allocs, facts, prover) for point, allocs in groups.items()]


def tensor_bytes(tensor: TensorType) -> Dim:
    """Bytes of a tensor whose shape and dtype are known."""
    if tensor.known_dims is None or tensor.dtype is None:
        raise ValueError(f"the size of {tensor} is not known")
    return product(tensor.known_dims) * byte_size(tensor.dtype)


@dataclass(frozen=True)
class InsertPointKey:
    """After an op, or at the start of a block: a point where symbols become known."""

    block: Block
    after: Operation | None


def _planned(body: Region) -> Iterator[AllocTensorOp]:
    for op in body.walk():
        if isinstance(op, AllocTensorOp) and op.shape is None and not leaves(op.result):
            yield op


class _Witnesses:
    """The ops of a function whose results say what symbols are."""

    def __init__(self, body: Region, facts: Lifetimes):
        self._facts = facts
        self._ops: dict[tuple[Block | None, str], list[Operation]] = {}
        """Those of a block for a symbol, in order."""
        for op in body.walk():
            for name in _witnessed(op.results):
                self._ops.setdefault((op.parent, name), []).append(op)

    def known_at(self, alloc: AllocTensorOp, size: Dim) -> InsertPointKey:
        """The point where the last of the size's symbols is bound: going outwards and upwards from the allocation."""
        op: Operation = alloc
        while (block := op.parent) is not None:
            before = [last for symbol in size.symbols if (last := self._last(block, symbol, op)) is not None]
            if before:
                return InsertPointKey(block, max(before, key=self._step))
            parent = block.parent_op()
            if parent is None or isinstance(parent, FuncOp) or not size.symbols.isdisjoint(_witnessed(block.args)):
                return InsertPointKey(block, None)
            op = parent
        raise ValueError("an allocation has to be inside a function")

    def _last(self, block: Block, symbol: str, op: Operation) -> Operation | None:
        """The last one in a block before an op."""
        ops = self._ops.get((block, symbol), [])
        count = bisect_left(ops, self._step(op), key=self._step)
        return ops[count - 1] if count else None

    def _step(self, op: Operation) -> int:
        return self._facts.steps[op]


def _witnessed(values: Sequence[SSAValue]) -> set[str]:
    return {value.type.symbol for value in values if isinstance(value.type, PrimType) and value.type.symbol is not None}


def _arena(point: InsertPointKey, allocs: Sequence[AllocTensorOp], facts: Lifetimes, prover: Prover) -> Arena:
    buffers = [
        Buffer(bounded(tensor_bytes(alloc.result.type), prover), facts.steps[alloc], facts.last_use(alloc.result))
        for alloc in allocs
    ]
    result = plan(buffers, prover)
    storage = AllocStorageOp(result.total)
    storage.result.name_hint = "storage"
    inherit_location(allocs[0], storage)
    where = InsertPoint.at_start(point.block) if point.after is None else InsertPoint.after(point.after)
    Rewriter.insert_op(storage, where)
    for alloc, offset in zip(allocs, result.offsets, strict=True):
        tensor = StorageTensorOp(storage, offset, alloc.result.type)
        inherit_location(alloc, tensor)
        Rewriter.replace_op(alloc, tensor)
    return Arena(storage, result)


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
    # The types of results that took the memory of an operand; the result is the last argument.
    calls = (op for op in func.walk() if isinstance(op, CallKernelOp) and IN_PLACE in op.attributes)
    reused = [info for op in calls if isinstance(info := op.arguments[-1].type, TensorType)]
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


class PoisonMemoryPass(ModulePass):
    """Fills planned tensors with NaN, or the minimum of an integer dtype, while they hold no value.

    Before:

    ```mlir
    %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_kernel @sum(%a, %y) sizes [n]
    ```

    After:

    ```mlir
    %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
    relax.call_kernel @poison_1_f32(%a) sizes [n]
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_kernel @sum(%a, %y) sizes [n]
    relax.call_kernel @poison_1_f32(%a) sizes [n]
    ```

    For tests, between `plan-memory` and `insert-kills`: a program that reads a tensor too early or too late, or whose
    tensors overlap, gives NaN instead of numbers that happen to be right.
    """

    name = "poison-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Surrounds the uses of every tensor in a storage."""
        kernels = _Poison(op)
        for func in [each for each in op.ops if isinstance(each, FuncOp)]:
            for tensor in [each for each in func.walk() if isinstance(each, StorageTensorOp)]:
                last = _last_use(tensor)
                Rewriter.insert_op(kernels.call(tensor), InsertPoint.after(tensor))
                if last is not None and not last.has_trait(IsTerminator):
                    Rewriter.insert_op(kernels.call(tensor), InsertPoint.after(last))


class _Poison:
    """The kernels that fill, one for each rank and dtype."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._made: dict[tuple[int, Attribute], str] = {}
        self._names = {name for op in module.ops if (name := symbol_name(op)) is not None}

    def call(self, tensor: StorageTensorOp) -> CallKernelOp:
        """A call that fills a tensor."""
        info = tensor.result.type
        if info.known_dims is None or info.dtype is None:
            raise ValueError(f"a tensor in a storage has a known shape and dtype, got {info}")
        key = (len(info.known_dims), info.dtype)
        if key not in self._made:
            name = fresh_name(f"poison_{key[0]}_{dtype_name(key[1])}", self._names)
            self._names.add(name)
            self._made[key] = name
            self._module.body.block.add_op(_fill(name, *key))
        call = CallKernelOp(self._made[key], [tensor.result], info.known_dims)
        inherit_location(tensor, call)
        return call


def _fill(name: str, rank: int, dtype: Attribute) -> PrimFuncOp:
    """A PrimFunc that writes what no computation gives."""
    shape = [symbol(f"d{axis}") for axis in range(rank)]
    value = te.const(_poison(dtype), dtype_name(dtype))
    return te.create_prim_func([te.compute(shape, lambda *i: value, name="poison")], name=name)


def _poison(dtype: Attribute) -> float:
    if is_float(dtype):
        return nan
    if is_bool(dtype):
        return True
    typed = te.const(0, dtype_name(dtype)).dtype
    least, greatest = (0, 0) if isinstance(typed, IndexType) else integer_range(typed)
    return greatest if is_unsigned(dtype) else least


def _last_use(tensor: StorageTensorOp) -> Operation | None:
    """The last op of the tensor's block that uses it, itself or inside of its regions; `None` if there is none."""
    block = tensor.parent
    if block is None:
        return None
    order = {op: index for index, op in enumerate(block.ops)}
    users = [
        user
        for alias in views(tensor.result)
        for use in alias.uses
        if (user := block.find_ancestor_op_in_block(use.operation)) is not None
    ]
    return max(users, key=lambda user: order[user], default=None)
