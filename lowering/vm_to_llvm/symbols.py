"""Names in the objects of native code; plain strings, for whoever loads them.

The names of functions are the user's, so each of ours begins as none of theirs does: entries with `__tvm_ffi_`, what
only native code calls with `vm.`, entries of closures with `closure`, what each module has with `module.`, and the
run-time support with `vmrt_`.
"""

from __future__ import annotations

ENTRY_PREFIX = "__tvm_ffi_"
"""Before the name of a function that tvm-ffi calls, as its module loader wants it."""


def entry_symbol(function: str, captured: int = 0) -> str:
    """The name of the code that enters a function, or closures of it that give its first `captured` arguments."""
    return named(f"closure{captured}." if captured else ENTRY_PREFIX, function)


def body_symbol(function: str) -> str:
    """The name of the code of a function that only native code calls."""
    return named("vm.", function)


def named(prefix: str, name: str) -> str:
    """A symbol for a name, which may be any text: where it has a zero byte, which no symbol has, its hexadecimal digits
    stand for it.
    """
    return f"{prefix}{name}" if "\0" not in name else f"hex.{prefix}{name.encode().hex()}"


INIT = "module.init"
"""The entry of every module that prepares it: it takes what owns the code, constants, packed functions or null."""

INFO = "module.info"
"""The entry of every module that describes it, as JSON."""
