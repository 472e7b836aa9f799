"""Routines: functions that kernels call, so that code that many kernels have in common is compiled once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.traits import SymbolTable

from lowering.kernels.cpu.emit.code import Code
from lowering.locations import named_location
from tir_dialect.dims import symbol
from tir_dialect.ops.calls import ROUTINE, CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


class Routine(ABC):
    """The definition of a routine. Equal values are one function, which only allocates `local` memory."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Its kind and shape, for readers."""

    @abstractmethod
    def sizes(self) -> Sequence[str]:
        """The names of its sizes, in the order of a call."""

    @abstractmethod
    def buffers(self) -> Mapping[str, BufferType]:
        """Its buffers, in the order of a call, with types over the sizes and the lengths of `flat` ones."""

    @abstractmethod
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """Generates the body, for the values of its sizes and its buffers."""

    @property
    def name(self) -> str:
        """The label, and a digest of the whole definition."""
        return f"{self.label}.{hashlib.sha256(repr(self).encode()).hexdigest()[:12]}"

    def signature(self) -> tuple[Sequence[str], Mapping[str, BufferType]]:
        """The sizes, followed by the lengths of flat buffers, and the buffers."""
        buffers = self.buffers()
        return [*self.sizes(), *(_length(name) for name, kind in buffers.items() if kind.rank == 1)], buffers


def flat(dtype: AnyFloat, *names: str) -> dict[str, BufferType]:
    """One-dimensional buffers whose lengths are arguments of each call."""
    return {name: BufferType([symbol(_length(name))], dtype) for name in names}


def _length(name: str) -> str:
    return f"{name}_room"


@dataclass(frozen=True)
class Routines:
    """The routines of a module."""

    module: ModuleOp | None = None
    """The module of the routines; without one, they are inlined."""

    def call(self, code: Code, routine: Routine, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
        """Calls a routine, whose buffers have the types that it declares for these sizes."""
        shapes = [SSAValue.get(buffer, type=BufferType).type.shape for buffer in buffers]
        sizes = [*sizes, *(code.dim(shape[0]) for shape in shapes if len(shape) == 1)]
        if self.module is None:
            _write(routine, code, sizes, buffers)
            return
        name, outside = f"{ROUTINE}{routine.name}", _outside.get()
        if SymbolTable.lookup_symbol(self.module, name) is None:
            if outside is None:
                self.module.body.block.add_op(_function(routine).clone())
            else:
                outside.routines[name] = routine
        code.emit(CallOp(name, sizes, buffers, unchecked=True))


NO_ROUTINES = Routines()


@dataclass(frozen=True, eq=False)
class _Outside(Mapping[str, PrimFuncOp]):
    """Functions by name, each generated when it is looked up: a build may have its object already."""

    routines: dict[str, Routine] = field(default_factory=dict[str, Routine])

    @override
    def __getitem__(self, name: str) -> PrimFuncOp:
        return _function(self.routines[name])

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.routines)

    @override
    def __len__(self) -> int:
        return len(self.routines)


_outside: ContextVar[_Outside | None] = ContextVar("outside", default=None)


@contextmanager
def outside_modules() -> Generator[Mapping[str, PrimFuncOp]]:
    """Modules that are scheduled meanwhile get no routines; yields them by name. They must not be changed.

    Copies of them would take longer than the rest of a schedule that calls some.
    """
    found = _Outside()
    token = _outside.set(found)
    try:
        yield found
    finally:
        _outside.reset(token)


def routines_for(function: PrimFuncOp) -> Routines:
    """The routines of the module that a function is in."""
    module = function.parent_op()
    return Routines(module if isinstance(module, ModuleOp) else None)


@lru_cache(maxsize=256)
def _function(routine: Routine) -> PrimFuncOp:
    sizes, buffers = routine.signature()
    parameters: list[tuple[str, Attribute]] = list(buffers.items())
    function = PrimFuncOp(f"{ROUTINE}{routine.name}", sizes, parameters, visibility="private")
    params = function.body.block.args
    function.location = named_location(function.sym_name.data)
    code = Code(function.body.block, function.location)
    _write(routine, code, params[: len(sizes)], params[len(sizes) :])
    return function


def _write(routine: Routine, code: Code, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
    names, kinds = routine.signature()
    routine.write(code, dict(zip(names, sizes, strict=True)), dict(zip(kinds, buffers, strict=True)))
