"""Open blocks: ops are appended to the innermost one, which knows the symbols and values that are visible; types as
callers of the builder write them; and what they hand over for values: numbers, arrays, shapes, ops.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp, PrimOp, number_attr
from relax_dialect.scope import symbols_used, symbols_witnessed
from relax_dialect.struct_info.symbols import fresh_name, iter_symbols
from relax_dialect.struct_info.types import PrimType, Shape, ShapeLike, ShapeType, StructInfo, TensorType
from tir_dialect.dims import Dim, DimLike
from tir_dialect.dtypes import ElementType, dtype_name, from_numpy, is_bool, lookup, numpy_dtype, parse_dtype
from tir_dialect.types import Interval, SymbolAttr
from tir_dialect.weights import TensorAttr, converted, tensor_attr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.generic]


class BuilderError(ValueError):
    """A call of the builder in the wrong position: outside of a function, out of scope, without an end."""


DTypeLike: TypeAlias = "str | Attribute | np.dtype[Any] | type"
"""An element type, its name, `"f32"` or `"float32"`, or what NumPy takes for it, `np.float32`."""

InfoLike: TypeAlias = StructInfo | tuple[DimLike | None, ...]
"""A relax type, or a tuple of dimensions, which stands for a tensor of f32: `("n", 4)`."""

SymbolBounds: TypeAlias = Mapping[str, Interval]
"""Least and greatest value of symbols, both inclusive; `None` is unbounded."""


def as_dtype(dtype: DTypeLike) -> Attribute:
    """The element type; `ValueError` for a name that is none, `TypeError` for what is no dtype to NumPy."""
    if isinstance(dtype, Attribute):
        return dtype
    if isinstance(dtype, str):
        return parse_dtype(dtype)
    import numpy as np

    return from_numpy(np.dtype(dtype))


def tensor(shape: ShapeLike = None, dtype: DTypeLike | None = "f32", device: str | None = None) -> TensorType:
    """The type of a tensor: `tensor(("n", 4), "f16")`; `None` is what is not known, of a shape or a dimension."""
    return TensorType(_sizes(shape), None if dtype is None else as_dtype(dtype), device)


def _sizes(shape: ShapeLike) -> ShapeLike:
    """The shape; `TypeError` or `ValueError` for a number that is no size."""
    for size in () if shape is None or isinstance(shape, str) else shape:
        if isinstance(size, float):
            raise TypeError(f"expected sizes that are integers, symbols, or None where not known, got {size}")
        if isinstance(size, int) and size < 0:
            raise ValueError(f"expected sizes of at least 0, or None where not known, got {size}")
    return shape


def as_struct_info(info: InfoLike) -> StructInfo:
    """The relax type that `info` stands for."""
    return info if isinstance(info, StructInfo) else TensorType(_sizes(info), f32)


def as_result_types(info: InfoLike | list[InfoLike]) -> tuple[list[StructInfo], bool]:
    """The types of one result or, for a list, of several; and whether it was a list."""
    if isinstance(info, list):
        return [as_struct_info(each) for each in info], True
    return [as_struct_info(info)], False


def new_symbols(
    types: Iterable[StructInfo], scope: Iterable[str], bounds: SymbolBounds | None = None
) -> tuple[SymbolAttr, ...]:
    """The symbols of the types that are not in scope, in order of occurrence, with their bounds."""
    known = set(scope)
    names = dict.fromkeys(name for info in types for name in iter_symbols(info) if name not in known)
    return tuple(SymbolAttr(name, *(bounds or {}).get(name, (0, None))) for name in names)


_BUILDER = __name__.rpartition(".")[0]
_TRANSPARENT = (_BUILDER, "contextlib")
"""Modules whose frames are not the caller's."""


