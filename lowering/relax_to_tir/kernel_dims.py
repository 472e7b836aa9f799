"""Dimensions of a kernel: the caller's expressions, renamed where the kernel could not solve them from its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tir_dialect.dims import Dim, symbol


@dataclass
class KernelDims:
    """Maps dimensions of the caller to dimensions of one kernel.

    A symbol that is a dimension of a buffer by itself keeps its name; so does every expression over such symbols. Any
    other dimension of a buffer, such as the only dimension `m * n` of a flattened tensor, gets a symbol of its own:
    inside the kernel it does not matter how the caller came by the size. Dimensions that are no buffer's, such as the
    positions of a slice, stay as they are; the caller gives the values of their symbols.
    """

    _known: set[str] = field(default_factory=set[str])
    _renamed: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    @staticmethod
    def of(shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> KernelDims:
        """The dimensions of a kernel whose buffers have these shapes, and that uses `others` too."""
        dims = list(dict.fromkeys(dim for shape in shapes for dim in shape))
        result = KernelDims({name for dim in dims if (name := dim.as_symbol) is not None})
        taken = {name for dim in (*dims, *others) for name in dim.symbols}
        for dim in dims:
            if not dim.symbols <= result._known:
                name = next(name for i in range(len(taken) + 1) if (name := f"d{i}") not in taken)
                taken.add(name)
                result._renamed[dim] = symbol(name)
        return result

    def shape(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of a buffer in the kernel's symbols."""
        return tuple(self._renamed.get(dim, dim) for dim in dims)

    def original(self, dim: Dim) -> Dim:
        """The caller's dimension for one in the kernel's symbols."""
        names = {new.as_symbol: old for old, new in self._renamed.items()}
        return dim.substitute({name: old for name, old in names.items() if name is not None})

    def symbols(self, shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> tuple[str, ...]:
        """The kernel's symbols in an order that does not depend on their names."""
        used = [*(self.shape(dims) for dims in shapes), others]
        return tuple(dict.fromkeys(name for dims in used for dim in dims for name in sorted(dim.symbols)))
