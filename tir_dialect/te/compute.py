"""Placeholders, elements of tensors, and extents; `te.compute`: a tensor defined by an expression for its elements; and
the loop nests of computes and scans.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload
from typing import cast as cast_to

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from tir_dialect.dims import Dim, DimLike, constant, symbol, to_dim
from tir_dialect.dtypes import ElementType
from tir_dialect.ops.assembly_format import Note, note_attr, note_of
from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, as_expr, as_index, is_index, is_integer, number_dtype
from tir_dialect.te.expr import OPERATORS, Expr, Operand, Scalar
from tir_dialect.te.nodes import IterVar, Operation, Reduce, Tensor, free_variables, post_order, substitute
from tir_dialect.te.operators import DTypeLike, cast, to_dtype

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
    if not isinstance(cast_to("object", name), str):
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


def element(tensor: Tensor, indices: Operand | tuple[Operand, ...]) -> Expr:
    """`tensor[indices]`."""
    given = indices if isinstance(indices, tuple) else (indices,)
    if given and len(given) < tensor.ndim:
        return nodes.Slice(tensor, given)
    if len(given) != tensor.ndim:
        raise IndexError(f'te: tensor "{tensor.name}" has rank {tensor.ndim}, got {len(given)} indices')
    return nodes.load(tensor, tuple(as_index(f'te: tensor "{tensor.name}"', index) for index in given))


OPERATORS["element"] = element


def to_element_type(what: str, dtype: DTypeLike) -> ElementType:
    """A dtype that a buffer can hold; TypeError for `index`."""
    kind = to_dtype(dtype)
    if isinstance(kind, IndexType):
        raise TypeError(f'te: "{what}" cannot have elements of dtype index, use te.cast to choose a width')
    return kind


def placeholder(shape: ShapeLike, dtype: DTypeLike = "f32", name: str = "placeholder") -> Tensor:
    """An input with the given shape, such as `(n, 4)` or `("2 * n", m)`."""
    return Tensor(name, to_shape(name, shape), to_element_type(name, dtype))


Attr: TypeAlias = "Note | Tensor | Sequence[Tensor]"
"""What an attribute of a computation says; a tensor goes by its name."""


def annotations_of(name: str, attrs: Mapping[str, Attr] | None) -> dict[str, Attribute]:
    """The annotations that attributes of the computation `name` become; TypeError for what is none."""
    if attrs is not None and not isinstance(cast_to("object", attrs), Mapping):
        raise TypeError(f'te: attributes of "{name}": expected values by name, got {attrs!r}')
    try:
        return {key: note_attr(_named(value)) for key, value in (attrs or {}).items()}
    except TypeError as error:
        raise TypeError(f'te: attribute of "{name}": {error}') from None


def _named(value: object) -> object:
    """An attribute with names instead of tensors."""
    if isinstance(value, list | tuple):
        return [_named(each) for each in cast_to("Sequence[object]", value)]
    return value.name if isinstance(value, Tensor) else value


_current: ContextVar[str] = ContextVar("te.tag", default="")


@contextmanager
def tag_scope(tag: str) -> Generator[None]:
    """Tags the computes created inside (`tensor.op.tag`); a context manager, or a decorator of a function.

    Raises ValueError inside another scope.
    """
    token = _current.set(current_tag(tag))
    try:
        yield
    finally:
        _current.reset(token)


def current_tag(own: str) -> str:
    """The tag of a new computation: its own, or that of the scope; ValueError if there are both."""
    around = _current.get()
    if own and around:
        raise ValueError(f'te: the tag "{own}" is inside of the scope of tag "{around}", expected one of them')
    return own or around


@dataclass(frozen=True, eq=False)
class Nest(Operation):
    """A loop nest over `axes` that computes one expression per output, or all results of one reduction in order."""

    axes: tuple[IterVar, ...]
    bodies: tuple[Expr, ...]
    annotations: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """Annotations of the block."""

    @property
    def reduction(self) -> Reduce | None:
        """The reduction whose results the bodies are; None for elementwise expressions."""
        return self.bodies[0] if isinstance(self.bodies[0], Reduce) else None

    @property
    def all_axes(self) -> tuple[IterVar, ...]:
        """The axes, then those of the reduction."""
        return self.axes if self.reduction is None else (*self.axes, *self.reduction.axes)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes, as TVM calls them."""
        return self.axes

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of the reduction, as TVM calls them."""
        return () if self.reduction is None else self.reduction.axes

    @property
    def element(self) -> tuple[Expr, ...]:
        """The indices of the output element that an iteration computes."""
        return self.axes


@dataclass(frozen=True, eq=False)
class Compute(Nest):
    """A nest that defines its outputs, with one element for each iteration."""

    tag: str = ""
    """A label by which passes find the computation, set by `tag_scope`."""

    def __post_init__(self) -> None:
        shape = tuple(axis.length for axis in self.axes if axis.length is not None)
        names = [self.name] if len(self.bodies) == 1 else [f"{self.name}_v{i}" for i in range(len(self.bodies))]
        dtypes = [to_element_type(self.name, body.dtype) for body in self.bodies]
        made = (Tensor(n, shape, dtype, self, i) for i, (n, dtype) in enumerate(zip(names, dtypes, strict=True)))
        object.__setattr__(self, "outputs", tuple(made))

    @property
    def body(self) -> tuple[Expr, ...]:
        """The bodies, as TVM calls them."""
        return self.bodies

    @property
    def attrs(self) -> Mapping[str, Note]:
        """The annotations, as TVM calls them."""
        return {key: note_of(value) for key, value in self.annotations.items()}


@overload
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., tuple[Operand, ...]],
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, Attr] | None = ...,
) -> tuple[Tensor, ...]: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Operand],
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, Attr] | None = ...,
) -> Tensor: ...
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Attr] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The tensor with element `fcompute(i, j, ...)` at `[i, j, ...]`; a tuple of tensors if `fcompute` returns a tuple.

    `shape` is a sequence of extents: integers, dimensions (`te.var("n") * 2`) or their text (`"2 * n"`). The parameters
    of `fcompute` are iteration variables of dtype `index`; their names become those of the loops. The dtype is that of
    the expression; a plain Python number has TVM's dtype, `i32`, `f32` or `i1`, and an index has `i64`.

    A reduction may occur anywhere in the expression except in a branch of `if_then_else`: one inside a larger
    expression becomes a tensor of its own, over the axes that it depends on.

    `attrs` become annotations of the block, as by `Schedule.annotate`; tensors in them are replaced by their names.
    `tag` is that of `tag_scope`.

    Raises TypeError if `fcompute` does not take one variable per dimension, if its result has no dtype that a tensor
    can hold, or for an attribute that no annotation can hold; and ValueError if the expression uses an iteration
    variable of another computation. Follows `tvm.te.compute`.
    """
    extents = to_shape(name, shape)
    tag = current_tag(tag)
    axes = tuple(
        IterVar(axis, constant(0), extent, "spatial")
        for axis, extent in zip(_axis_names(fcompute, len(extents), name), extents, strict=True)
    )
    result: Operand | tuple[Operand, ...] | list[Operand] = fcompute(*axes)
    results = result if isinstance(result, tuple | list) else (result,)
    if not results:
        raise TypeError(f'te: the function of "{name}" returned no expression')
    bodies = tuple(_body(name, body) for body in results)
    own = set(axes)
    for variable in free_variables(bodies):
        if variable not in own:
            hint = "is used outside its reduction" if variable.kind == "reduce" else "belongs to another computation"
            raise ValueError(f'te: "{name}" uses "{variable.name}", which {hint}')
    holding: set[Expr] = set()
    for expr in post_order(bodies):
        if isinstance(expr, Reduce) or not holding.isdisjoint(expr.operands):
            holding.add(expr)
        if isinstance(expr, nodes.Conditional) and not holding.isdisjoint(expr.operands[1:]):
            raise ValueError(
                f'te: "{name}" has a reduction in a branch of if_then_else, where it cannot be computed beforehand; '
                "put the condition into the reduction (where=) or use te.select"
            )
    tensors = _define(name, axes, bodies, annotations_of(name, attrs), tag)
    return tensors if isinstance(result, tuple | list) else tensors[0]


