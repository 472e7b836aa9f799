"""Tensors: the results of placeholders, computes and externs, which expressions load from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType

from tir_dialect.dims import Dim
from tir_dialect.dtypes import ElementType
from tir_dialect.te import nodes
from tir_dialect.te.coerce import as_index
from tir_dialect.te.conversions import DTypeLike, to_dtype
from tir_dialect.te.expr import Expr, Operand
from tir_dialect.te.operations import Placeholder
from tir_dialect.te.shapes import ShapeLike, to_shape

if TYPE_CHECKING:
    from tir_dialect.te.compute import Compute
    from tir_dialect.te.extern import Extern
    from tir_dialect.te.extern_primfunc import Inlined
    from tir_dialect.te.scan_steps import Scan


class Tensor:
    """An array of `dtype` elements with a symbolic shape; `tensor[i, j]` is one element, `tensor[()]` that of rank 0.

    `source` is the computation that defines it, None for a placeholder, and `output` says which of its outputs.
    """

    __slots__ = ("__weakref__", "dtype", "name", "output", "shape", "source")

    def __init__(
        self,
        name: str,
        shape: tuple[Dim, ...],
        dtype: ElementType,
        source: Compute | Extern | Inlined | Scan | None = None,
        output: int = 0,
    ):
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.source = source
        self.output = output

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        """One element, `A[i, j]` or `A[i][j]`; a loaded integer is a valid index. IndexError for too many indices."""
        given = indices if isinstance(indices, tuple) else (indices,)
        if given and len(given) < self.ndim:
            return nodes.Slice(self, given)
        if len(given) != self.ndim:
            raise IndexError(f'te: tensor "{self.name}" has rank {self.ndim}, got {len(given)} indices')
        return nodes.load(self, tuple(as_index(f'te: tensor "{self.name}"', index) for index in given))

    @property
    def op(self) -> Compute | Extern | Inlined | Scan | Placeholder:
        """The operation that defines it."""
        return Placeholder(self.name, self) if self.source is None else self.source

    @property
    def value_index(self) -> int:
        """The index of the tensor among the outputs of its operation."""
        return self.output

    @property
    def data(self) -> Tensor:
        """The memory, as an argument of a call, for which the tensor itself stands."""
        return self

    def access_ptr(self, access_mask: str = "rw") -> Tensor:
        """The memory, as an argument of a call, for which the tensor itself stands."""
        return self

    def __call__(self, *indices: Operand) -> Expr:
        """One element, as `tensor[indices]`."""
        return self[indices]

    def __iter__(self) -> None:
        raise TypeError(f'te: tensor "{self.name}" cannot be iterated over, index it')

    def __repr__(self) -> str:
        return f"Tensor({self.name}: [{', '.join(map(str, self.shape))}], {self.dtype})"


def to_element_type(what: str, dtype: DTypeLike) -> ElementType:
    """A dtype that a buffer can hold; TypeError for `index`."""
    kind = to_dtype(dtype)
    if isinstance(kind, IndexType):
        raise TypeError(f'te: "{what}" cannot have elements of dtype index, use te.cast to choose a width')
    return kind


def placeholder(shape: ShapeLike, dtype: DTypeLike = "f32", name: str = "placeholder") -> Tensor:
    """An input with the given shape, such as `(n, 4)` or `("2 * n", m)`."""
    return Tensor(name, to_shape(name, shape), to_element_type(name, dtype))
