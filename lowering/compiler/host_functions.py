"""PrimFuncs with one of TVM's calling conventions, as functions of Python.

Their parameters are addresses of boxed arguments. What is made here boxes what Python has, calls, and takes the result
out of its box.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from tir_dialect.calling_conventions import ANY_BYTES, CONVENTION, VALUE_BYTES, Convention, Kind, OldKind
from tir_dialect.interpreter.run import Packed, Payload, unboxed
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.raw_memory import MemoryAtOp
from tir_dialect.types import BufferType

Mode = Literal["native", "bytecode", "interpret"]


def host_function(module: ModuleOp, entry: str, mode: Mode = "native") -> Callable[..., object]:
    """A PrimFunc of a module that has one of TVM's calling conventions, as a function of arrays, numbers and texts.

    Arrays are read and written in place. It gives the number that the function returns, or None, and raises what the
    assertions of the text raise, and `TypeError` for arguments that are too few, or that have no form in memory.
    `ValueError` if the module has no such function.
    """
    function = HostFunction.of(module, entry)
    if function is None:
        raise ValueError(f"the module has no tir.prim_func @{entry} with one of TVM's calling conventions")
    return function.bound(_raw(module, entry, mode))


def _raw(module: ModuleOp, entry: str, mode: Mode) -> Callable[..., object]:
    """The function that takes addresses."""
    if mode != "interpret":
        from lowering.compiler.build import build
        from vm_dialect import VirtualMachine

        return VirtualMachine(build(module.clone(), mode=mode))[entry]
    from xdsl.context import Context

    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
    from relax_dialect.interpreter import run

    exposed = module.clone()
    ExposePrimFuncsPass().apply(Context(), exposed)
    return lambda *arguments: run(exposed, entry, arguments)


@dataclass(frozen=True)
class HostFunction:
    """What a caller has to know of a function with a convention."""

    name: str
    convention: Convention
    takes_kinds: bool
    """Whether the kinds of arguments are a parameter that is a buffer, and not an address."""
    has_resource: bool
    returns_status: bool
    needed: Mapping[int, bool]
    """The arguments that the text reads by number, and whether it takes them to be tensors."""

    @staticmethod
    def of(module: ModuleOp, entry: str) -> HostFunction | None:
        """The function of that name; `None` if there is none, or it has no convention."""
        func = next((op for op in module.ops if isinstance(op, PrimFuncOp) and op.sym_name.data == entry), None)
        said = None if func is None else func.attributes.get(CONVENTION)
        if func is None or not isinstance(said, StringAttr):
            return None
        convention, params = Convention(said.data), func.params
        returns = isinstance(params[-1].type, BufferType)
        takes_kinds = isinstance(params[1].type, BufferType)
        has_resource = convention is Convention.VALUES and len(params) - returns == 6
        values = params[1] if convention is Convention.ANY else params[0]
        size = ANY_BYTES if convention is Convention.ANY else VALUE_BYTES
        found: dict[int, bool] = {}
        for op in func.body.walk():
            if isinstance(op, LoadOp) and (index := _argument(op, values, size)) is not None:
                found[index] = found.get(index, False) or any(_is_address(use.operation) for use in op.result.uses)
        return HostFunction(entry, convention, takes_kinds, has_resource, returns, found)

    def bound(self, call: Callable[..., object]) -> Callable[..., object]:
        """The function of Python, by one that takes addresses."""
        return lambda *arguments: self._call(call, arguments)

    def _call(self, call: Callable[..., object], arguments: tuple[object, ...]) -> object:
        if len(arguments) <= max(self.needed, default=-1):
            raise TypeError(f"{self.name}: expected {max(self.needed) + 1} arguments, got {len(arguments)}")
        packed = Packed(self.name, arguments)
        if self.convention is Convention.VALUES:
            for index, is_tensor in self.needed.items():
                if is_tensor and packed.boxes[index].kind != Kind.TENSOR:
                    kind = Kind(packed.boxes[index].kind).name.lower()
                    raise TypeError(f"{self.name}: argument #{index} expected an array, got a value of kind {kind}")
        status, result = np.zeros((), np.int32), packed.boxes[len(arguments)]
        value, kind = Payload(), ctypes.c_int32(OldKind.NULL)
        given: list[object] = [len(arguments)]
        if self.convention is Convention.ANY:
            given = [0, ctypes.addressof(packed.boxes), *given, ctypes.addressof(result)]
        else:
            kinds = packed.kinds[:-1].copy() if self.takes_kinds else packed.kinds.ctypes.data
            given = [ctypes.addressof(packed.values), kinds, *given, ctypes.addressof(value), ctypes.addressof(kind)]
            given += [0] if self.has_resource else []
        call(*given, *([status] if self.returns_status else []))
        if status != 0:
            raise RuntimeError(f"{self.name} returned {int(status)}")
        if self.convention is Convention.VALUES:
            result.kind, result.payload = _FROM_OLD.get(kind.value, Kind.POINTER), value
        return unboxed(self.name, result)


_FROM_OLD: Mapping[int, Kind] = {OldKind.INT: Kind.INT, OldKind.FLOAT: Kind.FLOAT, OldKind.NULL: Kind.NONE}


def _argument(load: LoadOp, values: SSAValue, size: int) -> int | None:
    """The number of the argument that is loaded."""
    memory = load.buffer.owner
    if not isinstance(memory, MemoryAtOp):
        return None
    offset = next(iter(_offsets(memory.address, values)), None)
    return None if offset is None else offset // size


def _offsets(address: SSAValue, base: SSAValue) -> Iterator[int]:
    """How far an address lies after another one, if that is constant."""
    if address is base:
        yield 0
    elif isinstance(address.owner, arith.AddiOp) and address.owner.lhs is base:
        constant = address.owner.rhs.owner
        if isinstance(constant, arith.ConstantOp) and isinstance(constant.value, IntegerAttr):
            yield constant.value.value.data


def _is_address(user: object) -> bool:
    """Whether an op looks into the memory at its operand, directly or some bytes after."""
    if isinstance(user, arith.AddiOp):
        return any(_is_address(use.operation) for use in user.result.uses)
    return isinstance(user, MemoryAtOp)
