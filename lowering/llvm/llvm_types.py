"""Types, constants, flags and metadata of the llvm dialect in the syntax of LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from lowering.llvm.binding import CodegenError

_FLOAT_NAMES: dict[type[Attribute], str] = {
    BFloat16Type: "bfloat",
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
}

_MANGLED: dict[str, str] = {"bfloat": "bf16", "half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


class TypeNames:
    """LLVM's spelling of types, remembered; `definitions` are the named structs that were met."""

    def __init__(self) -> None:
        self._names: dict[Attribute, str] = {}
        self._known: dict[int, tuple[Attribute, str]] = {}
        """By identity, which is quicker than a hash of all parts; each type stays alive beside its name."""
        self.definitions: dict[str, str] = {}

    def __call__(self, type_: Attribute) -> str:
        """The spelling; raises `CodegenError` for a type that LLVM has not."""
        known = self._known.get(id(type_))
        if known is None:
            name = self._names.get(type_)
            if name is None:
                name = self._names[type_] = self._spell(type_)
            known = self._known[id(type_)] = type_, name
        return known[1]

    def _spell(self, type_: Attribute) -> str:
        if (name := _FLOAT_NAMES.get(type(type_))) is not None:
            return name
        match type_:
            case IntegerType() if type_.signedness.data == Signedness.SIGNLESS:
                return f"i{type_.width.data}"
            case llvm.LLVMPointerType():
                space = type_.addr_space
                return f"ptr addrspace({space.data})" if isinstance(space, IntAttr) and space.data else "ptr"
            case VectorType() if type_.get_num_dims() == 1 and type_.get_num_scalable_dims() == 0:
                return f"<{type_.get_shape()[0]} x {self(type_.element_type)}>"
            case llvm.LLVMArrayType():
                return f"[{type_.size.data} x {self(type_.type)}]"
            case llvm.LLVMStructType():
                return self._struct(type_)
            case llvm.LLVMVoidType():
                return "void"
            case llvm.LLVMFunctionType():
                inputs = [self(parameter) for parameter in type_.inputs.data]
                return f"{self(type_.output)} ({', '.join(inputs + ['...'] * type_.is_variadic)})"
            case _:
                raise CodegenError(f"type {type_} has no LLVM spelling, lower it before code generation")

    def _struct(self, type_: llvm.LLVMStructType) -> str:
        body = f"{{ {', '.join(self(element) for element in type_.types.data)} }}"
        if not type_.struct_name.data:
            return body
        name = f"%{quoted(type_.struct_name.data)}"
        if self.definitions.setdefault(name, body) != body:
            raise CodegenError(f"struct {name} is defined twice, as {self.definitions[name]} and as {body}")
        return name


def quoted(name: str) -> str:
    """A name as LLVM writes it after `@` or `%`: in quotes if it has to be."""
    plain = name.isascii() and name.replace("_", "a").replace(".", "a").replace("$", "a").isalnum()
    if plain and not name[0].isdigit():
        return name
    return f'"{escaped(name.encode())}"'


def escaped(data: bytes) -> str:
    """Bytes inside an LLVM string literal."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data)


def mangled(type_name: str) -> str:
    """The suffix that overloaded intrinsics carry for a type: `float` is `f32`, `<8 x float>` is `v8f32`."""
    if type_name.startswith("<"):
        count, _, element = type_name[1:-1].partition(" x ")
        return f"v{count}{mangled(element)}"
    return _MANGLED.get(type_name, type_name)


def vector_element(type_name: str) -> str:
    """`float` of `<8 x float>`."""
    return type_name[1:-1].partition(" x ")[2]


def vector_count(type_name: str) -> int:
    """8 of `<8 x float>`."""
    return int(type_name[1:-1].partition(" x ")[0])


def constant(value: Attribute, type_name: str) -> str:
    """A constant operand without its type.

    Raises `CodegenError` for a value that LLVM has no constant for.
    """
    match value:
        case IntegerAttr():
            return _integer(value.value.data, type_name)
        case FloatAttr():
            return _float(value.value.data, type_name)
        case DenseIntOrFPElementsAttr():
            return _elements(cast("DenseIntOrFPElementsAttr[Any]", value), type_name)
        case StringAttr():
            return f'c"{escaped(value.data.encode())}"'
        case _:
            raise CodegenError(f"constant {value} of type {type_name} has no LLVM spelling")


def _integer(value: int, type_name: str) -> str:
    if type_name == "i1":
        return "true" if value else "false"
    if type_name.startswith("i"):
        return str(value)
    raise CodegenError(f"integer constant {value} cannot have type {type_name}")


def _float(value: float, type_name: str) -> str:
    spell = _FLOAT_SPELLING.get(type_name)
    if spell is None:
        raise CodegenError(f"float constant {value} cannot have type {type_name}")
    return spell(value)


def _spell_float(value: float) -> str:
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    return _spell_double(single)


def _spell_double(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _spell_half(value: float) -> str:
    try:
        data = struct.pack("<e", value)
    except OverflowError:
        data = struct.pack("<e", float("inf") if value > 0 else float("-inf"))
    return f"0xH{struct.unpack('<H', data)[0]:04X}"


def _spell_bfloat(value: float) -> str:
    return f"0xR{bfloat_bits(value):04X}"


def bfloat_bits(value: float) -> int:
    """The bits of a bf16: the upper half of a float's, rounded to nearest even; a NaN stays one."""
    bits = _single_bits(value)
    return bits >> 16 | 0x40 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _single_bits(value: float) -> int:
    try:
        bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
        return bits
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


