"""What a legalisation sees of an op, its operands and properties, how it hands over the op's results, and the tables of
legalisations, which the files of the families fill when an op of theirs is looked up; and axes and indices: counted
from the front, taken apart and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from relax_dialect.function_symbols import KernelDims
from relax_dialect.index import OPERATORS
from relax_dialect.loading import FamilyRules
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.callees import explicit_symbols
from relax_dialect.ops.values import PrimOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.symbols import fresh_name, substitute
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum, minimum, symbol
from tir_dialect.dtypes import is_bool, is_unsigned
from tir_dialect.extensions import note_extension
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te.nodes import IterKind
from tir_dialect.types import DimAttr


def is_runtime_prim(value: SSAValue) -> bool:
    """Whether a value is a prim value that is only known at run time: no constant, and no dimension."""
    info = value.type
    return isinstance(info, PrimType) and info.value is None and literal(value) is None


def literal(value: SSAValue) -> float | bool | None:
    """The number that a prim value is, if the program says so; dimensions are not looked at."""
    prim = value.owner
    if not isinstance(prim, PrimOp) or isinstance(prim.value, DimAttr):
        return None
    number = prim.value.value.data
    return bool(number) if is_bool(prim.value.type) else number


def dims_of(op: Operation) -> Iterator[Dim]:
    """The dimensions among the prim operands and the properties of an op."""
    for value in op.operands:
        if isinstance(value.type, PrimType) and value.type.value is not None:
            yield value.type.value
    for _, attribute in sorted(op.properties.items(), key=lambda item: item[0]):
        yield from dims_in(attribute)


def dims_in(attribute: Attribute) -> Iterator[Dim]:
    """The dimensions that a property is, alone or in a list."""
    elements = cast("ArrayAttr[Attribute]", attribute).data if isinstance(attribute, ArrayAttr) else (attribute,)
    for element in elements:
        if isinstance(element, DimAttr):
            yield element.data


@dataclass(frozen=True)
class Made:
    """A kernel that has been made."""

    func: PrimFuncOp
    symbols: tuple[str, ...]
    """Its symbols in the order of `Kernel.symbols`."""
    outputs: tuple[TensorType, ...]
    """What it computes, in its own symbols."""
    explicit: tuple[str, ...]
    """The symbols whose values a call gives."""


class Kernel:
    """The op that is legalised, with its operands as parameters of a kernel."""

    def __init__(self, op: Operation, results: Sequence[SSAValue], kept: Sequence[SSAValue] = ()):
        """`results` are those of the op that the kernel computes, `kept` further tensors that it reads.

        Fails at the op if a shape or dtype is not known.
        """
        self._op = op
        self._kept = tuple(kept)
        operands = dict.fromkeys((*op.operands, *kept))
        self._parameters = [value for value in operands if isinstance(value.type, TensorType) or is_runtime_prim(value)]
        self._results = [value for value in results if isinstance(value.type, TensorType)]
        buffers = [value for value in (*self._parameters, *self._results) if isinstance(value.type, TensorType)]
        self._shapes = {value: self._known(value) for value in buffers}
        self._others = tuple(dims_of(op))
        self._dims = KernelDims.of(self._shapes.values(), self._others)
        self._placeholders: dict[SSAValue, te.Tensor] = {}
        self._scalars: dict[SSAValue, te.Expr] = {}

    def tensor(self, value: SSAValue, shape: Sequence[Dim] | None = None) -> te.Tensor:
        """The placeholder of a tensor operand; of this `shape`, if guards have checked that its own is the same."""
        found = self._placeholders.get(value)
        if found is None:
            found = te.placeholder(shape or self.shape(value), str(self.dtype(value)), self._name(value))
            self._placeholders[value] = found
        return found

    def scalar(self, value: SSAValue) -> te.Expr:
        """A prim operand: a constant or dimension if it is one, else a parameter."""
        info = value.type
        if not isinstance(info, PrimType):
            fail(self._op, f"expected a prim value, got {info}")
        dtype = str(info.dtype)
        if info.value is not None:
            return te.cast(te.cast(info.value, "index"), dtype)
        number = literal(value)
        if number is not None:
            return te.const(number, dtype)
        if value not in self._scalars:
            self._scalars[value] = te.scalar(self._name(value), dtype)
        return self._scalars[value]

    def kept(self, index: int) -> te.Tensor:
        """A tensor that the kernel of the sizes has kept."""
        return self.tensor(self._kept[index])

    def shape(self, value: SSAValue) -> tuple[Dim, ...]:
        """The shape of a tensor operand or result in the kernel's symbols."""
        return self._dims.shape(self._shapes[value])

    def dtype(self, value: SSAValue) -> Attribute:
        """The element type of a tensor operand or result."""
        info = value.type
        if not isinstance(info, TensorType) or info.dtype is None:
            fail(self._op, f"expected a tensor of known dtype, got {info}")
        return info.dtype

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that the kernel may use; equal kernels have them in the same order."""
        return self._dims.symbols(self._shapes.values(), self._others)

    @property
    def key(self) -> Hashable:
        """Equal for ops that have the same kernel."""
        numbers = {name: symbol(f"k{index}") for index, name in enumerate(self.symbols)}
        shapes = [self.shape(value) for value in self._shapes]
        dims = tuple(tuple(str(dim.substitute(numbers)) for dim in shape) for shape in (*shapes, self._others))
        dtypes = tuple(self.dtype(value) for value in self._shapes)
        positions = tuple(self._identity(value) for value in (*self._op.operands, *self._kept))
        properties = sorted(self._op.properties.items(), key=lambda item: item[0])
        fixed = tuple((name, value) for name, value in properties if not any(dims_in(value)))
        return (type(self._op), len(self._results), fixed, positions, dtypes, dims)

    def build(self, outputs: te.Tensor | Sequence[te.Tensor], name: str) -> Made:
        """The PrimFunc over all operands and the outputs."""
        tensors = [outputs] if isinstance(outputs, te.Tensor) else list(outputs)
        parameters = [
            self.tensor(value) if isinstance(value.type, TensorType) else self.scalar(value)
            for value in self._parameters
        ]
        func = te.create_prim_func([*parameters, *tensors], name=name)
        inherit_location(self._op, func)
        made = tuple(TensorType(tensor.shape, tensor.dtype) for tensor in tensors)
        return Made(func, self.symbols, made, explicit_symbols(func))

    def call(self, made: Made) -> CallTIROp:
        """The call of a kernel that was made for this op, or one that is equal to it."""
        own = dict(zip(made.symbols, self.symbols, strict=True))
        tir_vars = [symbol(own[name]) for name in made.explicit]
        outer = {name: self._dims.original(symbol(mine)) for name, mine in own.items()}
        results = [value.type for value in self._results if isinstance(value.type, TensorType)]
        results = results or [substitute(output, outer) for output in made.outputs]
        call = CallTIROp(SymbolRefAttr(made.func.sym_name.data), self._parameters, results, tir_vars=tir_vars)
        inherit_location(self._op, call)
        return call

    def _known(self, value: SSAValue) -> tuple[Dim, ...]:
        info = value.type
        if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
            fail(
                self._op,
                f"expected known dtypes and dimensions to make a kernel, got {info}",
                "run 'bind-unknown-dims' first, or refine the value with 'relax.match_cast'",
            )
        return info.known_dims

    def _name(self, value: SSAValue) -> str:
        return value.name_hint or f"X{self._parameters.index(value)}"

    def _identity(self, value: SSAValue) -> Hashable:
        """Which parameter an operand is, or which constant."""
        index = self._parameters.index(value) if value in self._parameters else None
        return (index, value.type.dtype, repr(literal(value))) if isinstance(value.type, PrimType) else index


@dataclass
class Kernels:
    """The PrimFuncs of a module that legalisation has made; equal kernels are made once."""

    module: ModuleOp
    _made: dict[Hashable, Made] = field(default_factory=dict[Hashable, Made])
    _names: set[str] = field(default_factory=set[str])
    _last: PrimFuncOp | None = None

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)

    def call(self, kernel: Kernel, outputs: Callable[[], te.Tensor | Sequence[te.Tensor]], name: str) -> CallTIROp:
        """The call of the PrimFunc that computes `outputs`; they are asked for if there is no equal kernel yet."""
        found = self._made.get(kernel.key)
        if found is None:
            unique = fresh_name(name, self._names)
            self._names.add(unique)
            found = self._made[kernel.key] = kernel.build(outputs(), unique)
            block = self.module.body.block
            insert_point = InsertPoint.at_start(block) if self._last is None else InsertPoint.after(self._last)
            Rewriter.insert_op(found.func, insert_point)
            self._last = found.func
        return kernel.call(found)


OpT = TypeVar("OpT", bound=Operation)
Rule: TypeAlias = "Callable[[Kernel, OpT], te.Tensor | Sequence[te.Tensor]]"
Rewrite: TypeAlias = "Callable[[OpT, PatternRewriter], Sequence[SSAValue] | None]"

_PACKAGE = "lowering.relax_to_tir"
_FILES = {
    "collective": "distributed",
    "convolution": "pooling",
    "elementwise": "unary binary",
    "indexing": "gather",
    "creation": "datatype",
    "linear_algebra": "normalization activation",
    "manipulation": "joining rearranging",
}

KERNELS: FamilyRules[Rule[Operation]] = FamilyRules(_PACKAGE, OPERATORS, _FILES)
"""Ops that become one kernel."""

SIZES: FamilyRules[Rule[Operation]] = FamilyRules(_PACKAGE, OPERATORS, _FILES)
"""Ops with results whose sizes are data: the kernels that find them out."""

REWRITES: FamilyRules[Rewrite[Operation]] = FamilyRules(_PACKAGE, OPERATORS, _FILES)
"""Ops that become other ops, or stay what they are."""


def legalizes(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the tensor expression of ops: one tensor for each result."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        note_extension(rule.__module__)
        KERNELS.update(dict.fromkeys(op_types, cast("Rule[Operation]", rule)))
        return rule

    return register


def sizes(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers a tensor expression that is evaluated before that of the op, if dimensions of its results are unknown.

    The first tensor, of rank 1 and `i64`, has these dimensions in order, or one that stands for all of them. What
    follows is kept for the kernel of the op: `Kernel.kept`.
    """

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        note_extension(rule.__module__)
        SIZES.update(dict.fromkeys(op_types, cast("Rule[Operation]", rule)))
        return rule

    return register


