"""What an executable holds, as plain data: functions, constants, kernels' signatures, native objects; and the four
instructions with their encoding in 64-bit words.

An operand is one word: its kind in bits 63 to 56, its value, signed, in the 56 bits below. An instruction is a word
with the opcode, then its fields: `call dst func n arg...`, `ret value`, `goto offset`, `if condition false_offset`.
Offsets
count instructions from the jump itself. This is the encoding of TVM's virtual machine
(`include/tvm/runtime/vm/bytecode.h`), except that `ret` and `if` take any operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ElementType
from vm_dialect.integers import fits_int64
from vm_dialect.tensors import Array, tensor_element, to_numpy


class FunctionKind(IntEnum):
    """Where a function's code is; the number is its tag in the file."""

    PACKED = 0
    """In the tvm-ffi registry, or a builtin of the virtual machine if the name begins with `vm.builtin.`."""
    BYTECODE = 1
    """In the instructions of the executable."""
    KERNEL = 2
    """A compiled `tir.prim_func`: called with sizes, tensors and scalars; no result."""
    NATIVE = 3
    """A compiled `vm.func` with the packed calling convention of tvm-ffi."""


SIGNATURES_NOTE = "signatures"
"""Note of the metadata: what functions expect of their arguments, as JSON (`vm_dialect.arguments`)."""

PACKED_NOTE = "packed"
"""Note of the metadata: the packed functions that native code looks up when it is loaded, as a JSON list."""

OBSERVED_NOTE = "observed"
"""Note of the metadata of what is built to be watched: by kernel the names of its sizes, and an expression of these
that says how many floating-point operations it executes, as JSON."""

BUILTIN_PREFIX = "vm.builtin."
"""Names of functions of the run-time library begin with it."""

OBSERVE = f"{BUILTIN_PREFIX}observe"
"""The packed function that native code calls around each call if it is built to be watched."""
OF_TVM = frozenset(
    f"{BUILTIN_PREFIX}{name}" for name in ("ensure_zero_offset", "tensor_to_shape", "to_device", "tuple_getitem")
)
"""Names that begin so in TVM, and are none of our run-time library's: functions of the registry, as any other."""


@dataclass(frozen=True)
class SignatureTypes:
    """The types of a function that is called from outside, as text: `f32[n, 4]` for a tensor, where `?` is a dimension
    of any size and `f32[...]` a tensor of any rank; `i64` for a number, `shape[n, 4]`, `(f32[n], i64)` for a tuple,
    `object` for anything.
    """

    parameters: tuple[str, ...] = ()
    """One for each parameter, or none if they are not said."""
    result: str = ""
    """Empty if it is not said."""


def split_list(text: str) -> Iterator[str]:
    """The items of a list in such a text, which commas outside of brackets separate."""
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            yield text[start:index].strip()
            start = index + 1
    if text[start:].strip():
        yield text[start:].strip()


UNTYPED = SignatureTypes()
"""Nothing is said."""


@dataclass(frozen=True)
class FunctionInfo:
    """One entry of the function table."""

    kind: FunctionKind
    name: str
    parameters: tuple[str, ...] = ()
    """Names of the parameters; bytecode and native functions only."""
    public: bool = True
    """Whether it can be called from outside; bytecode and native functions only."""
    start: int = 0
    """Index of the first instruction; bytecode only."""
    end: int = 0
    """Index after the last instruction; bytecode only."""
    frame_size: int = 0
    """Number of registers; bytecode only."""
    result_names: tuple[str, ...] = ()
    """What the model calls the result, or each field of it if it is a tuple; empty if it does not say."""
    types: SignatureTypes = UNTYPED
    """What is said about the types of parameters and result."""

    @property
    def signature(self) -> str:
        """`(x: f32[n, 4], k: i64) -> (f32[n], f32[m])`; parameters without types if these are not said."""
        typed = zip(self.parameters, self.types.parameters or [""] * len(self.parameters), strict=True)
        listed = ", ".join(f"{name}: {kind}" if kind else name for name, kind in typed)
        return f"({listed})" + (f" -> {self.types.result}" if self.types.result else "")

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to the run-time library."""
        is_packed = self.kind is FunctionKind.PACKED
        return is_packed and self.name.startswith(BUILTIN_PREFIX) and self.name not in OF_TVM


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of a kernel after its sizes."""

    dtype: str
    """IR name of the element type."""
    rank: int = -1
    """Rank of the tensor; -1 for a scalar."""


