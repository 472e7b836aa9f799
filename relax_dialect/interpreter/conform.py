"""Does a value have a type? The run-time checks of the specification, on values, with symbols bound, and dimensions as
numbers of 64 bits, which overflow where compiled code's do.

Errors are worded as in the virtual machine. `TypeError`: a wrong kind, rank or dtype; `ValueError`: a wrong dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, mul, sub
from typing import NoReturn

from xdsl.ir import Attribute

from relax_dialect.interpreter.runtime_values import Shape, Value, is_int, is_tensor, is_tuple, kind_of
from relax_dialect.struct_info.match import AccessPath, LocatedCheck, Match, match_types
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    StructInfo,
    SymbolAttr,
    TensorType,
    TupleType,
)
from relax_dialect.struct_info.types import Shape as Dims
from tir_dialect.dims import Atom, CheckKind, Dim, FunctionAtom, Monomial
from tir_dialect.dtypes import check_extents, is_bool, is_float, lookup, numpy_dtype, range_in_i64


def evaluate(dim: Dim, symbols: Mapping[str, int]) -> int:
    """The value of a dimension; `ValueError` if it divides by zero or overflows, as in the virtual machine."""
    if (name := dim.as_symbol) is not None:
        return symbols[name]
    if (number := dim.constant_value) is not None:
        return number
    try:
        return _of_dim(dim, symbols)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None


def _of_dim(dim: Dim, symbols: Mapping[str, int]) -> int:
    positive = [_of_term(c, monomial, symbols) for c, monomial in dim.terms if c > 0]
    negative = [_of_term(-c, monomial, symbols) for c, monomial in dim.terms if c < 0]
    return _fold(sub, [_fold(add, positive), *negative])


def _of_term(coefficient: int, monomial: Monomial, symbols: Mapping[str, int]) -> int:
    return _fold(mul, [*(_of_atom(atom, symbols) for atom, power in monomial for _ in range(power)), coefficient])


def _of_atom(atom: Atom, symbols: Mapping[str, int]) -> int:
    if isinstance(atom, FunctionAtom):
        return _exact(atom.value_of([_of_dim(operand, symbols) for operand in atom.operands]))
    return symbols[str(atom)]


def _fold(function: Callable[[int, int], int], values: Sequence[int]) -> int:
    return reduce(lambda a, b: _exact(function(a, b)), values) if values else 0


def _exact(value: int) -> int:
    if not is_int(value):
        raise ValueError("a size does not fit into 64 bits")
    return value


def has_type(value: Value, info: StructInfo, symbols: Mapping[str, int]) -> bool:
    """Whether a value has a type all of whose symbols are known."""
    match info:
        case TensorType():
            return (
                is_tensor(value)
                and (info.dtype is None or value.dtype == numpy_dtype(info.dtype))
                and _has_dims(value.shape, info.dims, symbols)
            )
        case ShapeType():
            return isinstance(value, Shape) and _has_dims(value, info.dims, symbols)
        case PrimType():
            known = info.value is None or (isinstance(value, int) and evaluate(info.value, symbols) == value)
            return known and _is_prim(value, info) and _is_in_range(value, info)
        case TupleType():
            return (
                is_tuple(value)
                and len(value) == len(info.fields)
                and all(has_type(item, part, symbols) for item, part in zip(value, info.fields, strict=True))
            )
        case FuncType():
            return callable(value)
        case _:
            return True


def _has_dims(actual: Sequence[int], dims: Dims, symbols: Mapping[str, int]) -> bool:
    if dims is None:
        return True
    if len(actual) != len(dims):
        return False
    return all(dim is None or evaluate(dim, symbols) == length for dim, length in zip(dims, actual, strict=True))


@dataclass(frozen=True)
class Expectation:
    """A type that a value has to have, with the values of its symbols; equal ones check the same."""

    type: StructInfo
    what: str
    """What errors call the value."""
    symbols: tuple[tuple[str, int], ...]

    def check(self, value: Value) -> None:
        """Raises `TypeError` or `ValueError` unless the value has the type."""
        symbols = dict(self.symbols)
        if not has_type(value, self.type, symbols):
            Contract([self.type], [self.what]).meet([value], symbols)


def argument_names(function: str, names: Sequence[str], captured: int) -> list[str]:
    """What errors call the parameters of a function of which closures give the first `captured`."""
    given = [f"{function}: captured value #{index} ({name})" for index, name in enumerate(names[:captured])]
    return given + [f"{function}: argument #{index} ({name})" for index, name in enumerate(names[captured:])]


@dataclass(frozen=True)
class Contract:
    """Types that values have to have, and the symbols that they bind: analysed once, used for every call."""

    declared: Sequence[StructInfo]
    names: Sequence[str]
    """What errors call the values."""
    binds: Sequence[SymbolAttr] = ()
    captured: int = 0
    """How many of the first values a closure has captured: errors do not name them as the origin of a symbol."""

    @cached_property
    def match(self) -> Match:
        """What has to be read from values, solved and checked."""
        return match_types(self.declared, [ObjectType()] * len(self.declared), self.binds)

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """The names of the symbols that values bind."""
        return frozenset(symbol.symbol.data for symbol in self.binds)

    @cached_property
    def _asks_nothing(self) -> bool:
        """Whether values only have to be of the right kind."""
        match = self.match
        return not (match.slots or match.bindings or match.dim_checks or match.bound_checks)

    def meet(self, values: Sequence[Value], known: Mapping[str, int]) -> dict[str, int]:
        """Checks values and gives the symbols that they bind; `known` are the symbols in scope."""
        for value, info, position in zip(values, self.declared, self.names, strict=True):
            check_kind(value, info, position)
        if self._asks_nothing:
            return {}
        match = self.match
        scope = {**known, **{name: _read(values, slot) for name, slot in match.slots.items()}}
        divisible = [inserted for inserted in match.dim_checks if inserted.check.kind is CheckKind.DIVISIBLE]
        for inserted in divisible:  # before the quotient is used
            self._check_dimension(inserted, scope)
        bindings = {name: evaluate(dim, scope) for name, dim in match.bindings.items()}
        for inserted in match.dim_checks:
            self._check_dimension(inserted, scope)
        for bound in match.bound_checks:
            low, high = bound.symbol.interval
            value = evaluate(bound.value, scope)
            if not (low <= value and (high is None or value <= high)):
                what = _out_of_range(bound.symbol.symbol.data, bound.symbol.interval, value)
                raise ValueError(f"{self._describe(bound.path)}: {what}")
        return bindings

    def _check_dimension(self, inserted: LocatedCheck, scope: Mapping[str, int]) -> None:
        check, position = inserted.check, self._describe(inserted.path)
        left = evaluate(check.lhs, scope)
        info = self._declared(inserted.path)
        if isinstance(info, PrimType):
            pattern = info.value
        else:
            pattern = (
                info.dims[inserted.path.dim or 0] if isinstance(info, TensorType | ShapeType) and info.dims else None
            )
        match check.kind:
            case CheckKind.EQUAL:
                right = evaluate(check.rhs, scope)
                if left != right:
                    expected = str(left) if check.lhs.is_constant else f"{pattern} = {left}{self._origin(pattern)}"
                    raise ValueError(f"{position}: expected {expected}, got {right}")
            case CheckKind.DIVISIBLE:
                divisor = check.rhs.constant_term
                if left % divisor:
                    raise ValueError(f"{position}: expected a multiple of {divisor} ({pattern}), got {left}")
            case CheckKind.NON_NEGATIVE:
                if left < 0:
                    raise ValueError(f"{position}: {_out_of_range(pattern, (0, None), left)}")

    def _origin(self, pattern: Dim | None) -> str:
        source = None if pattern is None else self.match.sources.get(str(pattern))
        return (
            "" if source is None or source.root < self.captured else f" (from {self._describe(source).split(': ')[-1]})"
        )

    def _declared(self, position: AccessPath) -> StructInfo:
        info = self.declared[position.root]
        for index in position.fields:
            info = info.fields[index] if isinstance(info, TupleType) else ObjectType()
        return info

    def _describe(self, position: AccessPath) -> str:
        """What an error calls a position."""
        fields = "".join(f" field {index}" for index in position.fields)
        whole = f"{self.names[position.root]}{fields}"
        is_whole = position.dim is None or isinstance(self._declared(position), PrimType)
        return whole if is_whole else f"{whole} dimension {position.dim}"


def check_kind(value: Value, info: StructInfo, position: str) -> None:
    """Raises `TypeError` unless the value has the kind, rank and dtype that a type states."""
    match info:
        case TensorType():
            _check_tensor(value, info, position)
        case ShapeType():
            if not isinstance(value, Shape):
                _wrong(position, "a shape", kind_of(value))
            _check_rank(info.rank, len(value), position)
        case PrimType():
            if not _is_prim(value, info):
                kind = "a bool" if is_bool(info.dtype) else "a float" if is_float(info.dtype) else "an int"
                _wrong(position, kind, kind_of(value))
            if not _is_in_range(value, info):
                raise ValueError(f"{position}: {_out_of_range(numpy_dtype(info.dtype).name, _range(info), value)}")
        case TupleType():
            _check_fields(value, info, position)
        case FuncType():
            if not callable(value):
                _wrong(position, "a function", kind_of(value))
        case _:
            pass


def _check_tensor(value: Value, info: TensorType, position: str) -> None:
    if not is_tensor(value):
        _wrong(position, "a tensor", kind_of(value))
    _check_rank(info.rank, value.ndim, position)
    if info.dtype is not None and value.dtype != numpy_dtype(info.dtype):
        _wrong(position, f"dtype {numpy_dtype(info.dtype)}", str(value.dtype))
    check_extents(value.shape, value.itemsize, position)


def _check_fields(value: Value, info: TupleType, position: str) -> None:
    if not is_tuple(value):
        _wrong(position, "a tuple", kind_of(value))
    if len(value) != len(info.fields):
        plural = "" if len(info.fields) == 1 else "s"
        _wrong(position, f"a tuple of {len(info.fields)} field{plural}", str(len(value)))
    for index, (item, part) in enumerate(zip(value, info.fields, strict=True)):
        check_kind(item, part, f"{position} field {index}")


def _check_rank(expected: int | None, rank: int, position: str) -> None:
    if expected is not None and expected != rank:
        _wrong(position, f"rank {expected}", str(rank))


def _wrong(position: str, expected: str, got: str) -> NoReturn:
    raise TypeError(f"{position}: expected {expected}, got {got}")


def _is_prim(value: Value, info: PrimType) -> bool:
    dtype = lookup(info.dtype)
    if dtype.is_bool or isinstance(value, bool):
        return dtype.is_bool and isinstance(value, bool)
    return is_int(value) or (dtype.is_float and isinstance(value, float))


def _range(info: PrimType) -> tuple[int, int | None] | None:
    return None if is_bool(info.dtype) or is_float(info.dtype) else range_in_i64(info.dtype)


def _is_in_range(value: Value, info: PrimType) -> bool:
    wanted = _range(info)
    return wanted is None or (wanted[0] <= value and (wanted[1] is None or value <= wanted[1]))


def _out_of_range(what: object, wanted: tuple[int | None, int | None] | None, value: int) -> str:
    low, high = wanted or (None, None)
    limits = f"at least {low}" if high is None else f"{low} to {high}"
    return f"expected {what} in the range {limits}, got {value}"


def as_declared(value: Value, info: Attribute) -> Value:
    """The value that an SSA value of a type has: an `int` that was given for a float is that float."""
    return float(value) if type(value) is int and isinstance(info, PrimType) and is_float(info.dtype) else value


def _read(values: Sequence[Value], position: AccessPath) -> int:
    value = values[position.root]
    for index in position.fields:
        value = value[index]
    if is_tensor(value):
        return value.shape[position.dim or 0]
    return value[position.dim or 0] if isinstance(value, Shape) else int(value)
