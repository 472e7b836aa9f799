"""Open blocks: ops are appended to the innermost one, which knows the symbols and values that are visible; and types as
callers of the builder write them.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, LocationAttr, NameLoc, NoneAttr, StringAttr, f32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from relax_dialect.scope import symbols_used, symbols_witnessed
from relax_dialect.struct_info.base import ShapeLike, StructInfo
from relax_dialect.struct_info.symbols import fresh_name, iter_symbols
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import Interval, SymbolAttr
from tir_dialect.dims import DimLike
from tir_dialect.dtypes import from_numpy, parse_dtype

if TYPE_CHECKING:
    import numpy as np


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
    return TensorType(shape, None if dtype is None else as_dtype(dtype), device)


def as_struct_info(info: InfoLike) -> StructInfo:
    """The relax type that `info` stands for."""
    return info if isinstance(info, StructInfo) else TensorType(info, f32)


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
        self._check_visible(op)
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

    def _check_visible(self, op: Operation) -> None:
        for index, operand in enumerate(op.operands):
            if not self.is_visible(operand):
                raise BuilderError(
                    f"'{op.name}' op operand #{index} ({_name(operand)}) is not visible in {self.frame.what}: "
                    "it belongs to another function or to a region that has ended"
                )
        for name in sorted(symbols_used(op)):
            if not self.is_bound(name):
                raise BuilderError(
                    f"'{op.name}' op uses the symbol {name}, which is not bound in {self.frame.what}: "
                    "bind it by a parameter or by match_cast"
                )

    def is_visible(self, value: SSAValue) -> bool:
        """Whether an op that is emitted now may use the value."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return home is not None and any(frame.block is home for frame in self._visible_frames())


def _name(value: SSAValue) -> str:
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"result of '{value.op.name}'" if isinstance(value, OpResult) else "an unnamed argument"
