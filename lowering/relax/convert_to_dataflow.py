"""`convert-to-dataflow`: runs of pure ops become dataflow regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike, IsTerminator

from lowering.locations import inherit_location
from lowering.relax.call_graph import CallGraph, referenced_functions
from lowering.relax.substitution import all_symbols, named_symbols
from lowering.relax.to_non_dataflow import SymbolScopes, dissolve
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.calls import CallClosureOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.ops.shapes import ShapeOp, TupleOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.traits import AliasesOperand, ControlFlow, impurity_of


@dataclass(frozen=True)
class ConvertToDataflowPass(ModulePass):
    """Wraps each run of pure ops without control flow in a `relax.dataflow` region.

    Before:

    ```mlir
    %0 = relax.exp %x
    %1 = relax.add %0, %x
    relax.call_packed "show"(%1)
    ```

    After:

    ```mlir
    %0 = relax.dataflow {
      %1 = relax.exp %x
      %2 = relax.add %1, %x
      relax.output %2
    }
    relax.call_packed "show"(%0)
    ```

    * A run is as long as it can be, and takes in the regions that are there; so no two regions follow each other.
    * A run of fewer than `min-size` ops stays as it is. What the specification calls leaves (constants, prims, strings,
      shapes, tuples) does not count.
    * What is used after the run is its output, and so is the witness of a symbol that is named there.
    * These stay outside: control flow, impure ops, calls of function values (which may recurse), calls of functions
      that call the current one, and closures that capture a value of the run, which then ends.

    In functions, closures, branches and loops. Idempotent; refuses nothing. The inverse is `to-non-dataflow`.
    """

    name = "convert-to-dataflow"

    min_size: int = 2
    """The smallest number of ops that are worth a region."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Blocks of nested regions too; a new region is not looked into."""
        components = CallGraph.of(op).components()
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            rule = _Rule(components, components[func.sym_name.data])
            scopes = SymbolScopes((func,), all_symbols(func))
            for block in list(_blocks(func)):
                _convert(block, rule, scopes, self.min_size)


@dataclass(frozen=True)
class _Rule:
    """What may be wrapped in one function."""

    components: Mapping[str, int]
    here: int
    """The component of the function in the call graph."""

    def admits(self, op: Operation) -> bool:
        """Whether `op` may be in a region, whatever it uses."""
        if isinstance(op, DataflowOp):
            return True
        if op.has_trait(IsTerminator) or op.has_trait(ControlFlow) or isinstance(op, CallClosureOp):
            return False
        if impurity_of(op) is not None:
            return False
        return all(self.components.get(name) != self.here for name in referenced_functions(op))


def _convert(block: Block, rule: _Rule, scopes: SymbolScopes, min_size: int) -> None:
    """Wraps the runs of a block, the last one first: what is named after each is known then."""
    named: set[str] = set()
    counted: Operation | None = None
    for run in reversed(_runs(block, rule)):
        following = run[-1].next_op
        named |= _symbols_between(following, counted)
        if _size(run) >= min_size and not (len(run) == 1 and isinstance(run[0], DataflowOp)):
            following = _wrap(run, named, scopes)
        counted = following


def _blocks(func: FuncOp) -> Iterator[Block]:
    """The blocks of a function that are in no dataflow region or group, and those of closures wherever they are."""
    pending: list[Region] = [func.body]
    while pending:
        for block in pending.pop().blocks:
            if not isinstance(block.parent_op(), DataflowOp | FusedOp):
                yield block
            for op in block.ops:
                pending += op.regions


def _runs(block: Block, rule: _Rule) -> list[list[Operation]]:
    """The longest runs of ops that may be in one region.

    Nobody but its user may see a value that is written in place, not even a region that it comes from: the ops that
    make it for a later run stay outside.
    """
    outside: set[Operation] = set()
    while True:
        runs = list(_split(block, rule, outside))
        number = {op: index for index, run in enumerate(runs) for op in run}
        leaving = {
            maker
            for op in block.walk()
            if isinstance(op, CallTIRInplaceOp) and op.impurity is None
            for maker in _makers(op)
            if maker in number and number[maker] != number.get(op)
        }
        if not leaving:
            return runs
        outside |= leaving


