"""Sign analysis of index expressions: division of non-negative operands can be unsigned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from tir_dialect import dims
from tir_dialect.dims import Dim, Prover, symbol
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar, post_order

DIM_FUNCTIONS: Mapping[str, Callable[[Dim, Dim], Dim]] = MappingProxyType(
    {
        "add": Dim.__add__,
        "subtract": Dim.__sub__,
        "multiply": Dim.__mul__,
        "floordiv": dims.floordiv,
        "floormod": dims.mod,
        "minimum": dims.minimum,
        "maximum": dims.maximum,
    }
)
_DIVISIONS = ("floordiv", "floormod")


def dim_of(function: str, operands: Sequence[Dim]) -> Dim | None:
    """`function(*operands)`, named as in `nodes.Apply`; `None` if dimensions lack it, or for a division by 0."""
    compute = DIM_FUNCTIONS.get(function)
    if compute is None or len(operands) != 2:
        return None
    if function in _DIVISIONS and operands[1].constant_value == 0:
        return None
    return compute(*operands)


class Signs:
    """Sign analysis of expressions over the given iterators, each of which runs from 0 to its extent."""

    def __init__(self, variables: Iterable[IterVar] = ()):
        self._symbols = {variable: symbol(f"_{number}.{variable.name}") for number, variable in enumerate(variables)}
        self._dims: dict[Expr, Dim | None] = {}
        self._prover: Prover | None = None

    def divides_unsigned(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether neither side is negative for any values of the variables; a divisor 0 has no result anyway."""
        dividend, divisor = self._dim(lhs), self._dim(rhs)
        if dividend is None or divisor is None:
            return False
        prover = self._known()
        return bool(prover.less_equal(0, dividend)) and bool(prover.less_equal(0, divisor))

    def less_equal(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether the left side is at most the right side for all values of the variables."""
        low, high = self._dim(lhs), self._dim(rhs)
        return low is not None and high is not None and bool(self._known().less_equal(low, high))

    def _known(self) -> Prover:
        if self._prover is None:
            # An iterator without values has no bounds; what it indexes is not executed.
            lengths = {dim: axis.length for axis, dim in self._symbols.items()}
            limits = {dim: length for dim, length in lengths.items() if length is None or length.constant_value != 0}
            self._prover = Prover({str(dim): (0, None if n is None else n - 1) for dim, n in limits.items()})
        return self._prover

    def _dim(self, root: Expr) -> Dim | None:
        for expr in post_order((root,), lambda node: () if node in self._dims else node.operands):
            if expr not in self._dims:
                self._dims[expr] = self._evaluate(expr)
        return self._dims[root]

    def _evaluate(self, expr: Expr) -> Dim | None:
        if isinstance(expr, nodes.Size):
            return expr.dim
        if isinstance(expr, IterVar):
            return self._symbols.get(expr)
        if not isinstance(expr, nodes.Apply):
            return None
        operands = [self._dims[operand] for operand in expr.operands]
        known = [dim for dim in operands if dim is not None]
        return dim_of(expr.function, known) if len(known) == len(operands) else None