@dataclass(frozen=True)
class KernelSignature:
    """How a kernel is called: `sizes` integers of 64 bits, then the parameters."""

    name: str
    sizes: int
    parameters: tuple[KernelParameter, ...]


@dataclass(frozen=True)
class NativeObject:
    """Machine code, opaque to this package: a loader of the package `lowering` links it."""

    target: str
    """The machine that it is for, as the target description prints."""
    format: str
    """What the bytes are, for example `elf`."""
    code: bytes = field(repr=False)
    symbols: tuple[str, ...]
    """Names defined in it."""


@dataclass(frozen=True)
class Metadata:
    """How an executable was made."""

    mode: str = "bytecode"
    """`bytecode` or `native`."""
    target: str = ""
    """The target description; empty if none was needed."""
    kernels: tuple[KernelSignature, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Anything else, by name."""


Value: TypeAlias = tvm_ffi.Tensor | tvm_ffi.Shape | ElementType | str | bool | int | float
"""The Python form of a constant; an element type is an `ElementType`."""


class ConstantKind(IntEnum):
    """What a constant is; the number is its tag in the file."""

    TENSOR = 0
    SHAPE = 1
    STRING = 2
    INT = 3
    FLOAT = 4
    DTYPE = 5
    BOOL = 6


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant and, for tensors that come from outside, its name."""

    value: Value
    name: str = ""

    @property
    def kind(self) -> ConstantKind:
        """What it is."""
        return constant_kind(self.value)

    def key(self) -> object:
        """Equal for constants that may be shared; tensors are shared by name or identity only."""
        if isinstance(self.value, tvm_ffi.Tensor):
            return (ConstantKind.TENSOR, self.name or id(self.value))
        # The sign of zero and the payload of a NaN matter, so floats are compared as they are written.
        value = self.value.hex() if isinstance(self.value, float) else self.value
        return (self.kind, self.name, value)


def constant_kind(value: object) -> ConstantKind:
    """The kind of a constant's value; `TypeError` if it cannot be one, `ValueError` for an integer beyond 64 bits."""
    match value:
        case tvm_ffi.Tensor():
            tensor_element(value)
            return ConstantKind.TENSOR
        case ElementType():
            return ConstantKind.DTYPE
        case tvm_ffi.Shape():
            return ConstantKind.SHAPE
        case str():
            return ConstantKind.STRING
        case bool():
            return ConstantKind.BOOL
        case int():
            if not fits_int64(value):
                raise ValueError(f"integer constant {value} does not fit into 64 bits")
            return ConstantKind.INT
        case float():
            return ConstantKind.FLOAT
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be a constant of an executable")


def constant_text(constant: Constant) -> str:
    """One line for people: kind, and the value or, for tensors, dtype and shape."""
    value = constant.value
    name = f" @{constant.name}".replace("\0", " ") if constant.name else ""
    match value:
        case tvm_ffi.Tensor():
            return f"tensor{name} {tensor_element(value).name}{list(value.shape)}"
        case ElementType():
            return f"dtype{name} {value.name}"
        case tvm_ffi.Shape():
            return f"shape{name} {list(value)}"
        case _:
            return f"{constant.kind.name.lower()}{name} {value!r}"


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def same_constant(left: Constant, right: Constant) -> bool:
    """Whether two constants have the same name, kind and contents."""
    if (left.name, left.kind) != (right.name, right.kind):
        return False
    if isinstance(left.value, tvm_ffi.Tensor) and isinstance(right.value, tvm_ffi.Tensor):
        a, b = to_numpy(left.value), to_numpy(right.value)
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return left.value.data_ptr() == right.value.data_ptr() or np.array_equal(_bytes(a), _bytes(b))
    return left.key() == right.key()


VALUE_BITS = 56
_VALUE_MASK = (1 << VALUE_BITS) - 1
_SIGN = 1 << (VALUE_BITS - 1)
_WORD_MASK = (1 << 64) - 1

IMMEDIATE_MIN = -_SIGN
"""The least integer that fits into an operand."""
IMMEDIATE_MAX = _SIGN - 1
"""The greatest integer that fits into an operand."""

VOID_REGISTER = 1 << 54
"""As an argument: null. As a destination: the result is dropped."""
STATE_REGISTER = VOID_REGISTER + 1
"""As an argument: the virtual machine itself."""


class OperandKind(IntEnum):
    """What an operand's value means."""

    REGISTER = 0
    IMMEDIATE = 1
    CONSTANT = 2
    FUNCTION = 3


class Operand(NamedTuple):
    """One operand of an instruction."""

    kind: OperandKind
    value: int
    """A register's number, an integer, or an index into the constants or functions of the executable."""

    def encode(self) -> int:
        """The operand as an unsigned word."""
        return (self.kind << VALUE_BITS) | (self.value & _VALUE_MASK)

    @staticmethod
    def decode(word: int) -> Operand:
        """The operand in an unsigned word; `ValueError` if its kind is unknown."""
        kind = word >> VALUE_BITS
        if kind > OperandKind.FUNCTION:
            raise ValueError(f"unknown operand kind {kind}")
        value = word & _VALUE_MASK
        return Operand(OperandKind(kind), value - (1 << VALUE_BITS) if value & _SIGN else value)


VOID = Operand(OperandKind.REGISTER, VOID_REGISTER)
STATE = Operand(OperandKind.REGISTER, STATE_REGISTER)


@dataclass(frozen=True)
class Call:
    """Calls a function and puts its result into a register."""

    OPCODE: ClassVar[int] = 1

    destination: int
    """A register, or `VOID_REGISTER`."""
    function: int
    """Index into the functions of the executable."""
    arguments: tuple[Operand, ...]


@dataclass(frozen=True)
class Ret:
    """Leaves the function with a value."""

    OPCODE: ClassVar[int] = 2

    value: Operand


@dataclass(frozen=True)
class Goto:
    """Jumps."""

    OPCODE: ClassVar[int] = 3

    offset: int


@dataclass(frozen=True)
class If:
    """Goes on with the next instruction if the condition holds, else jumps."""

    OPCODE: ClassVar[int] = 4

    condition: Operand
    false_offset: int


Instruction: TypeAlias = Call | Ret | Goto | If


def operands(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that an instruction reads."""
    match instruction:
        case Call(arguments=arguments):
            return arguments
        case Ret(value=value):
            return (value,)
        case If(condition=condition):
            return (condition,)
        case Goto():
            return ()


def encode(instruction: Instruction) -> list[int]:
    """The words of an instruction, unsigned."""
    match instruction:
        case Call(destination, function, arguments):
            words = [destination, function, len(arguments), *(argument.encode() for argument in arguments)]
        case Ret(value):
            words = [value.encode()]
        case Goto(offset):
            words = [offset & _WORD_MASK]
        case If(condition, false_offset):
            words = [condition.encode(), false_offset & _WORD_MASK]
    return [instruction.OPCODE, *words]


def decode(words: Sequence[int], start: int) -> tuple[Instruction, int]:
    """The instruction whose first word is `words[start]`, and the index of the word after it.

    `ValueError` if the opcode or an operand is unknown or the words end too early.
    """
    opcode = words[start]
    length = {Call.OPCODE: 4, Ret.OPCODE: 2, Goto.OPCODE: 2, If.OPCODE: 3}.get(opcode)
    if length is None:
        raise ValueError(f"unknown opcode {opcode}")
    if start + length <= len(words) and opcode == Call.OPCODE:
        length += words[start + 3]
    if start + length > len(words):
        raise ValueError("the code ends in the middle of an instruction")
    fields = words[start + 1 : start + length]
    if opcode == Call.OPCODE:
        arguments = tuple(Operand.decode(word) for word in fields[3:])
        return Call(fields[0], fields[1], arguments), start + length
    if opcode == Ret.OPCODE:
        return Ret(Operand.decode(fields[0])), start + length
    if opcode == Goto.OPCODE:
        return Goto(_signed(fields[0])), start + length
    return If(Operand.decode(fields[0]), _signed(fields[1])), start + length


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