def _makers(op: CallTIRInplaceOp) -> Iterator[Operation]:
    """The ops that make, or give another type to, what `op` writes in place."""
    for index in op.targets:
        value = op.arguments[index] if index >= 0 else None
        while isinstance(value, OpResult):
            yield value.op
            value = value.op.operands[0] if value.op.has_trait(AliasesOperand) else None


def _split(block: Block, rule: _Rule, outside: set[Operation]) -> Iterator[list[Operation]]:
    """The runs if the ops `outside` are in none."""
    run: list[Operation] = []
    made: set[SSAValue] = set()
    for op in block.ops:
        fits = op not in outside and rule.admits(op)
        if run and (not fits or _captures(op, made)):
            yield run
            run, made = [], set()
        if fits:
            run.append(op)
            made.update(op.results)
    if run:
        yield run


def _captures(op: Operation, made: set[SSAValue]) -> bool:
    """Whether `op` is, or as a region holds, a closure that captures one of the values."""
    closures = op.body.ops if isinstance(op, DataflowOp) else (op,)
    return any(
        operand in made
        for closure in closures
        if isinstance(closure, ClosureOp)
        for inner in closure.walk()
        for operand in inner.operands
    )


def _size(run: Sequence[Operation]) -> int:
    """How many ops count, those in regions included."""
    ops = [inner for op in run for inner in (op.body.ops if isinstance(op, DataflowOp) else (op,))]
    return sum(not _is_leaf(op) for op in ops)


def _is_leaf(op: Operation) -> bool:
    return op.has_trait(ConstantLike) or op.has_trait(IsTerminator) or isinstance(op, ShapeOp | TupleOp)


def _wrap(run: Sequence[Operation], named: AbstractSet[str], scopes: SymbolScopes) -> Operation:
    """Moves the ops of a run into a new region at its position, which it gives; regions among them dissolve.

    `named` are the symbols that are named after the run. Those that a region among the ops binds for itself get other
    names where they would clash.
    """
    block, following = run[0].parent, run[-1].next_op
    if block is None or following is None:
        raise ValueError(f"'{run[0].name}' op is in no block that ends in a terminator")
    start = run[0].prev_op
    for op in run:
        if isinstance(op, DataflowOp):
            dissolve(op, scopes)
    ops = _between(block, start, following)
    outputs = _outputs(ops, block, named)
    end = OutputOp(*outputs)
    inherit_location(ops[-1], end)
    body = Block()
    for op in ops:
        op.detach()
    body.add_ops((*ops, end))
    dataflow = DataflowOp(Region(body))
    inherit_location(ops[0], dataflow)
    for value, result in zip(outputs, dataflow.results, strict=True):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: _ancestor_in(use.operation, body) is None)
    Rewriter.insert_op(dataflow, InsertPoint.before(following))
    return dataflow


def _between(block: Block, start: Operation | None, end: Operation) -> list[Operation]:
    """The ops after `start`, or from the first one, up to `end`."""
    ops: list[Operation] = []
    op = block.first_op if start is None else start.next_op
    while op is not None and op is not end:
        ops.append(op)
        op = op.next_op
    return ops


def _outputs(ops: Sequence[Operation], block: Block, named: AbstractSet[str]) -> list[SSAValue]:
    """The values that are used after the ops, and the witnesses of symbols that are named there."""
    inside = set(ops)
    used = [
        result
        for op in ops
        for result in op.results
        if any(_ancestor_in(use.operation, block) not in inside for use in result.uses)
    ]
    wanted = {*named, *(name for value in used for name in free_symbols(value.type))}
    witnesses = {name: value for op in ops for name, value in symbols_witnessed(op).items()}
    return [*used, *(value for name, value in witnesses.items() if name in wanted and value not in used)]


def _symbols_between(op: Operation | None, end: Operation | None) -> set[str]:
    """The symbols that are named from `op` on, before `end`."""
    found: set[str] = set()
    while op is not None and op is not end:
        found |= named_symbols(op)
        op = op.next_op
    return found


def _ancestor_in(op: Operation, block: Block | None) -> Operation | None:
    """The op of `block` that is or holds `op`; `None` if `op` is elsewhere."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current
