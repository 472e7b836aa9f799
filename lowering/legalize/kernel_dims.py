"""Dimensions of a kernel: the caller's expressions, renamed where the kernel could not solve them from its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tir_dialect.dims import Dim, symbol


@dataclass
class KernelDims:
    """Maps dimensions of the caller to dimensions of one kernel.

    A symbol that is a dimension by itself somewhere keeps its name; so does every expression over such symbols. Any
    other expression, such as the only dimension `m * n` of a flattened tensor, gets a symbol of its own: inside the
    kernel it does not matter how the caller came by the size.
    """

    _known: set[str] = field(default_factory=set[str])
    _renamed: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    @staticmethod
    def of(shapes: Iterable[Sequence[Dim]]) -> KernelDims:
        """The dimensions of a kernel whose buffers have these shapes."""
        dims = list(dict.fromkeys(dim for shape in shapes for dim in shape))
        result = KernelDims({name for dim in dims if (name := dim.as_symbol) is not None})
        taken = {name for dim in dims for name in dim.symbols}
        for dim in dims:
            if not dim.symbols <= result._known:
                name = next(name for i in range(len(taken) + 1) if (name := f"d{i}") not in taken)
                taken.add(name)
                result._renamed[dim] = symbol(name)
        return result

    def shape(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """A shape in the kernel's symbols."""
        return tuple(self._renamed.get(dim, dim) for dim in dims)

    def key(self, shapes: Iterable[Sequence[Dim]]) -> tuple[tuple[str, ...], ...]:
        """The shapes with symbols numbered in order of appearance: equal for kernels that differ in names only."""
        numbers: dict[str, Dim] = {}
        for shape in (shapes := [self.shape(dims) for dims in shapes]):
            for dim in shape:
                for name in sorted(dim.symbols):
                    numbers.setdefault(name, symbol(f"k{len(numbers)}"))
        return tuple(tuple(str(dim.substitute(numbers)) for dim in shape) for shape in shapes)
