"""What the functions of a native module share: declarations, strings, objects made at load, arenas.
Among them are functions that round a number to a small float, for kernels that take one as a scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntElementsAttr, ReducedPrecisionFloatType, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, Region

from lowering.llvm.function_builder import EXTERNAL, function_op
from lowering.llvm.llvm_builder import LLVMBuilder, ModuleBuilder
from lowering.tir_to_llvm.arithmetic.scalars import convert_float
from lowering.vm_to_llvm.abi import ANY_BYTES, F64, I8, I64, PTR, RUNTIME, SMALL_STRING, Kernel
from tir_dialect.fast_ops import new_op


def rounding_symbol(kind: ReducedPrecisionFloatType) -> str:
    """The name of the function for a small float: it takes an `f64` and gives the bits."""
    return f"module.round.{kind.name}"


ROUNDING = llvm.LLVMFunctionType([F64], I8)
"""The type of such a function."""


def rounding_function(kind: ReducedPrecisionFloatType) -> Operation:
    """The function for a small float."""
    module = ModuleBuilder()
    builder = LLVMBuilder(module, [F64])
    (value,) = builder.entry.args
    builder.insert(llvm.ReturnOp(convert_float(builder, value, F64, kind)))
    module.define(rounding_symbol(kind), [F64], I8, builder.finish(), internal=True, properties={})
    return module.ops[-1]


OBJECTS = "module.objects"
"""A `TVMFFIAny` for each constant, long string and packed function."""

ARENAS = "module.arenas"
"""A cached block, or null, for each `vm.alloc_storage`."""

LOCATIONS = "module.locations"
"""The lines that backtraces consist of, each ended by a zero byte."""

_SMALL_STRING_BYTES = 7


@dataclass
class ModuleGlobals:
    """Grows while functions are lowered; `operations` are the globals and declarations that came of it."""

    is_observed: bool = False
    """Whether calls tell an observer (`lowering.vm_to_llvm.calls`)."""

    sites: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Of each call that does: the function it is in, what it calls, and what it was made from."""

    constants: dict[str, int] = field(default_factory=dict[str, int])
    """Constant tensors by symbol, with their indices among the objects."""

    strings: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Strings that are objects."""

    packed: dict[str, int] = field(default_factory=dict[str, int])
    """Functions of the tvm-ffi registry."""

    arenas: int = 0
    """How many there are."""

    _locations: dict[str, int] = field(default_factory=dict[str, int])
    _locations_size: int = 0
    _declarations: dict[str, llvm.LLVMFunctionType] = field(default_factory=dict[str, llvm.LLVMFunctionType])
    _kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    _texts: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _literals: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    _roundings: set[ReducedPrecisionFloatType] = field(default_factory=set[ReducedPrecisionFloatType])

    def rounding(self, kind: ReducedPrecisionFloatType) -> str:
        """The symbol of the function that rounds to a small float."""
        self._roundings.add(kind)
        return rounding_symbol(kind)

    def declare(self, name: str, function_type: llvm.LLVMFunctionType) -> str:
        """The symbol of a function that another object may define."""
        self._declarations[name] = function_type
        return name

    def kernel(self, name: str, types: Sequence[Attribute]) -> Kernel:
        """A kernel that the module does not know: its parameters have the types of the first call."""
        return self._kernels.setdefault(name, Kernel(name, tuple(types)))

    def runtime(self, name: str) -> str:
        """The symbol of a function of the run-time support, declared."""
        return self.declare(name, RUNTIME[name])

    def text(self, data: bytes) -> str:
        """The symbol of a C string."""
        return self._texts.setdefault(data, f"module.text.{len(self._texts)}")

    def location_offset(self, line: str) -> int:
        """Where a line of backtraces begins in the table of them."""
        if line not in self._locations:
            self._locations[line] = self._locations_size
            self._locations_size += len(line.encode()) + 1
        return self._locations[line]

    def literal(self, head: int, payload: int) -> str:
        """The symbol of a constant `TVMFFIAny`, from its first and second eight bytes."""
        return self._literals.setdefault((head, payload), f"module.literal.{len(self._literals)}")

    def string(self, data: bytes) -> str | int:
        """A string: the symbol of a literal if it is short, else its index among the objects."""
        if len(data) <= _SMALL_STRING_BYTES:
            return self.literal(SMALL_STRING | len(data) << 32, int.from_bytes(data, "little"))
        return self.strings.setdefault(data, self.object_count)

    def constant(self, symbol: str) -> int:
        """The index of a constant tensor."""
        return self.constants.setdefault(symbol, self.object_count)

    def packed_function(self, name: str) -> int:
        """The index of a function of the registry."""
        return self.packed.setdefault(name, self.object_count)

    def site(self, caller: str, callee: str, location: str) -> int:
        """The number of a new site."""
        self.sites.append((caller, callee, location))
        return len(self.sites) - 1

    def new_arena(self) -> int:
        """The index of a new arena."""
        self.arenas += 1
        return self.arenas - 1

    @property
    def object_count(self) -> int:
        """Objects made at load so far."""
        return len(self.constants) + len(self.strings) + len(self.packed)

    def operations(self, defined: set[str]) -> list[Operation]:
        """Globals, and declarations of functions that the module does not define itself."""
        ops: list[Operation] = [_string(name, data) for data, name in self._texts.items()]
        if self._locations:
            ops.append(_string(LOCATIONS, b"\0".join(line.encode() for line in self._locations)))
        ops += [_literal(name, *words) for words, name in self._literals.items()]
        if self.object_count:
            ops.append(_table(OBJECTS, I64, self.object_count * ANY_BYTES // 8))
        if self.arenas:
            ops.append(_table(ARENAS, PTR, self.arenas))
        ops += [
            function_op(name, function_type, EXTERNAL, {})
            for name, function_type in self._declarations.items()
            if name not in defined
        ]
        return [*ops, *map(rounding_function, sorted(self._roundings, key=str))]


def _string(name: str, data: bytes) -> Operation:
    text = data.decode() + "\0"
    return _like(_BYTES, name, llvm.LLVMArrayType(len(data) + 1, I8), StringAttr(text))


def _literal(name: str, head: int, payload: int) -> Operation:
    signed = [word - (1 << 64) if word >> 63 else word for word in (head, payload)]
    value = DenseIntElementsAttr.from_list(TensorType(I64, [2]), signed)
    return _like(_WORDS, name, _PAIR, value)


def _like(template: llvm.GlobalOp, name: str, kind: Attribute, value: Attribute) -> Operation:
    """A constant with the properties of another: modules have a hundred of them."""
    own = {"sym_name": StringAttr(name), "global_type": kind, "value": value}
    return new_op(llvm.GlobalOp, (), (), {**template.properties, **own}, regions=(Region(),))


_PAIR = llvm.LLVMArrayType(2, I64)
_BYTES = llvm.GlobalOp(_PAIR, "", "private", constant=True, unnamed_addr=2)
_WORDS = llvm.GlobalOp(_PAIR, "", "private", constant=True, alignment=8)


def _table(name: str, element: Attribute, count: int) -> Operation:
    kind = llvm.LLVMArrayType(count, element)
    return llvm.GlobalOp(kind, name, "internal", alignment=16)
