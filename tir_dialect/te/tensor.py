"""Tensors, their shapes, and the operations that define them (`tensor.op`), with the attributes of `te.Operation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects.builtin import IndexType

from tir_dialect.dims import Dim, DimLike, constant, symbol, to_dim
from tir_dialect.dtypes import ElementType
from tir_dialect.ops.annotations import Note
from tir_dialect.te import nodes
from tir_dialect.te.coerce import as_index, is_integer
from tir_dialect.te.expr import Expr, Operand
from tir_dialect.te.operators import DTypeLike, to_dtype

if TYPE_CHECKING:
    from tir_dialect.te.compute import Compute, Scan
    from tir_dialect.te.extern import Extern
    from tir_dialect.te.extern_primfunc import Inlined
    from tir_dialect.te.graph import Source

SIZE_DTYPES = ("index", "int32", "int64", "i32", "i64")
"""The dtypes that users may give to sizes."""

ExtentLike: TypeAlias = "DimLike | Expr"
"""An integer, a dimension, its text (`"2 * n"`), or index arithmetic on those."""

ShapeLike: TypeAlias = "Sequence[ExtentLike] | ExtentLike"
"""A sequence of extents, or a single extent for rank 1."""


def var(name: str, dtype: str = "index") -> Dim:
    """A symbolic size: a non-negative integer that is known when the kernel runs. Equal names are the same symbol.

    Sizes have 64 bits, whichever integer dtype is given; ValueError for a float dtype, for which there is `te.scalar`.
    """
    if not isinstance(cast("object", name), str):
        raise TypeError(f"te: expected the name of a size, got {name!r}")
    if dtype not in SIZE_DTYPES:
        raise ValueError(f'te: the size "{name}" expected one of {", ".join(SIZE_DTYPES)}, got {dtype}; use te.scalar')
    return symbol(name)


size_var = var
"""TVM's name for a size that is not negative, as all of ours are."""


def to_dimension(what: str, value: ExtentLike) -> Dim:
    """`value` as a dimension; TypeError if it is none, or depends on iteration variables or elements."""
    if not isinstance(value, Expr):
        try:
            return to_dim(value)
        except TypeError:
            raise TypeError(f'te: the extents of "{what}" must be integers or dimensions, got {value!r}') from None
    if isinstance(value, nodes.Const) and is_integer(value.dtype):
        return constant(int(value.value))
    if not isinstance(value, nodes.Size):
        raise TypeError(f'te: the extents of "{what}" must be computed from dimensions alone')
    return value.dim


def is_varying(value: ExtentLike) -> bool:
    """Whether a bound depends on iteration variables or elements."""
    return isinstance(value, Expr) and not isinstance(value, nodes.Size | nodes.Const)


def to_index(what: str, value: ExtentLike) -> Expr:
    """A bound of `what` as an `index` expression."""
    return as_index(f'te: a bound of "{what}"', value if isinstance(value, Expr) else to_dim(value))


def to_extent(what: str, extent: ExtentLike) -> Dim:
    """An extent as a dimension; ValueError for a negative one, and for one of more than 64 bits."""
    dim = to_dimension(what, extent)
    if (known := dim.constant_value) is not None and not 0 <= known < 1 << 63:
        raise ValueError(f'te: an extent of "{what}" is {known}, expected at least 0 and less than 2**63')
    return dim


def to_shape(what: str, shape: ShapeLike) -> tuple[Dim, ...]:
    """A shape from one extent or several; TypeError or ValueError as `to_extent`."""
    if isinstance(shape, Sequence) and not isinstance(shape, str):
        return tuple(to_extent(what, extent) for extent in shape)
    return (to_extent(what, shape),)


@dataclass(frozen=True, eq=False)
class Operation:
    """A computation or a placeholder."""

    name: str
    outputs: tuple[Tensor, ...] = field(init=False)
    """The tensors that it defines."""

    @property
    def num_outputs(self) -> int:
        """The number of its outputs."""
        return len(self.outputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Its inputs, in order of first use."""
        from tir_dialect.te.graph import inputs_of

        return inputs_of(cast("Source", self))

    @property
    def attrs(self) -> Mapping[str, Note]:
        """The `attrs` that it was created with."""
        return {}

    def output(self, index: int) -> Tensor:
        """The output with this index."""
        return self.outputs[index]

    def output_dtype(self, index: int) -> ElementType:
        """The dtype of the output with this index."""
        return self.outputs[index].dtype

    def output_shape(self, index: int) -> tuple[Dim, ...]:
        """The shape of the output with this index."""
        return self.outputs[index].shape


@dataclass(frozen=True)
class Placeholder(Operation):
    """The operation of a placeholder: no inputs, one output."""

    tensor: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", (self.tensor,))

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """None."""
        return ()

    @property
    def shape(self) -> tuple[Dim, ...]:
        """That of its tensor."""
        return self.tensor.shape

    @property
    def dtype(self) -> ElementType:
        """That of its tensor."""
        return self.tensor.dtype


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
