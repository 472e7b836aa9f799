"""Names that the objects of native code export; plain strings, for whoever loads them."""

from __future__ import annotations

ENTRY_PREFIX = "__tvm_ffi_"
"""Before the name of a function that tvm-ffi calls, as its module loader wants it."""


def entry_symbol(function: str, captured: int = 0) -> str:
    """The name of the code that enters a function, or closures of it that give its first `captured` arguments."""
    return f"{ENTRY_PREFIX}{function}.captured{captured}" if captured else ENTRY_PREFIX + function


INIT = "__tvm_ffi__vm_init"
"""The entry of every module that prepares it: it takes what owns the code, constants, packed functions or null."""

INFO = "__tvm_ffi__vm_info"
"""The entry of every module that describes it, as JSON."""
