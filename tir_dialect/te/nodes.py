"""The kinds of expressions, the functions that make them (equal parts give the same object), and walks over them, which
visit each node of a graph once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from tir_dialect.dims import Dim
from tir_dialect.dtypes import ElementType
from tir_dialect.ops.assembly_format import Note
from tir_dialect.te.expr import INDEX, OPERATORS, DType, Expr, Operand, Scalar

IterKind: TypeAlias = 'Literal["spatial", "reduce", "scan", "opaque"]'


class Var(Expr):
    """A named leaf; this class itself is a value bound by a statement of an extern."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: DType):
        super().__init__(dtype)
        self.name = name


class Param(Var):
    """A scalar parameter of the function."""

    __slots__ = ()


class IterVar(Var):
    """An iteration variable: the `index` values `lo <= v < lo + extent`.

    The bounds of a reduction variable may depend on other variables and on tensor elements.
    """

    __slots__ = ("extent", "kind", "lo")

    def __init__(self, name: str, lo: Expr | Dim, extent: Expr | Dim, kind: IterKind):
        super().__init__(name, INDEX)
        self.lo = size(lo) if isinstance(lo, Dim) else lo
        self.extent = size(extent) if isinstance(extent, Dim) else extent
        self.kind: IterKind = kind

    @property
    def length(self) -> Dim | None:
        """The extent as a dimension; `None` if it depends on other variables or on tensor elements."""
        return self.extent.dim if isinstance(self.extent, Size) else None


class Const(Expr):
    """A number of a float, integer or bool dtype."""

    __slots__ = ("value",)

    def __init__(self, value: Scalar, dtype: DType):
        super().__init__(dtype)
        self.value = value


class Size(Expr):
    """A dimension as an `index` value; index constants are of this kind too."""

    __slots__ = ("dim",)

    def __init__(self, dim: Dim):
        super().__init__(INDEX)
        self.dim = dim


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
        inputs: tuple[Tensor, ...] = OPERATORS["inputs"](self)
        return inputs

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
        source: Operation | None = None,
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
        element: Expr = OPERATORS["element"](self, indices)
        return element

    @property
    def op(self) -> Operation:
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


class Load(Expr):
    """The element of `tensor` at the `index` operands."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]):
        super().__init__(tensor.dtype, indices)
        self.tensor = tensor


class Slice(Expr):
    """A partially indexed tensor, such as `A[0]` in `A[0][i]`; it has no value."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Operand, ...]):
        super().__init__(tensor.dtype)
        self.tensor = tensor
        self.indices = indices

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]


class Apply(Expr):
    """A scalar function of the operands, by its name in `te.emit`."""

    __slots__ = ("function",)

    def __init__(self, function: str, dtype: DType, operands: tuple[Expr, ...]):
        super().__init__(dtype, operands)
        self.function = function


class CallExtern(Expr):
    """The value of a pure external C function of scalars."""

    __slots__ = ("symbol",)

    def __init__(self, symbol: str, dtype: DType, operands: tuple[Expr, ...]):
        super().__init__(dtype, operands)
        self.symbol = symbol


class Cast(Expr):
    """The operand converted to another dtype."""

    __slots__ = ()


class Conditional(Expr):
    """`operands[1]` where `operands[0]` holds, else `operands[2]`; only the chosen side is evaluated."""

    __slots__ = ()


