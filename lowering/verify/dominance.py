"""SSA dominance and the symbol rule, checked in one walk over the module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from lowering.diagnostics import Finding
from lowering.verify import explain
from lowering.verify.dominators import block_order
from lowering.verify.symbols import SymbolsInAttributes, entry_witnesses, witnesses


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