def _body(name: str, value: Operand | None) -> Expr:
    if value is None:
        raise TypeError(f'te: the function of "{name}" returned None, expected an expression or a number')
    if (dtype := number_dtype(value)) is not None:
        return adopt(cast_to("Scalar", value), dtype)
    expr = as_expr(f'compute "{name}"', value)
    return cast(expr, "i64") if is_index(expr.dtype) else expr


def _define(
    name: str, axes: tuple[IterVar, ...], bodies: tuple[Expr, ...], annotations: Mapping[str, Attribute], tag: str = ""
) -> tuple[Tensor, ...]:
    """The tensors that `bodies` define; reductions inside larger expressions become tensors of their own."""
    first = bodies[0]
    if isinstance(first, Reduce) and all(_same_reduction(first, body) for body in bodies):
        operands = _lift(name, first.operands)
        count = len(first.sources)
        every = tuple(nodes.reduce(first.reducer, operands, first.axes, at, first.given) for at in range(count))
        outputs = Compute(name, axes, every, annotations, tag).outputs
        return tuple(outputs[body.which] for body in bodies if isinstance(body, Reduce))
    return Compute(name, axes, _lift(name, bodies), annotations, tag).outputs


def _same_reduction(a: Reduce, b: Expr) -> bool:
    return isinstance(b, Reduce) and nodes.reduce(a.reducer, a.operands, a.axes, b.which, a.given) is b


