"""Exceptions that keep their type when they cross tvm-ffi.

tvm-ffi turns an exception whose type it does not know into `RuntimeError`. `register_error_types` makes it know more
of Python's own; a library does the same for its own with `tvm_ffi.error.register_error`.
"""

from __future__ import annotations

from tvm_ffi.error import register_error

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
    """A program of the virtual machine that has not ended after as many instructions as it may execute."""


def register_error_types() -> None:
    """Makes tvm-ffi know `TYPES`; once is enough, again does no harm."""
    for error_type in (*TYPES, UntrustedError, StepLimitError):
        register_error(error_type.__name__, error_type)
