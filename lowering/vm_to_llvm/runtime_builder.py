"""What functions of the virtual machine are built on: the run-time support, LLVM texts of `lowering/runtime`.

Programs get the parts of it that they call, with the strings of its messages; `RuntimeBuilder` emits the calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from typing_extensions import override
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.llvm.function_builder import FunctionBuilder, call_op
from lowering.vm_to_llvm.abi import I1, I8, I32, I64, PAYLOAD, PTR
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.memory import i32_array
from vm_dialect import messages

CORE, SELDOM = ALWAYS = ("core", "seldom")
"""The parts that every program has: what goes along with its calls, and what is for the start and for errors."""

PARTS: dict[str, tuple[str, ...]] = {
    CORE: ("numbers", "values", "checks", "sizes", "pages", "tensors"),
    SELDOM: ("errors", "packed", "module"),
    "arenas": ("arenas",),
    "containers": ("containers",),
    "closures": ("functions", "deferred", "stack"),
    "observation": ("observe",),
}
"""The objects, and the files of `runtime/` in each. They depend on what every program has alone."""


class _Mark(int):
    """An integer that is known at run time only: it prints as the mark for one."""

    @override
    def __format__(self, spec: str) -> str:
        return "{}"


_N = _Mark()
_SUBJECT = "{subject}"

_CHECKED_KINDS = ("tensor", "shape", "tuple", "function")

TEXTS: dict[str, str] = {
    "negative_size": messages.negative_size(),
    "negative_dimension": messages.negative_dimension(),
    "out_of_storage": messages.out_of_storage(),
    "wrong_element_count": messages.wrong_element_count(),
    "wrong_rank": messages.wrong_rank(_SUBJECT, _N),
    "wrong_dtype": messages.wrong_dtype(_SUBJECT, "{expected}"),
    "wrong_device": messages.wrong_device(_SUBJECT),
    "not_contiguous": messages.not_contiguous(_SUBJECT),
    "not_aligned": messages.not_aligned(_SUBJECT, _N),
    "no_such_field": messages.no_such_field(_N),
    "no_such_axis": messages.no_such_axis(_N),
    "no_such_element": messages.no_such_element(_N),
    "division_by_zero": messages.division_by_zero(),
    "unknown_packed": messages.unknown_packed("{name}"),
    "too_deep": messages.too_deep("{name}", _N),
    "no_stack": messages.no_stack("{name}"),
    "borrowed": "a borrowed DLTensor cannot be kept or returned: pass a tensor object",
    "too_large": messages.too_large(),
    "too_large_argument": messages.too_large_argument(_SUBJECT),
    "overflow": messages.overflow(),
    "missing_constant": "constant {name} of the native code is missing",
    "thread_keys": "cannot guard against deep recursion: the process has no thread-local key left",
    **{f"not_{kind}": messages.wrong_kind(_SUBJECT, kind) for kind in _CHECKED_KINDS},
}
"""Templates whose parts are all known at run time only; marks are filled in from left to right."""

_STRINGS: dict[str, str] = {
    "type_error": "TypeError",
    "value_error": "ValueError",
    "memory_error": "MemoryError",
    "recursion_error": "RecursionError",
    "runtime_error": "RuntimeError",
    "invoke_closure_subject": "invoke_closure",
    "tuple_get_subject": "tuple_get",
    "alloc_tensor_subject": "alloc_tensor",
    "shape_function_name": "ffi.Shape",
    "array_function_name": "ffi.Array",
    "no_text": messages.no_text(),
    "slice": "%.*s",
    "other_dtype": "DLPack type %d of %d bits",
}
"""Other C strings of the run-time support."""


def format_string(template: str) -> bytes:
    """A template as a format string of C: `{}` is a 64-bit integer, `{word}` a C string."""
    text = re.sub(r"\{(\w*)\}", lambda mark: "%s" if mark[1] else "%lld", template.replace("%", "%%"))
    return text.encode()


def string_definition(name: str, text: bytes) -> str:
    """A private C string in LLVM's language."""
    data = text + b"\0"
    escaped = "".join(f"\\{byte:02X}" if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte) for byte in data)
    return f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"'


