"""`convert-to-dataflow`: runs of pure ops become dataflow regions; `to-non-dataflow`: these dissolve;
`topological-sort`: their ops in another order.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike, IsTerminator
from xdsl.utils.exceptions import PassFailedException

from lowering.diagnostics import Finding, refuse
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.call_graph import CallGraph
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.function_symbols import all_symbols, bindings, named_symbols, substitute_in
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.calls import CallClosureOp
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, OutputOp
from relax_dialect.ops.shapes import ShapeOp, TupleOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.symbols import free_symbols, fresh_name
from relax_dialect.traits import AliasesOperand, ControlFlow, impurity_of
from tir_dialect.dims import symbol
from tir_dialect.fast_ops import referenced_functions


class ToNonDataflowPass(Pass):
    """Inlines every dataflow region into the function.

    Before:

    ```mlir
    %gv = relax.dataflow {
      %lv = relax.exp %x
      relax.output %lv
    }
    relax.return %gv
    ```

    After:

    ```mlir
    %lv = relax.exp %x
    relax.return %lv
    ```

    Later passes insert ops with effects, which a dataflow region must not hold. A symbol that a region binds for itself
    gets another name if the function binds one of that name elsewhere too. Idempotent; touches nothing else.
    """

    name = "to-non-dataflow"
    removes = ("relax.dataflow", "relax.output")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            if isinstance(func, FuncOp) and any(isinstance(inner, DataflowOp) for inner in func.walk()):
                apply_patterns(func, [InlineDataflow(SymbolScopes((func,), all_symbols(func)))])


class InlineDataflow(RewritePattern):
    """A dataflow region is the ops in it: `y = dataflow { v = exp(x); output v }  ->  y = exp(x)`."""

    def __init__(self, scopes: SymbolScopes):
        self._scopes = scopes

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DataflowOp, rewriter: PatternRewriter) -> None:
        self._scopes.open(op)
        output = op.output
        values = output.values
        for result, value in zip(op.results, values, strict=True):
            value.name_hint = value.name_hint or result.name_hint
            rewriter.replace_all_uses_with(result, value)
        rewriter.erase(output)
        rewriter.inline_block(op.body.block, InsertPoint.before(op))
        rewriter.erase(op)


class SymbolScopes:
    """How often the symbols of a function are bound, so that those of a region may leave it."""

    def __init__(self, ops: Iterable[Operation], taken: set[str]):
        """The symbols that are bound in `ops`; new ones are none of `taken`, to which they are added."""
        self._taken = taken
        self._count = Counter(name for op in ops for name in bindings(op))

    def open(self, dataflow: DataflowOp) -> None:
        """Gives the symbols that a region binds for itself names that are bound nowhere else."""
        passed_on = dataflow.result_witnesses
        renamed: dict[str, str] = {}
        for op in dataflow.body.ops:
            for name, witness in symbols_witnessed(op).items():
                if name not in passed_on and self._count[name] > 1:
                    renamed[name] = witness.name_hint = fresh_name(name, self._taken)
                    self._taken.add(renamed[name])
                    self._count.subtract([name])
        substitute_in(dataflow.body.ops, {old: symbol(new) for old, new in renamed.items()})


def dissolve(dataflow: DataflowOp, scopes: SymbolScopes) -> None:
    """Puts the ops of one region instead of it, and its outputs in that of its results."""
    InlineDataflow(scopes).match_and_rewrite(dataflow, PatternRewriter(dataflow))


def refuse_pure_regions(ops: Iterable[Operation], why: str) -> None:
    """Refuses ops that are in a dataflow region or a group, which hold pure ops only, where effects are to be put."""
    regions = {op: region for op in ops if isinstance(region := op.parent_op(), DataflowOp | FusedOp)}
    refuse(
        Finding.at(
            op, f"is in a '{region.name}', whose ops are pure, but {why}", f"run '{_DISSOLVED_BY[type(region)]}' before"
        )
        for op, region in regions.items()
    )


_DISSOLVED_BY: dict[type[Operation], str] = {DataflowOp: "to-non-dataflow", FusedOp: "fuse-tir"}


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
        # The symbols that are named from `op` on, before `end`.
        op = following
        found: set[str] = set()
        while op is not None and op is not counted:
            found |= named_symbols(op)
            op = op.next_op
        named |= found
        # How many ops count, those in regions included.
        ops = [inner for op in run for inner in (op.body.ops if isinstance(op, DataflowOp) else (op,))]
        if sum(not _is_leaf(op) for op in ops) >= min_size and not (len(run) == 1 and isinstance(run[0], DataflowOp)):
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
    # The ops after `start`, or from the first one, up to `end`.
    ops: list[Operation] = []
    op = block.first_op if start is None else start.next_op
    while op is not None and op is not following:
        ops.append(op)
        op = op.next_op
    # The values that are used after the ops, and the witnesses of symbols that are named there.
    inside = set(ops)
    used = [
        result
        for op in ops
        for result in op.results
        if any(_ancestor_in(use.operation, block) not in inside for use in result.uses)
    ]
    wanted = {*named, *(name for value in used for name in free_symbols(value.type))}
    witnesses = {name: value for op in ops for name, value in symbols_witnessed(op).items()}
    outputs = [*used, *(value for name, value in witnesses.items() if name in wanted and value not in used)]
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


def _ancestor_in(op: Operation, block: Block | None) -> Operation | None:
    """The op of `block` that is or holds `op`; `None` if `op` is elsewhere."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


