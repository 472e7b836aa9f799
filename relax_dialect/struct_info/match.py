"""How types relate: subtypes, matching declared types with actual ones, and what a call returns.

They are one recursion: a function is a subtype of another if it can be called as that one is, which matches types.

*Subtypes* have three answers: a subtype, a subtype only if a run-time check passes, or never one. The order is the one
of Apache TVM's `TypeBaseCheck` (src/relax/analysis/type_analysis.cc), whose two degrees of "not provable" are one here,
with two repairs: functions are contravariant in their parameters, and symbols that a function type binds are solved for
instead of compared by name.

*Matching* finds what symbols become, and what is left to check at run time. One algorithm serves calls, function entry,
`call_tir` and `match_cast`. Wherever nothing static is known about a value (at function entry: of any), a *slot*, a
fresh symbol, stands for a number that is read from the value at run time.

*A call* binds the callee's symbols and substitutes them in its result; derive functions give that of packed functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias, cast

from xdsl.ir import Attribute

from relax_dialect.struct_info.sharding import ShardingAttr
from relax_dialect.struct_info.symbols import (
    erase_static,
    erase_symbols,
    free_symbols,
    fresh_name,
    iter_bare_symbols,
    iter_symbols,
    substitute,
)
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
)
from tir_dialect.dims import Bounds, Check, Dim, MatchError, Prover, Solution, solve, symbol
from tir_dialect.types import SymbolAttr


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
    """S5: dtype, device and sharding agree where the base knows them, and shapes do as in S4."""
    return _all(
        (
            _known(derived.dtype, base.dtype),
            _known(derived.device, base.device),
            sharding_verdict(derived.sharding, base.sharding, prover),
            shape_verdict(derived.dims, base.dims, prover),
        )
    )


def sharding_verdict(derived: ShardingAttr | None, base: ShardingAttr | None, prover: Prover) -> Verdict:
    """S11: shardings have the same axes and placements, and equal sizes; of a tensor without one nothing is known."""
    if base is None or derived == base:
        return Verdict.YES
    if derived is None:
        return Verdict.RUNTIME
    names = [[axis.name for axis in each.mesh] for each in (derived, base)]
    if names[0] != names[1] or derived.placements != base.placements:
        return Verdict.NEVER
    return _all(equality(left.size, right.size, prover) for left, right in zip(derived.mesh, base.mesh, strict=True))


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
    from relax_dialect.struct_info.symbols import erase_symbols

    return erase_symbols(func.ret, func.symbol_names)


def _callable_as(derived: FuncType, base: FuncType, prover: Prover) -> Verdict:
    base = open_function(base, derived)
    inner = Prover(prover.bounds.with_entries({bound.symbol.data: bound.interval for bound in base.symbols}))
    try:
        outcome = call_result(derived, base.params, inner)
    except Mismatch:
        return Verdict.NEVER
    return min(outcome.verdict, is_subtype(outcome.ret, base.ret, inner))


@dataclass(frozen=True)
class AccessPath:
    """A value among those that are matched, or one dimension of it.

    `root` is its index, `fields` the way into nested tuples; `dim` is a dimension of a tensor or shape, 0 for the
    value of a prim, and `None` for the value as a whole.
    """

    root: int
    fields: tuple[int, ...] = ()
    dim: int | None = None

    @property
    def text(self) -> str:
        """The way from the value to it: `field 0 dimension 1`; empty if it is the value itself."""
        steps = [f"field {index}" for index in self.fields]
        return " ".join(steps if self.dim is None else [*steps, f"dimension {self.dim}"])

    def __str__(self) -> str:
        return f"#{self.root} {self.text}".rstrip()


class Mismatch(ValueError):
    """The actual types can never be what is declared; `path` says where."""

    def __init__(self, position: AccessPath, message: str):
        super().__init__(f"{position}: {message}")
        self.path = position
        self.reason = message


@dataclass(frozen=True)
class KindCheck:
    """The value at `path` has to be of a kind; `expected` says nothing of dimensions but their number."""

    path: AccessPath
    expected: StructInfo


@dataclass(frozen=True)
class LocatedCheck:
    """A condition on dimensions that comes from what is declared at `path`."""

    path: AccessPath
    check: Check


@dataclass(frozen=True)
class BoundCheck:
    """The value of a symbol has to lie within its bounds."""

    symbol: SymbolAttr
    value: Dim
    path: AccessPath


@dataclass(frozen=True)
class Match:
    """How declared types are met: the symbols, and the checks that no proof made superfluous.

    `bindings` maps each symbol to its value over the symbols of the actual types and `slots`; `sources` says which
    dimension it was solved from. The checks are to be made in the order kinds, dimensions, bounds.
    """

    bindings: Mapping[str, Dim]
    sources: Mapping[str, AccessPath]
    slots: Mapping[str, AccessPath]
    kind_checks: tuple[KindCheck, ...] = ()
    dim_checks: tuple[LocatedCheck, ...] = ()
    bound_checks: tuple[BoundCheck, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """`YES` if nothing is left to check, else `RUNTIME`."""
        return Verdict.RUNTIME if self.kind_checks or self.dim_checks or self.bound_checks else Verdict.YES


def match_types(
    declared: Sequence[StructInfo],
    actual: Sequence[StructInfo],
    symbols: Sequence[SymbolAttr] = (),
    prover: Prover | None = None,
) -> Match:
    """Matches each declared type with the actual one at its index, solving for `symbols`.

    Symbols bind first where they stand alone, in any order of the arguments, then where a dimension is linear in one
    that is left (specification, well-formedness 5 and 6, extended to linear expressions). All other symbols mean the
    same on both sides. Raises `Mismatch` if no values can match or a symbol cannot be solved for.
    """
    if len(declared) != len(actual):
        raise Mismatch(AccessPath(len(declared)), f"expected {len(declared)} values, got {len(actual)}")
    return _Matcher(symbols, actual, declared, prover or Prover()).run()


def entry_match(func: FuncType) -> Match:
    """How the arguments of a call from outside, of which nothing is known, meet the parameters of `func`."""
    return match_types(func.params, [ObjectType()] * len(func.params), func.symbols)


def _same_static_type(left: TensorType, right: TensorType) -> bool:
    """Whether `erase_static` makes two types one: most arguments are what is declared, but for their dimensions."""
    return (left.rank, left.dtype_attr, left.device_attr) == (right.rank, right.dtype_attr, right.device_attr)


@dataclass
class _Matcher:
    """The state of one call of `match_types`."""

    symbols: Sequence[SymbolAttr]
    actual: Sequence[StructInfo]
    declared: Sequence[StructInfo]
    prover: Prover
    slots: dict[str, AccessPath] = field(default_factory=dict[str, AccessPath])
    equations: list[tuple[Dim, Dim, AccessPath]] = field(default_factory=list[tuple[Dim, Dim, AccessPath]])
    kinds: list[KindCheck] = field(default_factory=list[KindCheck])
    functions: list[tuple[FuncType, FuncType, AccessPath]] = field(
        default_factory=list[tuple[FuncType, FuncType, AccessPath]]
    )

    def run(self) -> Match:
        self.taken = {name for info in (*self.actual, *self.declared) for name in iter_symbols(info)}
        for root, (declared, actual) in enumerate(zip(self.declared, self.actual, strict=True)):
            self._match(declared, actual, AccessPath(root))
        solution = self._solve()
        for derived, base, position in self.functions:
            self._match_function(derived, substitute(base, solution.bindings), position)
        sources = {name: self.equations[source][2] for name, source in solution.sources.items()}
        checks = tuple(LocatedCheck(self.equations[check.source][2], check) for check in solution.checks)
        bounds = tuple(self._bound_checks(solution.bindings, sources))
        return Match(solution.bindings, sources, self.slots, tuple(self.kinds), checks, bounds)

    def _solve(self) -> Solution:
        names = [bound.symbol.data for bound in self.symbols]
        used = {name for declared, _, _ in self.equations for name in declared.symbols}
        for name in names:
            if name not in used:
                raise Mismatch(AccessPath(0), f"nothing binds the symbol {name}")
        # Bounds are checked here, where the message can name them.
        unbounded = Bounds(dict.fromkeys(names, (None, None)))
        try:
            return solve([(left, right) for left, right, _ in self.equations], names, self.prover, unbounded)
        except MatchError as error:
            raise Mismatch(self.equations[error.source][2], str(error)) from error

    def _match(self, declared: StructInfo, actual: StructInfo, position: AccessPath) -> None:
        """Specification, "Evaluating MatchCast", whose rules are, by the declared type:

        MC1: of an object nothing is asked, but that it is there.
        MC2: a tensor has the declared rank, dtype and device where they are known, and so has each dimension; an
        unbound symbol is bound to it. A sharding, if both have one, is the declared one, and sizes of meshes are
        matched like dimensions.
        MC3: a prim has the declared dtype and value; an unbound symbol is bound, if the value is not negative.
        MC4: a shape has the declared length and values; an unbound symbol is bound.
        MC5: a tuple has as many fields, each of which matches.
        MC6: a function is a function; what can be said statically is compared as types are. Of one of which nothing
        is known, arguments and result are checked when it is called, and its purity is believed.
        """
        if isinstance(declared, ObjectType):
            return
        if isinstance(actual, ObjectType):
            self.kinds.append(KindCheck(position, erase_static(declared)))
            self._match_unknown(declared, position)
        elif isinstance(declared, TensorType) and isinstance(actual, TensorType):
            self._match_tensor(declared, actual, position)
        elif isinstance(declared, ShapeType) and isinstance(actual, ShapeType):
            if declared.dims is not None and actual.dims is None:
                self.kinds.append(KindCheck(position, erase_static(declared)))
            self._match_dims(declared.dims, actual.dims, position)
        elif isinstance(declared, PrimType) and isinstance(actual, PrimType):
            self._require(declared.dtype == actual.dtype, declared, actual, position)
            self._match_number(declared.value, actual.value, position)
        elif isinstance(declared, TupleType) and isinstance(actual, TupleType):
            self._require(len(declared.fields) == len(actual.fields), declared, actual, position)
            self._match_fields(declared.fields, actual.fields, position)
        elif isinstance(declared, FuncType) and isinstance(actual, FuncType):
            self.functions.append((actual, declared, position))
        else:
            self._require(False, declared, actual, position)

    def _match_unknown(self, declared: StructInfo, position: AccessPath) -> None:
        if isinstance(declared, TensorType | ShapeType):
            self._match_dims(declared.dims, None, position)
        elif isinstance(declared, PrimType):
            self._match_number(declared.value, None, position)
        elif isinstance(declared, TupleType):
            for index, info in enumerate(declared.fields):
                self._match(info, ObjectType(), AccessPath(position.root, (*position.fields, index)))

    def _match_tensor(self, declared: TensorType, actual: TensorType, position: AccessPath) -> None:
        if not _same_static_type(declared, actual):
            verdict = is_subtype(erase_static(actual), erase_static(declared), self.prover)
            self._require(verdict is not Verdict.NEVER, declared, actual, position)
            if verdict is Verdict.RUNTIME:
                self.kinds.append(KindCheck(position, erase_static(declared)))
        if declared.sharding is not None and actual.sharding is not None:
            self._match_shardings(declared.sharding, actual.sharding, position)
        self._match_dims(declared.dims, actual.dims, position)

    def _match_shardings(self, declared: ShardingAttr, actual: ShardingAttr, position: AccessPath) -> None:
        names = [[axis.name for axis in each.mesh] for each in (declared, actual)]
        if names[0] != names[1] or declared.placements != actual.placements:
            raise Mismatch(
                position, f"expected a tensor shared as {declared.text}, got {actual.text}; use relax.dist.redistribute"
            )
        for mine, other in zip(declared.mesh, actual.mesh, strict=True):
            self.equations.append((mine.size, other.size, position))

    def _match_fields(self, declared: Sequence[StructInfo], actual: Sequence[StructInfo], position: AccessPath) -> None:
        for index, pair in enumerate(zip(declared, actual, strict=True)):
            self._match(*pair, AccessPath(position.root, (*position.fields, index)))

    def _match_dims(self, declared: Shape, actual: Shape, position: AccessPath) -> None:
        if declared is None:
            return
        if actual is not None and len(actual) != len(declared):
            raise Mismatch(position, f"expected {len(declared)} dimensions, got {len(actual)}")
        for index, dim in enumerate(declared):
            if dim is not None:
                here = AccessPath(position.root, position.fields, index)
                found = None if actual is None else actual[index]
                self.equations.append((dim, self._slot(here) if found is None else found, here))

    def _match_number(self, declared: Dim | None, actual: Dim | None, position: AccessPath) -> None:
        """Matches the values of prims; one that is read at run time may be negative, as no dimension is."""
        if declared is None:
            return
        here = AccessPath(position.root, position.fields, 0)
        if actual is None:
            actual = self._slot(here)
            self.prover = Prover(self.prover.bounds.with_entries({str(actual): (None, None)}))
        self.equations.append((declared, actual, here))

    def _slot(self, position: AccessPath) -> Dim:
        path = "".join(f".{index}" for index in position.fields)
        name = fresh_name(f"arg{position.root}{path}.dim{position.dim}", self.taken)
        self.taken.add(name)
        self.slots[name] = position
        return symbol(name)

    def _match_function(self, derived: FuncType, base: FuncType, position: AccessPath) -> None:
        verdict = is_subtype(derived, base, self.prover)
        self._require(verdict is not Verdict.NEVER, base, derived, position)
        if verdict is Verdict.RUNTIME:
            self.kinds.append(KindCheck(position, base))

    def _require(self, holds: bool, declared: StructInfo, actual: StructInfo, position: AccessPath) -> None:
        if not holds:
            raise Mismatch(position, f"expected {declared}, got {actual}")

    def _bound_checks(self, bindings: Mapping[str, Dim], sources: Mapping[str, AccessPath]) -> list[BoundCheck]:
        checks: list[BoundCheck] = []
        for bound in self.symbols:
            name = bound.symbol.data
            value = bindings[name]
            lower, upper = bound.interval
            within = [self.prover.less_equal(lower, value)]
            if upper is not None:
                within.append(self.prover.less_equal(value, upper))
            if False in within:
                limit = "_" if upper is None else upper
                raise Mismatch(sources[name], f"expected {name} in [{lower}, {limit}], got {value}")
            if None in within:
                checks.append(BoundCheck(bound, value, sources[name]))
        return checks


DeriveFunction: TypeAlias = Callable[[Sequence[StructInfo]], StructInfo]
"""From the types of the arguments to the type of the result."""

_derive_functions: dict[str, DeriveFunction] = {}


def register_derive_function(name: str, function: DeriveFunction) -> None:
    """Makes `function` the derive function that `!relax.func<* derive "name">` names; a name is registered once.

    Raises `ValueError` if another function has the name already.
    """
    if _derive_functions.setdefault(name, function) is not function:
        raise ValueError(f"a derive function {name} is registered already")


@dataclass(frozen=True)
class CallOutcome:
    """The result type of a call, and how its arguments met the parameters (`None` for an opaque callee)."""

    ret: StructInfo
    match: Match | None

    @property
    def verdict(self) -> Verdict:
        """`YES` if the call needs no run-time check of its arguments."""
        return Verdict.YES if self.match is None else self.match.verdict


def call_result(func: FuncType, arguments: Sequence[StructInfo], prover: Prover | None = None) -> CallOutcome:
    """What calling `func` with arguments of these types returns (TVM `DeriveCallRetType`).

    The callee's symbols are solved from the arguments and put into its result type at once; a dimension whose symbol is
    only known at run time becomes unknown. An opaque callee returns what its derive function says, else its declared
    result. Raises `Mismatch` if the arguments are wrong, `ValueError` if the derive function is not registered or
    fails.
    """
    if func.opaque:
        return CallOutcome(func.ret if func.derive is None else _derive(func.derive, arguments), None)
    match = match_types(func.params, arguments, func.symbols, prover)
    return CallOutcome(erase_symbols(substitute(func.ret, match.bindings), match.slots), match)


def _derive(name: str, arguments: Sequence[StructInfo]) -> StructInfo:
    function = _derive_functions.get(name)
    if function is None:
        raise ValueError(f"the derive function {name} is not registered")
    try:
        found = cast("object", function(arguments))
    except Exception as error:
        raise ValueError(f"the derive function {name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, StructInfo):
        raise ValueError(f"the derive function {name} expected to give a type, got {type(found).__name__}")
    return found


def open_function(func: FuncType, other: FuncType) -> FuncType:
    """`func` with its bound symbols renamed so that none is a symbol of `other` or of the surroundings."""
    taken = set(free_symbols(func) | free_symbols(other)) | {*other.symbol_names}
    renaming: dict[str, str] = {}
    for name in func.symbol_names:
        renaming[name] = fresh_name(name, taken)
        taken.add(renaming[name])
    mapping = {old: symbol(new) for old, new in renaming.items()}
    return FuncType(
        [substitute(param, mapping) for param in func.params],
        substitute(func.ret, mapping),
        pure=func.pure,
        symbols=[SymbolAttr(renaming[old.symbol.data], *old.interval) for old in func.symbols],
    )


def partial_application(func: FuncType, captured: Sequence[StructInfo], prover: Prover | None = None) -> FuncType:
    """The type of `func` with its first parameters given.

    Symbols that the captured values determine are put in; the others stay bound by the call. Raises `Mismatch` if the
    captured values are wrong.
    """
    given = func.params[: len(captured)]
    alone = {name for param in given for name in iter_bare_symbols(param)}
    fixed = [bound for bound in func.symbols if bound.symbol.data in alone]
    left = [bound for bound in func.symbols if bound.symbol.data not in alone]
    open_names = [bound.symbol.data for bound in left]
    match = match_types([erase_symbols(param, open_names) for param in given], captured, fixed, prover)
    rest = FuncType(func.params[len(captured) :], func.ret, pure=func.pure, symbols=left)
    return _erase_unknown(substitute(rest, match.bindings), match.slots)


def _erase_unknown(func: FuncType, slots: Collection[str]) -> FuncType:
    """`func` without what only the run time knows; opaque if that is in a parameter."""
    erased = erase_symbols(func, slots)
    return erased if isinstance(erased, FuncType) else func
