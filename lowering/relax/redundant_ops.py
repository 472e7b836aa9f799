"""`dead-code-elimination` removes ops that nothing needs, outputs that nothing reads, functions that nothing reaches;
`eliminate-common-subexpr` makes equal computations once.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.call_graph import CallGraph
from relax_dialect.analysis.aliases import holds_memory
from relax_dialect.analysis.effects import is_returned, may_be_written, may_write
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.control_flow import IfOp, YieldOp, yielded
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import CheckedWitness, block_symbols_used, symbols_used, symbols_witnessed
from relax_dialect.struct_info.types import as_struct_infos
from relax_dialect.traits import Loop, Unpacks, impurity_of


@dataclass(frozen=True)
class DeadCodeEliminationPass(ModulePass):
    """Removes what cannot change what an entry point returns or does.

    Before:

    ```mlir
    relax.func private @helper(%x: !relax.object) -> !relax.object { relax.return %x }
    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
      %0, %1 = relax.dataflow {
        %2 = relax.exp %x
        %3 = relax.call @helper(%x) : !relax.object
        relax.output %2, %3
      }
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
      %0 = relax.dataflow {
        %2 = relax.exp %x
        relax.output %2
      }
      relax.return %0
    }
    ```

    * Ops of relax functions without effects and without uses go, and what only they used. An op whose symbols a type
      still names is used. A check that nothing depends on goes too: a program that failed may stop failing
      (specification, "Purity and Dataflow Blocks").
    * Unread results of dataflow regions and branches go, with what yields them.
    * Functions and PrimFuncs go that no entry point refers to, directly or through others. Entry points are those that
      are not private, or just the named ones: `dead-code-elimination{entry=main}`.

    One walk from the end of each function, not xDSL's `dce`: that keeps functions and results of regions which nothing
    needs, and types use no symbols to it (`lowering.xdsl_compat`). What has effects is what xDSL says
    (`would_be_trivially_dead`). Idempotent; refuses an entry that is not there.
    """

    name = "dead-code-elimination"

    entry: tuple[str, ...] = ()
    """The functions to keep; without any, all that are not private."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Ops first: what they referred to may then be out of reach."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _Sweep().region(func.body)
        graph = CallGraph.of(op)
        for name in self.entry:
            if name not in graph.functions:
                listed = ", ".join(f"@{known}" for known in graph.functions) or "none"
                fail(op, f"expected the entry @{name} among the functions, got {listed}")
        reached = graph.reachable(
            self.entry or tuple(name for name, func in graph.functions.items() if not _is_private(func))
        )
        for name, func in graph.functions.items():
            if name not in reached:
                Rewriter.erase_op(func, safe_erase=False)


def _is_private(func: Operation) -> bool:
    visibility = func.properties.get("sym_visibility")
    return visibility is not None and str(visibility) == '"private"'


class _Sweep:
    """One walk backwards; `symbols` are those that an op after the current one names."""

    def __init__(self) -> None:
        self.symbols: set[str] = set()

    def region(self, region: Region) -> None:
        """Sweeps the block of a region."""
        for block in region.blocks:
            op = block.last_op
            while op is not None:
                before = op.prev_op
                if self._is_dead(op):
                    Rewriter.erase_op(op)
                else:
                    self._keep(_without_unread_results(op, self.symbols))
                op = before
            self.symbols |= block_symbols_used(block)

    def _keep(self, op: Operation) -> None:
        for region in op.regions:
            self.region(region)
        self.symbols |= symbols_used(op)

    def _is_dead(self, op: Operation) -> bool:
        if any(result.first_use is not None for result in op.results) or op.has_trait(IsTerminator):
            return False
        if not self.symbols.isdisjoint(symbols_witnessed(op)):
            return False
        # Whether a symbol is named is what the walk knows better.
        return bool(op.get_traits_of_type(CheckedWitness)) or would_be_trivially_dead(op)


def _without_unread_results(op: Operation, symbols: set[str]) -> Operation:
    """The op, or one instead of it without the results of a dataflow region or branch that nothing reads."""
    if not isinstance(op, DataflowOp | IfOp):
        return op
    witnesses = {result for name, result in symbols_witnessed(op).items() if name in symbols}
    kept = [result.index for result in op.results if result.first_use is not None or result in witnesses]
    if len(kept) == len(op.results):
        return op
    if isinstance(op, DataflowOp):
        _replace_end(op.body.block, OutputOp(*(op.output.values[index] for index in kept)))
        new: Operation = DataflowOp(op.detach_region(op.body))
    else:
        for region in (op.then_region, op.else_region):
            _replace_end(region.block, YieldOp(*(yielded(region)[index] for index in kept)))
        types = as_struct_infos(op.res[index].type for index in kept)
        else_region, then_region = op.detach_region(op.else_region), op.detach_region(op.then_region)
        new = IfOp(op.condition, then_region, else_region, types)
    new.attributes |= op.attributes
    inherit_location(op, new)
    for index, result in zip(kept, new.results, strict=True):
        result.name_hint = op.results[index].name_hint
        op.results[index].replace_all_uses_with(result)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.erase_op(op)
    return new