def rewrites(*op_types: type[OpT]) -> Callable[[Rewrite[OpT]], Rewrite[OpT]]:
    """Registers how ops become others: it inserts them by the rewriter and returns the values that replace the
    results, or `None` if it leaves the op.
    """

    def register(rule: Rewrite[OpT]) -> Rewrite[OpT]:
        note_extension(rule.__module__)
        REWRITES.update(dict.fromkeys(op_types, cast("Rewrite[Operation]", rule)))
        return rule

    return register


def broadcast_load(tensor: te.Tensor, shape: Sequence[Dim], index: Sequence[te.Expr]) -> te.Expr:
    """The element of `tensor` that is at `index` of the broadcast `shape`."""
    return tensor[broadcast_index(tensor.shape, shape, index)]


def broadcast_index(own: Sequence[Dim], shape: Sequence[Dim], index: Sequence[te.Expr]) -> tuple[te.Expr | int, ...]:
    """The index into a tensor of shape `own` for an index into the `shape` that it is broadcast to."""
    offset = len(shape) - len(own)
    return tuple(_along(*axis) for axis in zip(own, shape[offset:], index[offset:], strict=True))


def _along(own: Dim, full: Dim, index: te.Expr) -> te.Expr | int:
    if own is full:
        return index
    if own.constant_value == 1:
        return 0
    # Only known at run time: either both extents are the same, or this one is 1 and the only index is 0.
    return index * whether_equal(own, full)


