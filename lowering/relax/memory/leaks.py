"""Where the memory of a value may get to: into the hands of a caller, of a closure, or of code that writes into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue, Use

from relax_dialect.analysis.aliases import Access, access_of, derived, may_take
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import find_function


@dataclass(frozen=True)
class Leaks:
    """The parameters of a module's functions whose memory a call may write into, return or keep."""

    params: frozenset[tuple[str, int]]

    @staticmethod
    def of(module: ModuleOp) -> Leaks:
        """The least set that agrees with itself: what a function passes on leaks if the function called lets it."""
        funcs = [op for op in module.ops if isinstance(op, FuncOp)]
        found = Leaks(frozenset())
        while True:
            params = frozenset(
                (func.sym_name.data, index)
                for func in funcs
                for index, param in enumerate(func.params)
                if any(found.uses(param))
            )
            if params == found.params:
                return found
            found = Leaks(params)

    def uses(self, value: SSAValue) -> Iterator[Use]:
        """The uses of a value, one after the other, that let its memory leak."""
        return self._leaking(value, None, set())

    def _leaking(self, value: SSAValue, field: int | None, seen: set[tuple[SSAValue, int | None]]) -> Iterator[Use]:
        """The leaking uses of a value, or of a field of a tuple; what has been `seen` is looked at elsewhere."""
        seen.add((value, field))
        return (use for use in value.uses if may_take(use, field) and self._leaks(use, seen))

    def _leaks(self, use: Use, seen: set[tuple[SSAValue, int | None]]) -> bool:
        op, index = use.operation, use.index
        if isinstance(op, CallOp):
            return (op.callee.string_value(), index) in self.params
        if isinstance(op, MakeClosureOp):
            is_relax = isinstance(find_function(op, op.callee.string_value()), FuncOp)
            return not is_relax or (op.callee.string_value(), index) in self.params
        access = access_of(use)
        if access is not Access.PASS:
            return access is not Access.READ
        field = index if isinstance(op, TupleOp) else None
        values = [each for each in derived(use) if (each, field) not in seen]
        return any(True for each in values for _ in self._leaking(each, field, seen))
