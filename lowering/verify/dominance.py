"""SSA dominance and the symbol rule, checked in one walk over the module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove

from lowering.diagnostics import Finding, refuse
from lowering.verify import explain
from lowering.verify.symbols import SymbolsInAttributes, entry_witnesses, witnesses


@dataclass(frozen=True)
class BlockOrder:
    """The blocks of a region, so that what has been entered and not left dominates."""

    events: tuple[tuple[Block, bool], ...]
    """`(block, True)` on entering, `(block, False)` on leaving its subtree of the dominator tree."""
    unreachable: tuple[Block, ...]
    """Blocks that no path from the entry reaches."""


def block_order(region: Region) -> BlockOrder:
    """Walks the dominator tree of `region`; an only block needs no tree.

    Dominators by the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001) over the
    reverse postorder: one round for reducible graphs.
    """
    first = region.first_block
    if first is None:
        return BlockOrder((), ())
    if first.next_block is None:
        return BlockOrder(((first, True), (first, False)), ())
    order = _reverse_postorder(first)
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block, dominator in _immediate_dominators(order).items():
        if block is not first:
            children[dominator].append(block)
    return BlockOrder(
        tuple(_enter_and_leave(first, children)), tuple(block for block in region.blocks if block not in children)
    )


def _successors(block: Block) -> tuple[Block, ...]:
    return tuple(block.last_op.successors) if block.last_op is not None else ()


def _reverse_postorder(entry: Block) -> list[Block]:
    postorder: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            stack.pop()
            postorder.append(block)
    return postorder[::-1]


def _immediate_dominators(order: list[Block]) -> dict[Block, Block]:
    """The nearest dominator of each block of a reverse postorder; the entry is its own."""
    number = {block: at for at, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in order]
    for at, block in enumerate(order):
        for successor in _successors(block):
            predecessors[number[successor]].append(at)
    dominator: list[int | None] = [0, *(None for _ in order[1:])]

    def meet(left: int, right: int) -> int:
        while left != right:
            if left < right:
                left, right = right, left
            # Only blocks with a known dominator are met, and it always has a smaller number.
            left = dominator[left] or 0
        return left

    changed = True
    while changed:
        changed = False
        for at in range(1, len(order)):
            known = [before for before in predecessors[at] if dominator[before] is not None]
            nearest = known[0]
            for other in known[1:]:
                nearest = meet(nearest, other)
            if dominator[at] != nearest:
                dominator[at], changed = nearest, True
    return {block: order[dominator[at] or 0] for at, block in enumerate(order)}


def _enter_and_leave(root: Block, children: dict[Block, list[Block]]) -> Iterator[tuple[Block, bool]]:
    stack = [(root, True)]
    while stack:
        block, entering = stack.pop()
        yield block, entering
        if entering:
            stack.append((block, False))
            stack.extend((child, True) for child in reversed(children[block]))


def dominance_findings(op: Operation) -> list[Finding]:
    """Every operand that its definition does not dominate, and every breach of the symbol rule, in `op`.

    The symbol rule: a symbol named in a type or attribute is used only where a witness dominates, and is not witnessed
    again where it is in scope. A value or symbol is reported once per scope. Linear in the size of the op.
    """
    checker = _Checker()
    checker.check_op(op)
    return checker.findings


class _Scope:
    """What is visible at a point: a stack that is cut back on leaving a block."""

    def __init__(self) -> None:
        self.values: set[int] = set()
        """Identities of visible values; the module keeps the values alive."""
        self.symbols: dict[str, SSAValue | None] = {}
        """The witness of each visible symbol; `None` if its absence has been reported."""
        self._value_trail: list[int] = []
        self._symbol_trail: list[str] = []

    def add_values(self, values: Iterable[SSAValue]) -> None:
        """Makes values visible until the scope is cut back."""
        for value in values:
            self.values.add(id(value))
            self._value_trail.append(id(value))

    def add_symbol(self, name: str, witness: SSAValue | None) -> None:
        """Makes a symbol visible until the scope is cut back."""
        self.symbols[name] = witness
        self._symbol_trail.append(name)

    def mark(self) -> tuple[int, int]:
        """Where to cut back to."""
        return len(self._value_trail), len(self._symbol_trail)

    def cut_back(self, mark: tuple[int, int]) -> None:
        """Forgets what was added after `mark`."""
        self.values.difference_update(self._value_trail[mark[0] :])
        del self._value_trail[mark[0] :]
        for name in self._symbol_trail[mark[1] :]:
            self.symbols.pop(name, None)
        del self._symbol_trail[mark[1] :]


class _Checker:
    """The walk: an op's operands, its regions, then its results come into scope."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._scope = _Scope()
        self._symbols_in = SymbolsInAttributes()

    def check_op(self, op: Operation) -> None:
        """Checks `op` and everything in it against the current scope."""
        visible = self._scope.values
        for index, operand in enumerate(op.operands):
            if id(operand) not in visible:
                self.findings.append(explain.invisible_operand(op, index))
                # Said once; later uses would only repeat it.
                self._scope.add_values((operand,))
        for where, used in self._symbols_in.attributes(op):
            self._check_symbols(op, where, used, entry_witnesses(op), witnesses(op))
        if op.regions:
            self._check_regions(op)
        self._bind(op, witnesses(op))
        for where, used in self._symbols_in.results(op):
            self._check_symbols(op, where, used)
        self._scope.add_values(op.results)

    def _check_symbols(
        self, op: Operation, where: str, used: Iterable[str], *witnessed: Mapping[str, SSAValue]
    ) -> None:
        """Symbols named on `op`; beside those in scope, `witnessed` may be used."""
        for name in used:
            if name not in self._scope.symbols and not any(name in mapping for mapping in witnessed):
                self.findings.append(explain.unbound_symbol(op, name, where))
                self._scope.add_symbol(name, None)

    def _check_regions(self, op: Operation) -> None:
        outer = self._scope
        if op.has_trait(IsolatedFromAbove):
            self._scope = _Scope()
        for region in op.regions:
            mark = self._scope.mark()
            self._check_region(op, region)
            self._scope.cut_back(mark)
        self._scope = outer

    def _check_region(self, op: Operation, region: Region) -> None:
        order = block_order(region)
        marks: list[tuple[int, int]] = []
        for block, entering in order.events:
            if entering:
                marks.append(self._scope.mark())
                self._check_block(op, block)
            else:
                self._scope.cut_back(marks.pop())
        if order.unreachable:
            self._check_unreachable(op, region, order.unreachable)

    def _check_unreachable(self, op: Operation, region: Region, blocks: Iterable[Block]) -> None:
        """Everything in the region dominates a block that is never reached."""
        mark = self._scope.mark()
        for block in region.blocks:
            self._scope.add_values(block.args)
            for inner in block.ops:
                self._scope.add_values(inner.results)
        for block in blocks:
            self._check_block(op, block)
        self._scope.cut_back(mark)

    def _check_block(self, op: Operation, block: Block) -> None:
        self._bind(op, witnesses(block))
        for where, used in self._symbols_in.arguments(block):
            self._check_symbols(op, where, used)
        self._scope.add_values(block.args)
        for inner in block.ops:
            self.check_op(inner)

    def _bind(self, op: Operation, witnessed: Mapping[str, SSAValue]) -> None:
        for name, value in witnessed.items():
            if (earlier := self._scope.symbols.get(name)) is not None:
                self.findings.append(explain.bound_twice(op, name, value, earlier))
            else:
                self._scope.add_symbol(name, value)


class VerifyDominancePass(ModulePass):
    """Rejects a module in which a use is not dominated by its definition; changes nothing.

    Values: the definition dominates the use, over blocks, nested regions and isolation. Symbols: a symbol named in a
    type or attribute is used only where a witness dominates, and no symbol is bound again where it is in scope.

    ```mlir
    %b = arith.addi %a, %a : i32     // error: 'arith.addi' op operand #0 (%a) is used before it is defined
    %a = arith.constant 1 : i32
    ```

    Expects ops whose own verifiers hold. Reports all independent errors at once, each at its op.
    """

    name = "verify-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refuse(dominance_findings(op))
