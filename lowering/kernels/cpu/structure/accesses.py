"""Affine accesses: addresses in buffers as linear functions of the axes of a loop nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant, symbol, total


@dataclass(frozen=True)
class Index:
    """An index, or an address in a flat buffer: `base + sum(strides[a] * axis a)`, or a computed value."""

    base: Dim
    strides: tuple[Dim, ...]
    value: SSAValue | None = None
    """The value, if it is not linear in the axes."""
    whole: Dim | None = field(default=None, compare=False)
    """The expression over symbols for the axes, if there is one."""

    def is_axis(self, number: int) -> bool:
        """Whether the index is one axis."""
        return self.follows(number) and not self.base.terms

    def follows(self, number: int) -> bool:
        """Whether the index is one axis plus an offset."""
        wanted = tuple(constant(int(axis == number)) for axis in range(len(self.strides)))
        return self.value is None and self.strides == wanted


IndexTuple: TypeAlias = tuple[Index, ...]
"""The indices of an access, one per dimension."""


@dataclass(frozen=True)
class AffineAccess:
    """The address of an access, in elements from the start of its buffer: a linear part, and computed values
    with strides.
    """

    base: Dim
    strides: tuple[Dim, ...]
    computed: tuple[tuple[SSAValue, Dim], ...] = ()


def linear(space: IndexSpace, names: Sequence[str], value: SSAValue) -> Index:
    """An index as a function of the axes with these names."""
    dim = space.dim_of(value)
    chunks = None if dim is None else linear_parts(dim, names)
    if chunks is None:
        return Index(constant(0), (constant(0),) * len(names), value, dim)
    return Index(chunks[0], chunks[1], None, dim)


def linear_parts(dim: Dim, names: Sequence[str]) -> tuple[Dim, tuple[Dim, ...]] | None:
    """Base and strides of a linear function; `None` if it is not linear."""
    own = dim.symbols
    zeros = {name: constant(0) for name in names if name in own}
    if not zeros:
        return dim, (constant(0),) * len(names)
    base = dim.substitute(zeros)
    strides = tuple(
        dim.substitute({**zeros, name: constant(1)}) - base if name in zeros else constant(0) for name in names
    )
    again = total([base, *(stride * symbol(name) for stride, name in zip(strides, names, strict=True) if stride.terms)])
    return (base, strides) if again is dim else None


def affine_access(indices: IndexTuple, steps: Sequence[Dim], count: int) -> AffineAccess:
    """The address for indices in a nest with `count` axes, in a buffer with these strides."""
    base, strides = constant(0), (constant(0),) * count
    computed: list[tuple[SSAValue, Dim]] = []
    for index, step in zip(indices, steps, strict=True):
        if index.value is not None:
            computed.append((index.value, step))
            continue
        base = base + index.base * step
        # Most indices follow one axis.
        strides = tuple(old + new * step if new.terms else old for old, new in zip(strides, index.strides, strict=True))
    return AffineAccess(base, strides, tuple(computed))


def whole_access(indices: IndexTuple, steps: Sequence[Dim], names: Sequence[str]) -> AffineAccess | None:
    """The access as one linear function although its indices are not, as `8 * (i // 8) + i % 8`; `None` otherwise."""
    dims = [index.whole * step for index, step in zip(indices, steps, strict=True) if index.whole is not None]
    chunks = linear_parts(total(dims), names) if len(dims) == len(indices) else None
    return None if chunks is None else AffineAccess(*chunks)
