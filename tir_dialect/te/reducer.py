"""Reductions: a commutative and associative operation with an identity, over reduction axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

from tir_dialect.dims import Dim, constant
from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, as_condition, as_expr, unify
from tir_dialect.te.compute import ExtentLike, is_varying, to_dimension, to_extent, to_index
from tir_dialect.te.expr import DType, Expr, Operand
from tir_dialect.te.nodes import IterVar, free_variables
from tir_dialect.te.operators import maximum, operands_of

Axes: TypeAlias = "IterVar | Sequence[IterVar]"
Init: TypeAlias = "Operand | Sequence[Operand]"


@dataclass(frozen=True, eq=False)
class Reducer:
    """A commutative, associative operation and its identity.

    With one value, `combine(accumulator, value)` gives an expression and `identity(dtype)` an expression or a number.
    With several values at once (an arg-reduction), `combine` takes two tuples and gives one, and `identity` takes all
    dtypes and gives a tuple. Make one with `comm_reducer`.
    """

    name: str
    combine: Callable[[Any, Any], Any]
    identity: Callable[..., Any]

    def combined(self, accumulators: tuple[Expr, ...], values: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The new accumulators, of the same dtypes; TypeError if `combine` gives anything else."""
        single = len(values) == 1
        result = self.combine(accumulators[0], values[0]) if single else self.combine(accumulators, values)
        return self._checked("combine", (result,) if single else tuple(result), values)

    def identities(self, dtypes: Sequence[DType]) -> tuple[Expr, ...]:
        """The start values; TypeError if `identity` gives something that does not fit the dtypes."""
        result = self.identity(*dtypes)
        results = (result,) if len(dtypes) == 1 else tuple(result)
        if len(results) != len(dtypes):
            raise TypeError(f"te.{self.name}: identity gives {len(results)} values for {len(dtypes)} dtypes")
        if any(not isinstance(r, Expr | Dim | int | float) and not hasattr(r, "dtype") for r in results):
            raise TypeError(f"te.{self.name}: identity must give expressions or numbers, got {result}")
        values = [r if isinstance(r, Expr) else adopt(r, dtype) for r, dtype in zip(results, dtypes, strict=True)]
        for value, dtype in zip(values, dtypes, strict=True):
            if value.dtype != dtype:
                raise TypeError(f"te.{self.name}: the identity of a value of dtype {dtype} has dtype {value.dtype}")
        return tuple(values)

    def _checked(self, what: str, results: tuple[Any, ...], values: tuple[Expr, ...]) -> tuple[Expr, ...]:
        got = [str(r.dtype) if isinstance(r, Expr) else type(r).__name__ for r in results]
        expected = [str(value.dtype) for value in values]
        if got != expected:
            raise TypeError(f"te.{self.name}: {what} must give ({', '.join(expected)}), got ({', '.join(got)})")
        return results

    @overload
    def __call__(
        self, expr: tuple[Expr, ...], axis: Axes, where: Operand | None = None, init: Init | None = None
    ) -> tuple[Expr, ...]: ...
    @overload
    def __call__(
        self, expr: Operand, axis: Axes | Operand, where: Operand | None = None, init: Init | None = None
    ) -> Expr: ...
    def __call__(
        self,
        expr: Operand | tuple[Expr, ...],
        axis: Axes | Operand,
        where: Operand | None = None,
        init: Init | None = None,
    ) -> Expr | tuple[Expr, ...]:
        """The reduction of a value, or of several values together, over the axes, restricted to where `where` holds.

        `init` replaces the identity as the initial value, one for each value. With a second value in place of the axes,
        the two values are combined.
        """
        if not isinstance(axis, IterVar | Sequence):
            operands = operands_of(self.name, cast("Operand", expr), axis)
            return self.combined(operands[:1], operands[1:])[0]
        sources = expr if isinstance(expr, tuple) else (as_expr(self.name, expr),)
        axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
        for each in axes:
            if each.kind != "reduce":
                raise ValueError(f'te.{self.name}: "{each.name}" is a {each.kind} variable, expected te.reduce_axis')
        if not axes or len(set(axes)) != len(axes):
            raise ValueError(f"te.{self.name}: expected at least one axis and none twice, got {len(axes)}")
        # Refuses an axis whose bounds use one after it.
        for index, each in enumerate(axes):
            later = set(axes[index:])
            for used in free_variables((each.lo, each.extent)):
                if used in later:
                    raise ValueError(
                        f'te.{self.name}: the bounds of "{each.name}" use "{used.name}", which has to come before it'
                    )
        identities = self.identities([source.dtype for source in sources])
        self.combined(identities, sources)
        if where is not None:
            condition = as_condition(self.name, where)
            sources = tuple(nodes.conditional(condition, s, i) for s, i in zip(sources, identities, strict=True))
        starts = () if init is None else self._starts(init, sources, axes)
        operands = (*sources, *starts, *(bound for each in axes for bound in (each.lo, each.extent)))
        results = tuple(nodes.reduce(self, operands, axes, which, bool(starts)) for which in range(len(sources)))
        return results if isinstance(expr, tuple) else results[0]

    def _starts(self, init: Init, sources: tuple[Expr, ...], axes: tuple[IterVar, ...]) -> tuple[Expr, ...]:
        """The initial values; TypeError for dtypes other than the sources', ValueError if they depend on the axes."""
        given = tuple(init) if isinstance(init, tuple | list) else (cast("Operand", init),)
        if len(given) != len(sources):
            raise TypeError(f"te.{self.name}: init has {len(given)} values for {len(sources)} that are reduced")
        starts = tuple(unify(f"{self.name}: init", pair)[1] for pair in zip(sources, given, strict=True))
        for used in free_variables(starts):
            if used in set(axes):
                raise ValueError(f'te.{self.name}: the init uses "{used.name}", which is reduced over')
        return starts


def comm_reducer(fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce") -> Reducer:
    """A user-defined reducer; see `Reducer` for the two functions. `name` appears in messages and in generated names.

    An arg-maximum::

        argmax = te.comm_reducer(
            lambda a, b: (te.select(a[0] >= b[0], a[0], b[0]), te.select(a[0] >= b[0], a[1], b[1])),
            lambda value, index: (te.min_value(value), 0), name="argmax")
    """
    return Reducer(name, fcombine, fidentity)


def reduce_axis(dom: ExtentLike | tuple[ExtentLike, ExtentLike], name: str = "r") -> IterVar:
    """A reduction variable with the domain `0 <= v < extent` for an extent, or `lo <= v < hi` for a pair.

    The bounds may depend on the variables of the enclosing compute, on axes that come before it in the reduction, and
    on tensor elements: `te.reduce_axis((0, i + 1))`, `te.reduce_axis((start[i], start[i + 1]))`. A domain with
    `hi < lo` is empty. ValueError for a constant negative extent, and for a tuple that is no pair.
    """
    bounds = dom if isinstance(dom, tuple) else (constant(0), dom)
    if len(bounds) != 2:
        raise ValueError(f'te: the domain of "{name}" must be an extent, or a lower bound and an upper, got {dom}')
    if not any(is_varying(bound) for bound in bounds):
        lo, hi = (to_dimension(name, bound) for bound in bounds)
        return IterVar(name, lo, to_extent(name, hi - lo), "reduce")
    low, high = (to_index(name, bound) for bound in bounds)
    return IterVar(name, low, high if low is nodes.size(constant(0)) else maximum(high - low, 0), "reduce")
