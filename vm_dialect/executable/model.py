"""What an executable holds: functions, kernels' signatures and native objects. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum


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
