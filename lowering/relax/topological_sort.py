"""`topological-sort`: the ops of dataflow regions in another order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from relax_dialect.function_symbols import bindings, named_symbols
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.scope import symbols_witnessed

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
