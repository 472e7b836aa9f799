"""What an executable holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from vm_dialect.executable.constants import Constant, same_constant
from vm_dialect.executable.instructions import Instruction
from vm_dialect.executable.model import FunctionInfo, FunctionKind, Metadata, NativeObject
from vm_dialect.executable.verify import verify_executable


@dataclass(frozen=True, eq=False, repr=False)
class ExecutableContents:
    """Functions, constants, bytecode and native objects, checked when they are put together: `ValueError` names what is
    wrong.
    """

    functions: tuple[FunctionInfo, ...]
    constants: tuple[Constant, ...] = ()
    code: tuple[Instruction, ...] = ()
    """The instructions of all bytecode functions, in the order of the function table."""
    native: tuple[NativeObject, ...] = ()
    """Several objects of one target are linked with each other."""
    metadata: Metadata = field(default_factory=Metadata)
    locations: Mapping[int, str] = field(default_factory=dict[int, str])
    """Where an instruction comes from, by its index: the name of an imported node, or a position in a file."""
    is_foreign: bool = False
    """Whether it was read from a file for which nobody vouches. Such a program is data: it has no machine code, and
    the virtual machine lets it call its own functions, and those that the host allows it, only."""

    unproved: frozenset[int] = field(default=frozenset(), init=False, repr=False)
    """The calls of builtins, by instruction, whose arguments are checked for their kinds when they run."""

    def __post_init__(self) -> None:
        parts = (self.functions, self.constants, self.code, self.native, self.metadata, self.locations)
        object.__setattr__(self, "unproved", verify_executable(*parts))

    @cached_property
    def function_index(self) -> Mapping[str, int]:
        """Position of each function in the function table, by name."""
        return {function.name: index for index, function in enumerate(self.functions)}

    def has_function(self, name: str) -> bool:
        """Whether a function of this name can be called from outside."""
        index = self.function_index.get(name)
        return index is not None and _is_entry(self.functions[index])

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the functions that can be called from outside."""
        return tuple(function.name for function in self.functions if _is_entry(function))

    @property
    def packed_functions(self) -> tuple[str, ...]:
        """Names of the functions that are looked up in the tvm-ffi registry."""
        return tuple(f.name for f in self.functions if f.kind is FunctionKind.PACKED and not f.is_builtin)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same; constants are compared by their contents."""
        if not isinstance(other, ExecutableContents):
            return NotImplemented
        plain = ("functions", "code", "native", "metadata")
        return (
            all(getattr(self, name) == getattr(other, name) for name in plain)
            and dict(self.locations) == dict(other.locations)
            and len(self.constants) == len(other.constants)
            and all(map(same_constant, self.constants, other.constants))
        )

    def __hash__(self) -> int:
        """Equal for equal executables."""
        return hash((self.functions, self.metadata.mode, len(self.code)))

    def __repr__(self) -> str:
        """Mode, signatures and sizes, on one line."""
        functions = [self.functions[self.function_index[name]] for name in self.entries]
        listed = ", ".join(f"{function.name}{function.signature}" for function in functions[:_MOST_LISTED])
        more = f", and {len(functions) - _MOST_LISTED} more" if len(functions) > _MOST_LISTED else ""
        size = sum(len(native.code) for native in self.native)
        return (
            f"<Executable {listed or 'without functions'}{more}; {self.metadata.mode}, {_amount(size)} of machine code>"
        )


_MOST_LISTED = 4
"""Functions that `repr` lists."""


def _amount(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1000:.0f} KB"


def _is_entry(function: FunctionInfo) -> bool:
    return function.public and function.kind in (FunctionKind.BYTECODE, FunctionKind.NATIVE)


ContentsT = TypeVar("ContentsT", bound=ExecutableContents)