Order = Literal["depth-first", "breadth-first"]

Edges = Sequence[Sequence[int]]
"""For each op, by its position in the region, the positions of others."""


@dataclass(frozen=True)
class TopologicalSortPass(ModulePass):
    """Sorts the ops of every dataflow region topologically.

    Before:

    ```mlir
    %0 = relax.dataflow {
      %1 = relax.exp %x
      %2 = relax.exp %y
      %3 = relax.log %1
      %4 = relax.log %2
      %5 = relax.add %3, %4
      relax.output %5
    }
    ```

    After `topological-sort{order=depth-first direction=from-inputs}`:

    ```mlir
    %0 = relax.dataflow {
      %1 = relax.exp %x
      %3 = relax.log %1
      %2 = relax.exp %y
      %4 = relax.log %2
      %5 = relax.add %3, %4
      relax.output %5
    }
    ```

    * `from-inputs`: an op comes as soon as all that it depends on is there. Breadth-first takes all ops of a step
      before those that they make possible, depth-first goes on with an op that the last one made possible.
    * `from-outputs`: the same from the outputs backwards, so that an op comes as late as possible: breadth-first by
      steps; depth-first computes all that an operand needs before the next operand. What no output needs comes last.

    Among equals the order is the one before. An op depends on its operands, on what closures in it capture, and on the
    witnesses of the symbols that it names.
    Nothing is added or removed, and ops outside of regions stay where they are: run `convert-to-dataflow` before.
    Linear in the size of a region. Idempotent; refuses only options that are none of the above.
    """

    name = "topological-sort"

    order: str = "depth-first"
    """`depth-first` or `breadth-first`."""
    direction: str = "from-inputs"
    """`from-inputs` or `from-outputs`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Sorts each region by itself."""
        if self.order not in ("depth-first", "breadth-first"):
            raise PassFailedException(f"'{self.name}' expected order depth-first or breadth-first, got {self.order}")
        if self.direction not in ("from-inputs", "from-outputs"):
            raise PassFailedException(
                f"'{self.name}' expected direction from-inputs or from-outputs, got {self.direction}"
            )
        for dataflow in [inner for inner in op.walk() if isinstance(inner, DataflowOp)]:
            _sort(dataflow, self.order == "depth-first", self.direction == "from-inputs")


def _sort(dataflow: DataflowOp, depth_first: bool, from_inputs: bool) -> None:
    """Reorders the ops; the terminator stays the last one."""
    ops = list(dataflow.body.block.ops)
    # For each op the positions of the ops that have to come before it, in the order of its operands.
    index_of: Mapping[Operation, int] = {op: index for index, op in enumerate(ops)}
    witnesses = {name: index for index, op in enumerate(ops) for name in symbols_witnessed(op)}
    needs: list[list[int]] = []
    for index, op in enumerate(ops):
        makers = (operand.owner for inner in op.walk() for operand in inner.operands)
        found = [index_of[maker] for maker in makers if isinstance(maker, Operation) and maker in index_of]
        bound = dict.fromkeys(bindings(op)) if op.regions else {}
        found += [witnesses[name] for name in sorted(named_symbols(op)) if name in witnesses and name not in bound]
        needs.append([each for each in dict.fromkeys(found) if each != index])
    for index, op in enumerate(ops):
        # A closure may bind a symbol for itself and the region bind one of that name after it, but not before it.
        for name in bindings(op) if op.regions else ():
            if name in witnesses:
                needs[witnesses[name]].append(index)
    end = len(ops) - 1
    if from_inputs:
        order = [index for index in _ready_first(needs, _inverse(needs), depth_first) if index != end]
    elif depth_first:
        unneeded = (index for index, users in enumerate(_inverse(needs)[:-1]) if not users)
        order = [index for index in _postorder([end, *unneeded], needs) if index != end]
    else:
        last_needed_first = [list(reversed(positions)) for positions in needs]
        order = list(reversed(_ready_first(_inverse(needs), last_needed_first, False, reverse=True)))
        order.remove(end)
    block = dataflow.body.block
    for op in ops:
        op.detach()
    block.add_ops([*(ops[index] for index in order), ops[end]])


def _inverse(edges: Edges) -> list[list[int]]:
    inverse: list[list[int]] = [[] for _ in edges]
    for index, targets in enumerate(edges):
        for target in targets:
            inverse[target].append(index)
    return inverse


def _ready_first(waits_for: Edges, enables: Edges, depth_first: bool, *, reverse: bool = False) -> list[int]:
    """Each position as soon as all that it waits for has come; of several the one that has been ready first or last."""
    missing = [len(positions) for positions in waits_for]
    ready = deque(index for index, count in enumerate(missing) if count == 0)
    if reverse:
        ready.reverse()
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        enabled: list[int] = []
        for other in enables[index]:
            missing[other] -= 1
            if missing[other] == 0:
                enabled.append(other)
        if depth_first:
            ready.extendleft(reversed(enabled))
        else:
            ready.extend(enabled)
    return order


def _postorder(roots: Sequence[int], edges: Edges) -> list[int]:
    """Each position after all that its edges lead to."""
    order: list[int] = []
    entered: set[int] = set()
    for root in roots:
        path = [] if root in entered else [(root, iter(edges[root]))]
        entered.add(root)
        while path:
            position, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                order.append(position)
            elif target not in entered:
                entered.add(target)
                path.append((target, iter(edges[target])))
    return order
