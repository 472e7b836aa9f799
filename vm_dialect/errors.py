"""Exceptions that keep their type when they cross tvm-ffi.

tvm-ffi turns an exception whose type it does not know into `RuntimeError`. `register_error_types` makes it know more
of Python's own; a library does the same for its own with `tvm_ffi.error.register_error`.

An exception whose text is not UTF-8, or that has none, cannot cross tvm-ffi: the function fails without an error, and
whoever looks for one reads through a null pointer. So an error that says so is raised before each exception crosses.
The table of exception types is the only step of the crossing that tvm-ffi leaves to others, and comes before those that
fail. A caller in Python cannot do the same: a failed call inside of the function takes the error that was set before.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tvm_ffi import core, libinfo
from tvm_ffi.error import register_error
from typing_extensions import override

from vm_dialect import messages

TYPES = (
    ArithmeticError,
    EOFError,
    FileNotFoundError,
    ImportError,
    KeyboardInterrupt,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    PermissionError,
    RecursionError,
    StopIteration,
    SystemExit,
    TimeoutError,
    UnicodeError,
    ZeroDivisionError,
)


class UntrustedError(ValueError):
    """A file with machine code for which nobody vouches, or bytecode of one that asks for what it may not have."""


class StepLimitError(RuntimeError):
    """A program that has not ended after as many instructions, or calls and iterations if interpreted, as it may."""


_KEPT = frozenset({"KeyboardInterrupt", "SystemExit"})
"""Those that end a program are of the same class without their text."""

_set_raised = ctypes.CDLL(libinfo.find_libtvm_ffi()).TVMFFIErrorSetRaisedFromCStr
_set_raised.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_set_raised.restype = None


class _ErrorNames(dict[type, str]):
    """The names of exception types, where tvm-ffi looks first when an exception crosses it.

    The error that is raised here is replaced by that of the exception, unless making that one fails.
    """

    @override
    def get(self, key: type, default: Any = None, /) -> Any:
        name = super().get(key, default)
        kind = name if name in _KEPT else "RuntimeError"
        _set_raised(kind.encode(), messages.no_text().encode())
        return name


def register_error_types() -> None:
    """Makes tvm-ffi know `TYPES` and raise an error for what it cannot; once is enough, again does no harm."""
    if not isinstance(core.ERROR_TYPE_TO_NAME, _ErrorNames):
        core.ERROR_TYPE_TO_NAME = _ErrorNames(core.ERROR_TYPE_TO_NAME)
    for error_type in (*TYPES, UntrustedError, StepLimitError):
        register_error(error_type.__name__, error_type)
