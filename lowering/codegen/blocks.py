"""The memory of large results, which is kept between calls; one object of LLVM text for a process.

A result may be released after the program that made it, so the functions are never unloaded.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from lowering.codegen.support import load_support

if TYPE_CHECKING:
    from lowering.codegen.loader import LoadedCode

BLOCK_SYMBOLS = frozenset(("relax_block_take", "relax_block_give"))
"""`ptr relax_block_take(i64 bytes)`, null if no such block is kept, and `void relax_block_give(ptr block)`."""

_forever: list[LoadedCode] = []


def blocks_text() -> str:
    """The LLVM text of the functions."""
    return files("lowering.codegen").joinpath("blocks.ll").read_text()


@cache
def block_symbol(name: str) -> int | None:
    """The address of one of `BLOCK_SYMBOLS`."""
    if not _forever:
        _forever.append(load_support(blocks_text()))
    return _forever[0].symbols.get(name)