def caller_location() -> LocationAttr:
    """The line of Python outside of the builder that is being executed; the column is not known and given as 1."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_TRANSPARENT):
        frame = frame.f_back
    if frame is None:
        return UNKNOWN_LOC
    return FileLineColLoc(StringAttr(frame.f_code.co_filename), IntAttr(frame.f_lineno), IntAttr(1))


def named(name: str) -> NameLoc:
    """The location of an imported node: its name."""
    return NameLoc(StringAttr(name), NoneAttr())


OpT = TypeVar("OpT", bound=Operation)

_active: ContextVar[tuple[Emitter, ...]] = ContextVar("active", default=())
"""The builders with open functions, the innermost last."""


@dataclass
class Frame:
    """A block that is being filled."""

    block: Block
    what: str
    """What the block belongs to, for messages: `function main`."""

    prefix: str = "gv"
    """The name of values that are given none."""

    isolated: bool = False
    """Whether nothing around the block is visible in it."""

    symbols: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """The symbols that are witnessed in the block, and their witnesses."""

    taken: set[str] = field(default_factory=set[str])
    """All symbols that were ever bound in the function; shared by the frames of a function."""


class Emitter:
    """A stack of open blocks; ops go to the end of the innermost."""

    def __init__(self, *, locations: bool = False):
        self._frames: list[Frame] = []
        self._track = locations
        self._location: LocationAttr | None = None

    # The current builder

    @staticmethod
    def current() -> Emitter:
        """The builder whose function is open, the innermost; `BuilderError` if there is none."""
        active = _active.get()
        if not active:
            raise BuilderError("no function is open: emit inside `with bb.function(...)`")
        return active[-1]

    @contextmanager
    def as_current(self) -> Generator[None]:
        """Makes this the current builder of the thread or task for a while."""
        token = _active.set((*_active.get(), self))
        try:
            yield
        finally:
            _active.reset(token)

    # Frames

    @property
    def frame(self) -> Frame:
        """The innermost open block; `BuilderError` outside of functions."""
        if not self._frames:
            raise BuilderError("no function is open: emit inside `with bb.function(...)`")
        return self._frames[-1]

    @contextmanager
    def open_frame(self, frame: Frame) -> Generator[Frame]:
        """Makes `frame` the innermost one for a while."""
        if self._frames and not frame.isolated:
            frame.taken = self._frames[-1].taken
        frame.taken.update(frame.symbols)
        self._frames.append(frame)
        try:
            yield frame
        finally:
            self._frames.remove(frame)

    def _visible_frames(self) -> Iterator[Frame]:
        for frame in reversed(self._frames):
            yield frame
            if frame.isolated:
                return

    # Symbols

    @property
    def symbols(self) -> Mapping[str, SSAValue]:
        """The symbols that may be used here, and their witnesses."""
        found: dict[str, SSAValue] = {}
        for frame in self._visible_frames():
            found = frame.symbols | found
        return found

    def is_bound(self, symbol: str) -> bool:
        """Whether a symbol may be used here."""
        return any(symbol in frame.symbols for frame in self._visible_frames())

    def fresh_symbol(self, base: str = "s") -> str:
        """A symbol that the function does not use yet: `s`, `s_1`, ..."""
        return fresh_name(base, self.frame.taken)

    def bind(self, symbols: Mapping[str, SSAValue]) -> None:
        """Makes symbols visible until the innermost block ends; `BuilderError` if one is visible already."""
        for name in symbols:
            if self.is_bound(name):
                raise BuilderError(f"the symbol {name} is bound already in {self.frame.what}; choose another name")
        self.frame.symbols.update(symbols)
        self.frame.taken.update(symbols)

    # Locations

    @contextmanager
    def at(self, location: LocationAttr | str) -> Generator[None]:
        """Gives the ops emitted inside a location; text is the name of an imported node."""
        outer = self._location
        self._location = named(location) if isinstance(location, str) else location
        try:
            yield
        finally:
            self._location = outer

    def locate(self, op: Operation) -> None:
        """Gives an op the location of `at`, else the caller's if those are wanted."""
        if self._location is not None:
            op.location = self._location
        elif self._track:
            op.location = caller_location()

    # Ops

    def insert(self, op: OpT) -> OpT:
        """Appends an op; `BuilderError` if it uses what is not visible here, or the block has ended."""
        self.require_open()
        if op.parent is not None:
            raise BuilderError(f"'{op.name}' op is in a block already")
        for index, operand in enumerate(op.operands):
            if not self.is_visible(operand):
                around = operand.owner.parent_op() if isinstance(operand.owner, Operation) else None
                reason = "it belongs to another function or to a region that has ended"
                if around is not None and around.name == "relax.dataflow":
                    reason = "it is local to a dataflow region; `bb.emit_output(value)` in the region makes it visible"
                raise BuilderError(
                    f"'{op.name}' op operand #{index} ({_name(operand)}) is not visible in {self.frame.what}: {reason}"
                )
        for name in sorted(symbols_used(op)):
            if not self.is_bound(name):
                raise BuilderError(
                    f"'{op.name}' op uses the symbol {name}, which is not bound in {self.frame.what}: "
                    "bind it by a parameter or by match_cast"
                )
        self.locate(op)
        self.frame.block.add_op(op)
        self.bind(symbols_witnessed(op))
        for result in op.results:
            result.name_hint = result.name_hint or self.frame.prefix
        return op

    def require_open(self) -> None:
        """`BuilderError` if the innermost block has its end already."""
        last = self.frame.block.last_op
        if last is not None and last.has_trait(IsTerminator):
            raise BuilderError(f"{self.frame.what} has ended with '{last.name}' already")

    def is_visible(self, value: SSAValue) -> bool:
        """Whether an op that is emitted now may use the value."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return home is not None and any(frame.block is home for frame in self._visible_frames())


def _name(value: SSAValue) -> str:
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"result of '{value.op.name}'" if isinstance(value, OpResult) else "an unnamed argument"


Number: TypeAlias = int | float | bool

Operand: TypeAlias = "TypedValue | SSAValue | Operation | Number | Array | Dim"
"""What Python's operators take. A number or an array becomes a constant of the other side's dtype; a dimension goes
with prim values.
"""


class TypedValue:
    """A value, the builder of its program, and what its type says. `Expr` adds Python's operators."""

    __slots__ = ("_builder", "_value")

    def __init__(self, builder: Emitter, value: SSAValue):
        self._builder = builder
        self._value = value

    @property
    def builder(self) -> Emitter:
        """The builder of the program that the value belongs to."""
        return self._builder

    @property
    def value(self) -> SSAValue:
        """The bare value."""
        return self._value

    # Types

    @property
    def type(self) -> StructInfo:
        """The relax type of the value."""
        info = self._value.type
        if not isinstance(info, StructInfo):
            raise BuilderError(f"expected a value of a relax type, got {info}")
        return info

    @property
    def shape(self) -> Shape:
        """What is known about the dimensions of a tensor or shape: `None` where unknown, or if the rank is."""
        info = self.type
        return info.dims if isinstance(info, TensorType | ShapeType) else self._refuse("a tensor or a shape")

    @property
    def ndim(self) -> int | None:
        """The rank of a tensor or the length of a shape, if it is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def dtype(self) -> Attribute | None:
        """The element type of a tensor, if it is known, or the dtype of a prim value."""
        info = self.type
        return info.dtype if isinstance(info, TensorType | PrimType) else self._refuse("a tensor or a prim value")

    @property
    def dim(self) -> Dim:
        """The value of a prim value as a dimension; `BuilderError` if its type does not say it."""
        info = self.type
        found = info.value if isinstance(info, PrimType) else None
        return self._refuse("a prim value that is known as a dimension") if found is None else found

    def _refuse(self, expected: str) -> Any:
        raise BuilderError(f"expected {expected}, got {self._value.type}")


Value: TypeAlias = TypedValue | SSAValue | Operation
"""A value, as an expression, bare, or as an op with one result, which is emitted if it is in no block yet."""


def as_value(builder: Emitter, value: Value) -> SSAValue:
    """A bare value; an op that is in no block yet is emitted. `BuilderError` for an op without exactly one result,
    `TypeError` for anything else.
    """
    if isinstance(value, TypedValue):
        return value.value
    if isinstance(value, SSAValue):
        return value
    if not isinstance(cast("object", value), Operation):
        raise TypeError(f"expected a value of the program, got {value!r}")
    op = builder.insert(value) if value.parent is None else value
    if len(op.results) != 1:
        raise BuilderError(f"'{op.name}' op expected one result to be used as a value, got {len(op.results)}")
    return op.results[0]


def as_tensor(builder: Emitter, operand: Operand, dtype: Attribute | None) -> SSAValue:
    """A value; numbers and arrays become constants, numbers of the given dtype."""
    if isinstance(operand, Dim):
        raise TypeError(f"expected a tensor, got the dimension {operand}: use op.prim and op.full to make one of it")
    if isinstance(operand, TypedValue | SSAValue | Operation):
        return as_value(builder, operand)
    if isinstance(operand, int | float):
        # The dtype of a number beside a tensor of `dtype`; `TypeError` where the number would change.
        number = operand
        if dtype is None:
            raise TypeError(f"the number {number} needs a dtype, as the other side's is not known: use bb.const")
        if isinstance(number, bool) != is_bool(dtype) or not _is_in(number, dtype):
            raise TypeError(f"the number {number} is no {dtype}; convert one side with astype")
        return constant(builder, operand, dtype).result
    return constant(builder, operand).result


def as_shape(builder: Emitter, shape: Value | Iterable[DimLike]) -> SSAValue:
    """A shape value, made of dimensions unless it is one."""
    if isinstance(shape, TypedValue | SSAValue | Operation):
        return as_value(builder, shape)
    return builder.insert(ShapeOp(list(shape))).result


def as_prim(builder: Emitter, value: Value | DimLike | float, dtype: Attribute | None = None) -> SSAValue:
    """A prim value; integers and dimensions are `i64` unless a dtype is given, other numbers `f32`."""
    if isinstance(value, TypedValue | SSAValue | Operation):
        return as_value(builder, value)
    return builder.insert(PrimOp(_scalar(value, dtype))).result


def _scalar(value: DimLike | float, dtype: Attribute | None) -> Dim | IntegerAttr | FloatAttr | int | str:
    if isinstance(value, Dim | str):
        return value
    kind = dtype or (i1 if isinstance(value, bool) else i64 if isinstance(value, int) else f32)
    try:
        return number_attr(value, kind)
    except ValueError as error:
        raise TypeError(str(error)) from error


def constant(builder: Emitter, data: Any, dtype: DTypeLike | None = None, name: str | None = None) -> ConstantOp:
    """Emits a constant tensor of a number, nested lists, or an array of any DLPack library."""
    return builder.insert(ConstantOp(elements(data, None if dtype is None else as_dtype(dtype), name)))


def elements(data: Any, dtype: Attribute | None = None, name: str | None = None) -> TensorAttr:
    """A constant tensor; without a dtype Python's floats are `f32`, and arrays keep theirs.

    Arrays with many elements are not copied: they must not be changed afterwards.
    """
    import numpy as np

    known_kind = isinstance(data, int | float | Sequence | np.generic) or hasattr(data, "__dlpack__")
    if isinstance(data, str) or not known_kind:
        raise TypeError(f"expected a tensor, a number or an array, got {data!r}")
    if isinstance(data, np.ndarray | np.generic):
        array: NDArray[Any] = np.asarray(cast("NDArray[Any]", data))
        known: ElementType = from_numpy(array.dtype)
    elif isinstance(data, int | float | Sequence):
        array = np.asarray(data, None if dtype is None else numpy_dtype(dtype))  # an integer that is none is an error
        known = f32 if array.dtype == np.float64 else from_numpy(array.dtype)
        if known == f32 and (whole := np.asarray(data, object)).size and all(map(_is_integer, whole.reshape(-1))):
            # NumPy makes floats of integers of which only some are 2**63 or more.
            array, known = np.asarray(data, np.uint64), parse_dtype("ui64")
    else:
        array = np.from_dlpack(data)
        known = from_numpy(array.dtype)
    kind = known if dtype is None else lookup(dtype).type
    return tensor_attr(converted(array, kind), name)


def _is_integer(value: object) -> bool:
    return isinstance(value, int)


def _is_in(number: float, dtype: Attribute) -> bool:
    try:
        number_attr(number, dtype)
    except ValueError:
        # Scalars of `ui64` end at 2**63, but elements of tensors do not.
        return dtype_name(dtype) == "ui64" and 0 <= number < 1 << 64 and isinstance(number, int)
    return True