_FLOAT_SPELLING: dict[str, Callable[[float], str]] = {
    "bfloat": _spell_bfloat,
    "half": _spell_half,
    "float": _spell_float,
    "double": _spell_double,
}


def _elements(value: DenseIntOrFPElementsAttr[Any], type_name: str) -> str:
    open_, close = ("<", ">") if type_name.startswith("<") else ("[", "]")
    count, _, element = type_name[1:-1].partition(" x ")
    if element.startswith(("[", "<")):
        raise CodegenError(f"dense constant of type {type_name} is nested, expected one dimension")
    spell = cast("Callable[[Any, str], str]", _integer if element.startswith("i") else _float)
    values = cast("Sequence[Any]", value.get_values())
    if len(values) != int(count):
        raise CodegenError(f"dense constant has {len(values)} elements, expected {count} for type {type_name}")
    if value.is_splat() and open_ == "<":
        return f"splat ({element} {spell(values[0], element)})"
    return f"{open_}{', '.join(f'{element} {spell(item, element)}' for item in values)}{close}"


def fast_math_flags(op: Operation) -> str:
    """Fast-math flags with a trailing space, or nothing."""
    flags = op.properties.get("fastmathFlags")
    if not isinstance(flags, llvm.FastMathAttr) or not flags.data:
        return ""
    return "fast " if len(flags.data) == _ALL else " ".join(sorted(flags.data)) + " "


def integer_flags(op: Operation) -> str:
    """`nsw`, `nuw`, `exact`, `disjoint` or `nneg` with a trailing space, or nothing."""
    properties = op.properties
    flags = properties.get("overflowFlags")
    if isinstance(flags, IntegerAttr):
        return _OVERFLOW[flags.value.data]
    if isinstance(flags, llvm.OverflowAttr):
        return _OVERFLOW[flags.to_int()]
    return next((word for name, word in _MARKS.items() if name in properties), "")


_ALL = len(llvm.FastMathAttr("fast").data)
_OVERFLOW = ("", "nsw ", "nuw ", "nuw nsw ")
_MARKS = {"isExact": "exact ", "isDisjoint": "disjoint ", "nonNeg": "nneg "}


LOOP_HINTS = "llvm_ext.loop"
"""Name of the attribute on the branch that closes a loop: a dictionary from LLVM's names of loop hints to values.

`{llvm_ext.loop = {"llvm.loop.unroll.disable", "llvm.loop.interleave.count" = 2 : i32}}`
"""


class Metadata:
    """The numbered metadata nodes of a module."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._shared: dict[str, int] = {}

    def lines(self) -> list[str]:
        """The definitions, in order of their numbers."""
        return [f"!{number} = {node}" for number, node in enumerate(self._nodes)]

    def shared(self, node: str) -> str:
        """A reference to a node that all its users share."""
        if node not in self._shared:
            self._shared[node] = len(self._nodes)
            self._nodes.append(node)
        return f"!{self._shared[node]}"

    def loop(self, hints: Attribute) -> str:
        """A reference to a node of its own for one loop, with `hints` as described at `LOOP_HINTS`."""
        if not isinstance(hints, DictionaryAttr):
            raise CodegenError(f"attribute {LOOP_HINTS} expects a dictionary, got {hints}")
        parts = [self.shared(_hint(name, value)) for name, value in hints.data.items()]
        number = len(self._nodes)
        self._nodes.append(f"distinct !{{{', '.join([f'!{number}', *parts])}}}")
        return f"!{number}"


def _hint(name: str, value: Attribute) -> str:
    match value:
        case UnitAttr():
            return f'!{{!"{name}"}}'
        case IntegerAttr(type=IntegerType() as type_):
            width = type_.width.data
            number = value.value.data
            return f'!{{!"{name}", i{width} {("false", "true")[bool(number)] if width == 1 else number}}}'
        case _:
            raise CodegenError(f"loop hint {name} expects a unit or an integer, got {value}")
