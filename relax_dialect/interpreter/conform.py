"""Does a value have a type? The run-time checks of the specification, on values, with symbols bound on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relax_dialect.interpreter.runtime_values import DType, Shape, Value, kind_of
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType, SymbolAttr
from relax_dialect.struct_info.match import Match, Place, PlacedCheck, match_types
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import CheckKind, Dim
from tir_dialect.dtypes import is_bool, is_float, numpy_dtype


def conform(
    values: Sequence[Value],
    declared: Sequence[StructInfo],
    binds: Sequence[SymbolAttr],
    known: Mapping[str, int],
    places: Sequence[str],
) -> dict[str, int]:
    """Checks values against types and gives the symbols that they bind; `known` are the symbols in scope.

    `places` say what errors call the values. `TypeError`: a wrong kind, rank or dtype; `ValueError`: a wrong dimension.
    """
    for value, info, place in zip(values, declared, places, strict=True):
        check_kind(value, info, place)
    match = match_types(declared, [ObjectType()] * len(declared), binds)
    scope = {**known, **{name: _read(values, slot) for name, slot in match.slots.items()}}
    checks = _Checks(match, scope, places, declared)
    for placed in match.dim_checks:
        if placed.check.kind is CheckKind.DIVISIBLE:
            checks.dimension(placed)
    bindings = {name: dim.evaluate(scope) for name, dim in match.bindings.items()}
    for placed in match.dim_checks:
        checks.dimension(placed)
    for bound in match.bound_checks:
        low, high = bound.symbol.interval
        value = bound.value.evaluate(scope)
        if (low is not None and value < low) or (high is not None and value > high):
            name = bound.symbol.symbol.data
            raise ValueError(f"{place_text(bound.place, places)}: expected {name} in [{low}, {high}], got {value}")
    return bindings


def check_kind(value: Value, info: StructInfo, place: str) -> None:
    """Raises `TypeError` unless the value has the kind, rank and dtype that a type states."""
    match info:
        case TensorType():
            _expect(isinstance(value, np.ndarray), value, "a tensor", place)
            _expect(info.rank in (None, value.ndim), value, f"rank {info.rank}", place)
            if info.dtype is not None:
                expected = numpy_dtype(info.dtype)
                _expect(value.dtype == expected, value, f"dtype {expected}", place)
        case ShapeType():
            _expect(isinstance(value, Shape), value, "a shape", place)
            _expect(info.rank in (None, len(value)), value, f"rank {info.rank}", place)
        case PrimType():
            _expect(_is_prim(value, info), value, f"a {info.dtype} value", place)
        case TupleType():
            _expect(isinstance(value, tuple) and not isinstance(value, Shape), value, "a tuple", place)
            _expect(len(value) == len(info.fields), value, f"a tuple of {len(info.fields)} fields", place)
            for index, (item, part) in enumerate(zip(value, info.fields, strict=True)):
                check_kind(item, part, f"{place} field {index}")
        case FuncType():
            _expect(callable(value) and not isinstance(value, DType), value, "a function", place)
        case _:
            pass


def _is_prim(value: Value, info: PrimType) -> bool:
    if is_bool(info.dtype):
        return isinstance(value, bool)
    if is_float(info.dtype):
        return isinstance(value, float | int) and not isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool)


def _expect(holds: bool, value: Value, expected: str, place: str) -> None:
    if not holds:
        raise TypeError(f"{place}: expected {expected}, got a {kind_of(value)}")


def _read(values: Sequence[Value], place: Place) -> int:
    value = values[place.root]
    for index in place.fields:
        value = value[index]
    if isinstance(value, np.ndarray):
        return value.shape[place.dim or 0]
    return value[place.dim or 0] if isinstance(value, Shape) else int(value)


def place_text(place: Place, places: Sequence[str]) -> str:
    """What an error calls a place."""
    fields = "".join(f" field {index}" for index in place.fields)
    return f"{places[place.root]}{fields}" + ("" if place.dim is None else f" dimension {place.dim}")


class _Checks:
    """Evaluates the checks of a match."""

    def __init__(self, match: Match, scope: Mapping[str, int], places: Sequence[str], declared: Sequence[StructInfo]):
        self._match = match
        self._scope = scope
        self._places = places
        self._declared = declared

    def dimension(self, placed: PlacedCheck) -> None:
        """Raises `ValueError` unless a condition on dimensions holds."""
        check = placed.check
        left = check.lhs.evaluate(self._scope)
        place = place_text(placed.place, self._places)
        pattern = self._pattern(placed.place)
        match check.kind:
            case CheckKind.EQUAL:
                right = check.rhs.evaluate(self._scope)
                if left != right:
                    expected = str(left) if check.lhs.is_constant else f"{pattern} = {left}{self._origin(pattern)}"
                    raise ValueError(f"{place}: expected {expected}, got {right}")
            case CheckKind.DIVISIBLE:
                divisor = check.rhs.constant_term
                if left % divisor:
                    raise ValueError(f"{place}: expected a multiple of {divisor} ({pattern}), got {left}")
            case CheckKind.NON_NEGATIVE:
                if left < 0:
                    raise ValueError(f"{place}: expected {pattern} in the range at least 0, got {left}")

    def _origin(self, pattern: Dim | None) -> str:
        source = None if pattern is None else self._match.sources.get(str(pattern))
        return "" if source is None else f" (from {place_text(source, self._places).split(': ')[-1]})"

    def _pattern(self, place: Place) -> Dim | None:
        info = self._declared[place.root]
        for index in place.fields:
            info = info.fields[index] if isinstance(info, TupleType) else ObjectType()
        if isinstance(info, PrimType):
            return info.value
        return info.dims[place.dim or 0] if isinstance(info, TensorType | ShapeType) and info.dims else None