class Combiner(Protocol):
    """What a reduction computes with: `reducer.Reducer`."""

    @property
    def name(self) -> str:
        """Part of the text of a reduction, and of generated names."""
        ...

    def identities(self, dtypes: Sequence[DType]) -> tuple[Expr, ...]:
        """The start values."""
        ...

    def combined(self, accumulators: tuple[Expr, ...], values: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The new accumulators."""
        ...


class Reduce(Expr):
    """Result number `which` of the reduction of the sources with `reducer` over `axes`.

    The operands are the sources, the initial values if they are `given`, then the lower bound and the extent of each
    axis, so that a substitution in the expression reaches the bounds, too, and the variables stay the same.
    """

    __slots__ = ("axes", "given", "reducer", "which")

    def __init__(
        self, reducer: Combiner, operands: tuple[Expr, ...], axes: tuple[IterVar, ...], which: int, given: bool
    ):
        super().__init__(operands[which].dtype, operands)
        self.reducer = reducer
        self.axes = axes
        self.which = which
        self.given = given

    @property
    def sources(self) -> tuple[Expr, ...]:
        """The expressions that are reduced."""
        values = len(self.operands) - 2 * len(self.axes)
        return self.operands[: values // 2 if self.given else values]

    @property
    def starts(self) -> tuple[Expr, ...]:
        """The initial values: those given, or the identities of the reducer."""
        count = len(self.sources)
        if self.given:
            return self.operands[count : 2 * count]
        return self.reducer.identities([source.dtype for source in self.sources])

    @property
    def domains(self) -> tuple[tuple[Expr, Expr], ...]:
        """The lower bound and the extent of each axis."""
        bounds = self.operands[len(self.operands) - 2 * len(self.axes) :]
        return tuple(zip(bounds[::2], bounds[1::2], strict=True))


_nodes: WeakValueDictionary[tuple[Hashable, ...], Expr] = WeakValueDictionary()
_N = TypeVar("_N", bound=Expr)


def _shared(make: Callable[[], _N], cls: type[_N], *parts: Hashable) -> _N:
    # Parts that are expressions are named by `id`: a node keeps its operands alive, so an entry never outlives them,
    # and comparing keys never asks two expressions whether they are equal.
    key = (cls, *parts)
    found = _nodes.get(key)
    if isinstance(found, cls):
        return found
    made = make()
    _nodes[key] = made
    return made


def _ids(exprs: Iterable[Expr]) -> tuple[int, ...]:
    return tuple(id(expr) for expr in exprs)


def constant(value: Scalar, dtype: DType) -> Const:
    """The number `value`, which must fit `dtype`."""
    # `repr` tells -0.0 from 0.0 and finds NaN equal to itself
    return _shared(lambda: Const(value, dtype), Const, repr(value), dtype)


def size(dim: Dim) -> Size:
    """`dim` as an index value."""
    return _shared(lambda: Size(dim), Size, dim)


def load(tensor: Tensor, indices: tuple[Expr, ...]) -> Load:
    """The element of `tensor` at `indices`."""
    return _shared(lambda: Load(tensor, indices), Load, id(tensor), *_ids(indices))


def apply(function: str, dtype: DType, *operands: Expr) -> Apply:
    """The scalar function named `function`, of result `dtype`."""
    return _shared(lambda: Apply(function, dtype, operands), Apply, function, dtype, *_ids(operands))


def convert(operand: Expr, dtype: DType) -> Cast:
    """`operand` converted to `dtype`."""
    return _shared(lambda: Cast(dtype, (operand,)), Cast, dtype, id(operand))


def conditional(condition: Expr, then: Expr, otherwise: Expr) -> Conditional:
    """The lazy choice between two expressions of one dtype."""
    operands = (condition, then, otherwise)
    return _shared(lambda: Conditional(then.dtype, operands), Conditional, *_ids(operands))


def reduce(
    reducer: Combiner, operands: tuple[Expr, ...], axes: tuple[IterVar, ...], which: int, given: bool = False
) -> Reduce:
    """Result `which` of the reduction; the operands are those of `Reduce`."""
    key = (reducer, which, given, len(axes), *_ids(axes), *_ids(operands))
    return _shared(lambda: Reduce(reducer, operands, axes, which, given), Reduce, *key)


def call_extern(symbol: str, dtype: DType, operands: tuple[Expr, ...]) -> CallExtern:
    """The value of the external function `symbol`."""
    return _shared(lambda: CallExtern(symbol, dtype, operands), CallExtern, symbol, dtype, *_ids(operands))


def size_of(value: Operand) -> Operand:
    """The dimension or number that an expression of `te` stands for; other expressions as they are."""
    if isinstance(value, Size):
        return value.dim
    return value.value if isinstance(value, Const) else value


def post_order(
    roots: Iterable[Expr], children: Callable[[Expr], tuple[Expr, ...]] = lambda expr: expr.operands
) -> Iterator[Expr]:
    """Every expression under `roots`, operands first; `children` may stop the walk at a node. No recursion."""
    done: set[Expr] = set()
    stack = [(root, False) for root in reversed(tuple(roots))]
    while stack:
        expr, expanded = stack.pop()
        if expr in done:
            continue
        below = () if expanded else children(expr)
        if not below:
            done.add(expr)
            yield expr
            continue
        stack.append((expr, True))
        stack.extend((child, False) for child in reversed(below))


def rebuild(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """`expr` with other operands of the same dtypes."""
    if all(a is b for a, b in zip(operands, expr.operands, strict=True)):
        return expr
    match expr:
        case Load():
            return load(expr.tensor, operands)
        case Apply():
            return apply(expr.function, expr.dtype, *operands)
        case CallExtern():
            return call_extern(expr.symbol, expr.dtype, operands)
        case Cast():
            return convert(operands[0], expr.dtype)
        case Conditional():
            return conditional(*operands)
        case Reduce():
            return reduce(expr.reducer, operands, expr.axes, expr.which, expr.given)
        case _:
            raise TypeError(f"te: a {type(expr).__name__} has no operands")


def substitute(roots: Iterable[Expr], replacements: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The expressions `roots` with every occurrence of a key replaced; a key that is replaced is not looked into."""
    roots = tuple(roots)
    done: dict[Expr, Expr] = {}
    for expr in post_order(roots, lambda node: () if node in replacements else node.operands):
        replacement = replacements.get(expr)
        if replacement is None:
            replacement = rebuild(expr, tuple(done[operand] for operand in expr.operands))
        done[expr] = replacement
    return tuple(done[root] for root in roots)


def free_variables(roots: Iterable[Expr]) -> list[IterVar]:
    """The iteration variables that `roots` use and no reduction inside binds, in order of first use."""
    found: dict[IterVar, None] = {}
    _collect(roots, frozenset(), found)
    return list(found)


def _collect(roots: Iterable[Expr], bound: frozenset[IterVar], found: dict[IterVar, None]) -> None:
    for expr in post_order(roots, lambda node: () if isinstance(node, Reduce) else node.operands):
        if isinstance(expr, Reduce):
            _collect(expr.operands, bound | frozenset(expr.axes), found)
        elif isinstance(expr, IterVar) and expr not in bound:
            found.setdefault(expr)