@cache
def runtime_text(part: str) -> str:
    """The module of one of the `PARTS`: its files, declarations of what they use of other parts, and texts."""
    code = _code(part)
    used = set(_NAME.findall(code))
    elsewhere = [each for other in ALWAYS if other != part for each in _definitions(other).items()]
    declared = [declaration for name, declaration in elsewhere if name in used]
    texts = [text for name, text in _texts().items() if name in used]
    return "\n".join([_file("abi"), *declared, code, *texts, ""])


def parts_for(text: str) -> list[str]:
    """The parts that generated code needs: those of all programs, and those that define what its text names."""
    used = set(_NAME.findall(text))
    return [part for part in PARTS if part in ALWAYS or not used.isdisjoint(_definitions(part))]


@cache
def _texts() -> dict[str, str]:
    """The definitions of all texts, by name."""
    texts = {f"vmrt_text_{name}": format_string(text) for name, text in TEXTS.items()}
    strings = {f"vmrt_{name}": text.encode() for name, text in _STRINGS.items()}
    defined = {name: string_definition(name, text) for name, text in {**texts, **strings}.items()}
    # Names of kinds, and the table of `@vmrt_kind_name` from type index to name.
    names = sorted({*messages.KINDS.values(), "object"})
    lines = [string_definition(f"vmrt_kind_{name}", name.encode()) for name in names]
    entries = ", ".join(f"ptr @vmrt_kind_{messages.kind_name(index)}" for index in range(80))
    lines.append(f"@vmrt_kind_names = private unnamed_addr constant [80 x ptr] [{entries}]")
    return {**defined, "vmrt_kind_names": "\n".join(lines)}


_NAME = re.compile(r"@(\w+)")
_FUNCTION = re.compile(r"^define (\S+ @(\w+)\(.*\).*) \{$", flags=re.MULTILINE)
_VARIABLE = re.compile(r"^@(\w+) = hidden global (\S+) ", flags=re.MULTILINE)


@cache
def _definitions(part: str) -> dict[str, str]:
    """What a part defines for others, by name, as they declare it.

    Variables are hidden, but not declared so: others would use offsets of 32 bits, and objects may be loaded further
    apart than that. So they use addresses, which a linker of shared libraries makes offsets again.
    """
    code = _code(part)
    functions = {name: f"declare {head}" for head, name in _FUNCTION.findall(code)}
    return {**functions, **{name: f"@{name} = external global {kind}" for name, kind in _VARIABLE.findall(code)}}


@cache
def _code(part: str) -> str:
    return "\n".join(map(_file, PARTS[part]))


def _file(name: str) -> str:
    """The text of a file, in which `MOST_BYTES` stands for the limit of tensors."""
    text = (files("lowering.runtime") / "vm" / f"{name}.ll").read_text(encoding="utf-8")
    return text.replace("MOST_BYTES", str(messages.MOST_BYTES))


_WORD = IntegerAttr(8, I64)
_WRAPS: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, I32)}
_PLAIN_ACCESS: dict[str, Attribute] = {"ordering": IntegerAttr(0, I64)}
_PREDICATES = {flag.value: IntegerAttr(flag.to_int(), I64) for flag in llvm.ALL_ICMP_FLAGS}


@dataclass
class StackArea:
    """Room in the entry block for values of one type, as many as the function turns out to need."""

    builder: RuntimeBuilder
    element: Attribute
    _alloca: llvm.AllocaOp | None = None
    _count: int = 0

    def at_least(self, count: int) -> SSAValue:
        """The address of `count` values or more, 8 bytes aligned."""
        size = self.builder.integer(max(count, self._count))
        if self._alloca is None:
            self._alloca = new_op(llvm.AllocaOp, (size,), (PTR,), {"elem_type": self.element, "alignment": _WORD})
            self._alloca.location = self.builder.location
            self.builder.entry.add_op(self._alloca)
        elif count > self._count:
            self._alloca.operands[0] = size
        self._count = max(count, self._count)
        return self._alloca.res

    def drop(self) -> None:
        """Takes the room away, since nobody uses it."""
        if self._alloca is not None:
            self._alloca.detach()
            self._alloca.erase()


