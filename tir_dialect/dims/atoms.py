"""The atoms of a dimension: symbols and the functions that are no polynomials.

Atoms are hash-consed like dimensions. They are plain records: the functions that simplify before they make one are
`floordiv`, `mod`, `minimum`, `maximum` and `broadcast`.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from tir_dialect.dims.expr import Dim

SortKey: TypeAlias = "tuple[object, ...]"

FUNCTION_NAMES = ("broadcast", "ceildiv", "floordiv", "max", "min", "mod")
"""Names with a meaning in expressions; no symbol may have one."""

MAX_NESTING = 100
"""Deepest nesting of functions. What is deeper is refused, so that recursion over dimensions always ends well."""

MAX_SIZE = 1 << 14
"""Symbols, numbers and functions in the text of an expression."""

_SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_atoms: WeakValueDictionary[tuple[type[Atom], object], Atom] = WeakValueDictionary()
_lock = Lock()


class DimSizeError(ValueError):
    """An expression that is too large to compute with."""


def is_symbol_name(text: str) -> bool:
    """Whether `text` can name a symbol: an MLIR bare identifier, but not `_` and not the name of a function."""
    return _SYMBOL_NAME.fullmatch(text) is not None and text != "_" and text not in FUNCTION_NAMES


class Atom(ABC):
    """An indivisible factor of a monomial: a symbol, or a function of other dimensions.

    `operands` are the arguments of the function (none for a symbol), `symbols` the names of all symbols inside.
    `sort_key` orders atoms in the same way in every run. `depth` is 0 for a symbol, and the nesting of a function;
    `size` is how many symbols, numbers and functions its text has.
    """

    __slots__ = ("__weakref__", "depth", "operands", "size", "sort_key", "symbols")

    rank: ClassVar[int]
    """Place of the class in the order of atoms."""

    operands: tuple[Dim, ...]
    symbols: frozenset[str]
    sort_key: SortKey
    depth: int
    size: int

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an atom is immutable: cannot set {name}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @classmethod
    def _intern(cls, payload: object, fields: Sequence[tuple[str, object]]) -> Self:
        found = _atoms.get((cls, payload))
        if found is None:
            with _lock:
                found = _atoms.get((cls, payload))
                if found is None:
                    found = object.__new__(cls)
                    for name, value in fields:
                        object.__setattr__(found, name, value)
                    _atoms[cls, payload] = found
        assert isinstance(found, cls)  # the table is keyed by class
        return found


def size_of_terms(dim: Dim) -> int:
    """How many symbols, numbers and functions the text of a dimension has."""
    return sum(1 + sum(atom.size * power for atom, power in monomial) for _, monomial in dim.terms)


class SymbolAtom(Atom):
    """A named integer, by default at least 0."""

    __slots__ = ()

    rank = 0

    @classmethod
    def get(cls, name: str) -> Self:
        """The symbol `name`; ValueError where the name is not possible."""
        found = _atoms.get((cls, name))
        if isinstance(found, cls):
            return found
        if not is_symbol_name(name):
            raise ValueError(f"'{name}' cannot name a symbol: expected letters, digits, '_', '$' and '.'")
        symbols = frozenset((name,))
        fields = (("operands", ()), ("symbols", symbols), ("sort_key", (cls.rank, name)), ("depth", 0), ("size", 1))
        return cls._intern(name, fields)

    @property
    def name(self) -> str:
        """The name, unique within a function."""
        return next(iter(self.symbols))

    def __repr__(self) -> str:
        return f"SymbolAtom({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], Self], tuple[str]]:
        return type(self).get, (self.name,)


class FunctionAtom(Atom):
    """A function of dimensions, in canonical form: no rule of the canonical form applies to it."""

    __slots__ = ()

    spelling: ClassVar[str]
    """The name of the function in text."""

    @classmethod
    def get(cls, operands: tuple[Dim, ...]) -> Self:
        """The atom over `operands`, unsimplified; ValueError where functions are nested too deeply."""
        found = _atoms.get((cls, operands))
        if isinstance(found, cls):
            return found
        inner = [atom for operand in operands for _, monomial in operand.terms for atom, _ in monomial]
        depth = 1 + max((atom.depth for atom in inner), default=0)
        if depth > MAX_NESTING:
            raise DimSizeError(f"dimension is nested deeper than {MAX_NESTING} levels")
        size = 1 + sum(map(size_of_terms, operands))
        if size > MAX_SIZE:
            raise DimSizeError(f"dimension has more than {MAX_SIZE} symbols, numbers and functions")
        symbols = frozenset[str]().union(*(operand.symbols for operand in operands))
        key = (cls.rank, *(operand.sort_key for operand in operands))
        fields = (("operands", operands), ("symbols", symbols), ("sort_key", key), ("depth", depth), ("size", size))
        return cls._intern(operands, fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.operands))})"

    def __reduce__(self) -> tuple[Callable[[tuple[Dim, ...]], Self], tuple[tuple[Dim, ...]]]:
        return type(self).get, (self.operands,)


class DivisionAtom(FunctionAtom):
    """A function of a numerator and a denominator that is not 0."""

    __slots__ = ()

    @property
    def numerator(self) -> Dim:
        """What is divided."""
        return self.operands[0]

    @property
    def denominator(self) -> Dim:
        """What it is divided by: a constant > 1, or no constant."""
        return self.operands[1]


class FloorDivAtom(DivisionAtom):
    """`floordiv(numerator, denominator)`: the quotient rounded towards minus infinity."""

    __slots__ = ()

    rank = 1
    spelling = "floordiv"


class ModAtom(DivisionAtom):
    """`mod(numerator, denominator)`: what floor division leaves; it has the sign of the denominator."""

    __slots__ = ()

    rank = 2
    spelling = "mod"


class MinAtom(FunctionAtom):
    """`min(...)` of two operands or more."""

    __slots__ = ()

    rank = 3
    spelling = "min"


class MaxAtom(FunctionAtom):
    """`max(...)` of two operands or more."""

    __slots__ = ()

    rank = 4
    spelling = "max"


class BroadcastAtom(FunctionAtom):
    """`broadcast(...)`: the extent that all operands not equal to 1 have in common; 1 if there are none."""

    __slots__ = ()

    rank = 5
    spelling = "broadcast"