def whether_equal(own: Dim, full: Dim) -> Dim:
    """1 if an extent is the one that it is broadcast to, 0 if it is less."""
    return minimum(maximum(own - full + 1, 0), 1)


T = TypeVar("T")


def axis_of(value: IntegerAttr, rank: int) -> int:
    """An axis counted from the front."""
    return value.value.data % rank


def axes_of(values: DenseArrayBase[IntegerType] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them if there is no list."""
    return tuple(range(rank)) if values is None else tuple(value % rank for value in values.get_values())


def without(items: Sequence[T], *axes: int) -> tuple[T, ...]:
    """What is left of a shape or an index without some axes."""
    return tuple(item for axis, item in enumerate(items) if axis not in axes)


def put(items: Sequence[T], axes: Sequence[int], inner: Sequence[T]) -> tuple[T, ...]:
    """`items` with those of `inner` at the positions `axes`: the inverse of `without`."""
    rest, inserted = iter(items), dict(zip(axes, inner, strict=True))
    return tuple(inserted[axis] if axis in inserted else next(rest) for axis in range(len(items) + len(inner)))


def axes(shape: Sequence[Dim], ordered: Sequence[int] = ()) -> list[tuple[IterKind, Dim, str]]:
    """The axes of a block over all of `shape`, independent of each other but for those that are `ordered`."""
    return [("scan" if axis in ordered else "spatial", extent, f"i{axis}") for axis, extent in enumerate(shape)]


def unravel(flat: te.Expr, shape: Sequence[Dim]) -> tuple[te.Expr, ...]:
    """The index of the element at a position in row-major order."""
    index: list[te.Expr] = []
    for extent in reversed(shape[1:]):
        index.append(te.floormod(flat, extent))
        flat = te.floordiv(flat, extent)
    return tuple(reversed([*index, flat])) if shape else ()


def ravel(index: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    """The index of an element in row-major order."""
    flat = te.cast(constant(0), "index")
    for extent, each in zip(shape, index, strict=True):
        flat = flat * extent + each
    return flat


def as_position(index: te.Expr) -> te.Expr:
    """An index that is data as one of a tensor; what is too large for one is the most that there is."""
    return te.cast(te.minimum(index, 2**63 - 1) if str(index.dtype) == "ui64" else index, "index")


def from_front(index: te.Expr, extent: Dim) -> te.Expr:
    """An index that is data, as a position: a negative one counts from the back."""
    position = as_position(index)
    if isinstance(index.dtype, IndexType) or is_unsigned(index.dtype):
        return position
    return te.select(position < 0, position + extent, position)


def clamped(position: te.Expr, extent: Dim) -> te.Expr:
    """The nearest position within an extent that is not 0."""
    return te.maximum(te.minimum(position, extent - 1), 0)