def _lift(name: str, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """`exprs` with every reduction replaced by a load from a tensor of its own."""
    replacements: dict[Expr, Expr] = {}
    for expr in post_order(exprs):
        if isinstance(expr, Reduce):
            (inner,) = substitute((expr,), replacements)
            replacements[expr] = _stage(f"{name}_{expr.reducer.name}", inner)
    return substitute(exprs, replacements) if replacements else exprs


def _stage(name: str, reduction: Expr) -> Expr:
    free = free_variables((reduction,))
    for variable in free:
        if variable.length is None:
            raise ValueError(
                f'te: "{name}" cannot be computed for all values of "{variable.name}", whose bounds vary; '
                "make a tensor of it, by a compute of its own"
            )
    axes = tuple(IterVar(variable.name, constant(0), variable.extent, "spatial") for variable in free)
    local: dict[Expr, Expr] = {variable: axis + variable.lo for variable, axis in zip(free, axes, strict=True)}
    (tensor,) = _define(name, axes, substitute((reduction,), local), {})
    return tensor[tuple(variable - variable.lo for variable in free)]


def _axis_names(f: Callable[..., Any], rank: int, name: str) -> list[str]:
    if not callable(cast_to("object", f)):
        raise TypeError(f'te: "{name}" expected a function of its indices, got {f!r}')
    parameters = inspect.signature(f).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [f"i{axis}" for axis in range(rank)]
    names = [p.name for p in parameters if p.default is p.empty]
    if len(names) != rank:
        raise TypeError(f'te: "{name}" has rank {rank}, but its function takes {len(names)} variables')
    return names


@dataclass(frozen=True, eq=False)
class Step(Nest):
    """A nest that computes slices of tensors, from index `first` on; its first axis starts at 0."""

    first: Dim = field(default_factory=lambda: constant(0))

    @property
    def element(self) -> tuple[Expr, ...]:
        """The indices of the output element that an iteration computes."""
        count, *others = self.axes
        return (count + self.first if self.first.terms else count, *others)


@dataclass(frozen=True, eq=False)
class Scan(Operation):
    """Tensors whose first slices are computed by `starts`, and each further one by an execution of all `steps`."""

    length: Dim
    """The number of steps."""
    locals: tuple[Tensor, ...] = field(init=False)
    """Intermediate tensors, computed by one step nest for another."""
    starts: tuple[Step, ...] = field(init=False)
    steps: tuple[Step, ...] = field(init=False)
