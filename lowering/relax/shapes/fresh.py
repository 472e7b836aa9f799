"""Fresh symbols of a function."""

from __future__ import annotations

from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbols_used, symbols_witnessed
from relax_dialect.struct_info.symbols import fresh_name


class FreshSymbols:
    """Symbols that no op of a function uses or binds; the function is read when the first one is asked for."""

    def __init__(self, func: FuncOp):
        self._func = func
        self._taken: set[str] | None = None

    def take(self, count: int) -> list[str]:
        """`count` new symbols: `s0`, `s1`, ..."""
        if self._taken is None:
            ops = list(self._func.walk())
            self._taken = {bound.symbol.data for bound in self._func.symbols}
            for op in ops:
                self._taken |= symbols_used(op)
                self._taken.update(symbols_witnessed(op))
        names: list[str] = []
        index = 0
        while len(names) < count:
            name = fresh_name(f"s{index}", self._taken)
            index += 1
            self._taken.add(name)
            names.append(name)
        return names
