"""What a call returns: binding of the callee's symbols, substitution, and derive functions of packed functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Match, match_types
from relax_dialect.struct_info.subtype import Verdict
from relax_dialect.struct_info.symbols import free_symbols, fresh_name, iter_bare_symbols, substitute
from tir_dialect.dims import Prover, symbol
from tir_dialect.symbols import SymbolAttr

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