def _replace_end(block: Block, terminator: Operation) -> None:
    old = block.last_op
    if old is not None:
        inherit_location(old, terminator)
        Rewriter.replace_op(old, terminator)


_Known: TypeAlias = "MutableMapping[Hashable, Operation]"
"""The ops whose results may be used here, by what they compute."""


class EliminateCommonSubexprPass(ModulePass):
    """Replaces an op by an equal one that comes before it.

    Before:

    ```mlir
    %0 = relax.exp %x
    %1 = relax.exp %x
    %2 = relax.add %0, %1
    ```

    After:

    ```mlir
    %0 = relax.exp %x
    %2 = relax.add %0, %0
    ```

    Ops are equal that have the same name, operands, properties, attributes and result types, and whose operands have
    the same elements: nobody writes into their memory between the two, or ever. The one that stays is in the same block
    or around it, so that it has run. Only ops without effects and regions are looked at; these are left alone:

    * an op that binds symbols;
    * an op whose result somebody may write into, as `relax.call_tir_inplace` does: the other use would see it;
    * of ops whose results the caller gets, each: it may write into one of them and read the other;
    * an op that unpacks weights: the kernel of each use decodes them itself;
    * in a closure, an op that is equal to one outside: it would have to be captured.

    One walk of its own, not xDSL's `cse`: that takes any write to change all memory, and lets a closure capture what is
    outside (`lowering.xdsl_compat`). Idempotent; refuses nothing; what is kept keeps its location.
    """

    name = "eliminate-common-subexpr"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _Visit(func).block(func.body.block, {})


class _Visit:
    """One walk through a function."""

    def __init__(self, func: FuncOp):
        self._pure = func.function_type.pure
        self._written: dict[SSAValue, bool] = {}
        self._age = 0
        """Grows with every op that may write: of equal ops that read what it may have written, each has its own. What
        one region writes, another one of the same op does not read: each begins with the age before the op.
        """

    def block(self, block: Block, known: _Known) -> None:
        """Replaces ops of a block, and in regions of its ops, by those that are known before them."""
        for op in block.ops:
            if op.regions:
                writes = not self._pure and may_write(op)
                if writes and op.has_trait(Loop):  # what the last iteration has written is read by the next one
                    self._age += 1
                start = self._age
                for region in op.regions:
                    self._age = start
                    for inner in region.blocks:
                        around = (known,) if not isinstance(op, ClosureOp) else ()
                        self.block(inner, ChainMap[Hashable, Operation]({}, *around))
                self._age = start + writes
            elif self._is_candidate(op):
                # What an op computes. Attributes are compared by value, operands by identity.
                properties = frozenset(op.properties.items())
                changes = not self._pure and any(self._may_be_written(operand) for operand in _memory(op.operands))
                age = self._age if changes else -1
                first = known.setdefault(
                    (op.name, op.operands, tuple(op.result_types), properties, frozenset(op.attributes.items()), age),
                    op,
                )
                if first is not op and not self._are_returned(first, op):
                    for result, other in zip(op.results, first.results, strict=True):
                        other.name_hint = other.name_hint or result.name_hint
                    Rewriter.replace_op(op, [], first.results)
            elif not self._pure and may_write(op):
                self._age += 1

    def _is_candidate(self, op: Operation) -> bool:
        if op.has_trait(IsTerminator) or op.has_trait(Unpacks):
            return False
        if symbols_witnessed(op) or isinstance(op, CallTIRInplaceOp):
            return False
        return impurity_of(op) is None and not any(self._may_be_written(result) for result in _memory(op.results))

    @staticmethod
    def _are_returned(first: Operation, second: Operation) -> bool:
        """Whether the caller gets the memory of both of two equal ops."""
        pairs = zip(_memory(first.results), _memory(second.results), strict=True)
        return any(is_returned(one) and is_returned(other) for one, other in pairs)

    def _may_be_written(self, value: SSAValue) -> bool:
        """Whether somebody may write into a value. What replaces another is written no more than both were."""
        if value not in self._written:
            self._written[value] = may_be_written(value)
        return self._written[value]


def _memory(values: Sequence[SSAValue]) -> Iterator[SSAValue]:
    return (value for value in values if holds_memory(value))
