"""What an executable holds: functions, kernels' signatures and native objects. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
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

BUILTIN_PREFIX = "vm.builtin."
"""Names of functions of the run-time library begin with it."""


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

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to the run-time library."""
        return self.kind is FunctionKind.PACKED and self.name.startswith(BUILTIN_PREFIX)


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
    code: bytes
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