class RuntimeBuilder(FunctionBuilder):
    """Builds a function of the virtual machine, with what the run-time support and its layouts need.

    The entry block holds constants, addresses and stack slots, so that they dominate every use and exist once. It ends
    with a branch that the user adds last.
    """

    def __init__(self, function: llvm.FuncOp) -> None:
        super().__init__(function.function_type.inputs.data)
        self.function = function

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """The function's parameters."""
        return self.entry.args

    def finished(self, body: Block | None = None) -> llvm.FuncOp:
        """The function; the entry block ends in a branch to `body`, unless it is the whole body."""
        if body is not None:
            self.block = self.entry
            self.branch(body)
        self.function.detach_region(0)
        self.function.add_region(self.finish())
        return self.function

    def value(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        return self.insert(op).results[0]

    def stack(self, type_: Attribute) -> StackArea:
        """Room in the function's frame for values of a type."""
        return StackArea(self, type_)

    # Memory.

    def offset(self, base: SSAValue, offset: int) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return base if offset == 0 else self.make(llvm.GEPOp, (base,), PTR, _byte_offset(offset))

    def displaced(self, base: SSAValue, offset: SSAValue) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return self.make(llvm.GEPOp, (base, offset), PTR, _byte_offset(llvm.GEP_USE_SSA_VAL))

    def load(self, address: SSAValue, type_: Attribute, offset: int = 0) -> SSAValue:
        """The value at `address` plus `offset` bytes."""
        return self.make(llvm.LoadOp, (self.offset(address, offset),), type_, _PLAIN_ACCESS)

    def store(self, value: SSAValue, address: SSAValue, offset: int = 0) -> None:
        """Writes to `address` plus `offset` bytes."""
        self.insert(new_op(llvm.StoreOp, (value, self.offset(address, offset)), (), _PLAIN_ACCESS))

    def number(self, address: SSAValue, kind: Attribute) -> SSAValue:
        """The number in the `TVMFFIAny` at `address`."""
        if kind == I1:
            return self.compare("ne", self.load(address, I64, PAYLOAD), self.integer(0))
        return self.load(address, kind, PAYLOAD)

    # Arithmetic and control.

    def convert(self, kind: type[Operation], value: SSAValue, type_: Attribute) -> SSAValue:
        """A value as one of another type, by an op without properties."""
        return self.make(kind, (value,), type_)

    def subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference of two integers, which may wrap."""
        return self.make(llvm.SubOp, (lhs, rhs), lhs.type, _WRAPS)

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`icmp` with LLVM's name of the predicate."""
        return self.make(llvm.ICmpOp, (lhs, rhs), I1, {"predicate": _PREDICATES[predicate]})

    def is_null(self, pointer: SSAValue) -> SSAValue:
        """Whether an address is 0."""
        return self.compare("eq", self.convert(llvm.PtrToIntOp, pointer, I64), self.integer(0))

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values."""
        return self.value(llvm.SelectOp(condition, then, otherwise))

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None = I32) -> SSAValue | None:
        """Calls a function by name; gives its result, if it has one."""
        return next(iter(self.insert(call_op(callee, arguments, result)).results), None)

    def called(self, callee: str, arguments: Sequence[SSAValue], result: Attribute) -> SSAValue:
        """The result of a function that has one."""
        value = self.call(callee, arguments, result)
        assert value is not None  # it has a type
        return value

    def status(self, callee: str, arguments: Sequence[SSAValue]) -> SSAValue:
        """Calls a function that returns a status, and gives whether it failed."""
        return self.compare("ne", self.called(callee, arguments, I32), self.integer(0, I32))

    def return_(self, value: SSAValue) -> None:
        """Ends the block."""
        self.insert(new_op(llvm.ReturnOp, (value,)))


@cache
def _byte_offset(offset: int) -> dict[str, Attribute]:
    """The properties of an address so many bytes behind another."""
    return {
        "rawConstantIndices": i32_array(offset),
        "elem_type": I8,
        "noWrapFlags": IntegerAttr(0, 32),
        "inbounds": UnitAttr(),
    }
