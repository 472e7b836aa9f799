"""The order of types, with three answers: a subtype, a subtype only if a run-time check passes, or never one.

The order is the one of Apache TVM's `TypeBaseCheck` (src/relax/analysis/type_analysis.cc), whose two degrees of "not
provable" are one here, with two repairs: functions are contravariant in their parameters, and symbols that a function
type binds are solved for instead of compared by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from xdsl.ir import Attribute

from relax_dialect.struct_info.base import Shape
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, Prover


class Verdict(IntEnum):
    """Whether every value of one type is a value of another; the least one decides for a compound."""

    NEVER = 0
    """No value of the one is a value of the other."""
    RUNTIME = 1
    """Some values may be; only a run-time check can tell."""
    YES = 2
    """All values are."""


def is_subtype(derived: Attribute, base: Attribute, prover: Prover | None = None) -> Verdict:
    """Whether values of `derived` are values of `base`, for all values of the symbols that the prover admits.

    S1: every type is a subtype of object; an object may be anything.
    S2: types of different kinds have no value in common, object aside.
    """
    if derived == base or isinstance(base, ObjectType):
        return Verdict.YES  # S1
    if isinstance(derived, ObjectType):
        return Verdict.RUNTIME  # S1
    prover = prover or Prover()
    if isinstance(derived, PrimType) and isinstance(base, PrimType):
        return _prim(derived, base, prover)
    if isinstance(derived, ShapeType) and isinstance(base, ShapeType):
        return shape_verdict(derived.dims, base.dims, prover)
    if isinstance(derived, TensorType) and isinstance(base, TensorType):
        return _tensor(derived, base, prover)
    if isinstance(derived, TupleType) and isinstance(base, TupleType):
        return _tuple(derived, base, prover)
    if isinstance(derived, FuncType) and isinstance(base, FuncType):
        return _function(derived, base, prover)
    return Verdict.NEVER  # S2


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    return min(verdicts, default=Verdict.YES)


def equality(left: Dim, right: Dim, prover: Prover) -> Verdict:
    """Whether two dimensions are equal: for all values of their symbols, for some perhaps, or for none."""
    answer = prover.equal(left, right)
    if answer is None:
        return Verdict.RUNTIME
    return Verdict.YES if answer else Verdict.NEVER


def _known(derived: object, base: object) -> Verdict:
    """A fact that is equal, different or unknown, such as a dtype."""
    if base is None or derived == base:
        return Verdict.YES
    return Verdict.RUNTIME if derived is None else Verdict.NEVER


def _prim(derived: PrimType, base: PrimType, prover: Prover) -> Verdict:
    """S3: prim values have equal dtypes; a value that the base names is the derived one's."""
    if derived.dtype != base.dtype:
        return Verdict.NEVER
    return _dimension(derived.value, base.value, prover)


def _dimension(derived: Dim | None, base: Dim | None, prover: Prover) -> Verdict:
    if base is None:
        return Verdict.YES
    return Verdict.RUNTIME if derived is None else equality(derived, base, prover)


def shape_verdict(derived: Shape, base: Shape, prover: Prover) -> Verdict:
    """S4: ranks agree where the base knows it, and so does every dimension that the base knows."""
    if base is None:
        return Verdict.YES
    if derived is None:
        return Verdict.RUNTIME
    if len(derived) != len(base):
        return Verdict.NEVER
    return _all(_dimension(*pair, prover) for pair in zip(derived, base, strict=True))


def _tensor(derived: TensorType, base: TensorType, prover: Prover) -> Verdict:
    """S5: dtype and device agree where the base knows them, and shapes do as in S4."""
    return _all(
        (
            _known(derived.dtype, base.dtype),
            _known(derived.device, base.device),
            shape_verdict(derived.dims, base.dims, prover),
        )
    )


def _tuple(derived: TupleType, base: TupleType, prover: Prover) -> Verdict:
    """S6: tuples have equally many fields, each a subtype."""
    if len(derived.fields) != len(base.fields):
        return Verdict.NEVER
    return _all(is_subtype(*pair, prover) for pair in zip(derived.fields, base.fields, strict=True))


def _function(derived: FuncType, base: FuncType, prover: Prover) -> Verdict:
    """Functions: what can be used wherever the base can.

    S7: a pure function is expected, so an impure one will not do.
    S8: where nothing is required of the parameters, any function whose result is a subtype will do; a derive function,
    being known only by name, has to be the same one.
    S9: a packed function where parameters are asked for can only be checked at run time.
    S10: the derived function can be called as the base is: it accepts the base's parameters (contravariance), its
    symbols being solved from them, and what it then returns is a subtype of what the base returns.
    """
    if base.pure and not derived.pure:
        return Verdict.NEVER  # S7
    if base.opaque:
        if base.derive is not None and base.derive != derived.derive:
            return Verdict.RUNTIME  # S8
        return is_subtype(_closed(derived), base.ret, prover)  # S8
    if derived.opaque:
        return Verdict.RUNTIME  # S9
    return _callable_as(derived, base, prover)  # S10


def _closed(func: FuncType) -> Attribute:
    """The result type without the symbols that only a call would bind."""
    from relax_dialect.struct_info.erase import erase_symbols

    return erase_symbols(func.ret, func.symbol_names)


def _callable_as(derived: FuncType, base: FuncType, prover: Prover) -> Verdict:
    from relax_dialect.struct_info.calls import call_result, open_function
    from relax_dialect.struct_info.match import Mismatch

    base = open_function(base, derived)
    inner = Prover(prover.bounds.with_entries({bound.symbol.data: bound.interval for bound in base.symbols}))
    try:
        outcome = call_result(derived, base.params, inner)
    except Mismatch:
        return Verdict.NEVER
    return min(outcome.verdict, is_subtype(outcome.ret, base.ret, inner))
