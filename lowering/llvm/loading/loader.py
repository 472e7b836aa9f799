"""Loads machine code with everything that it calls: other objects, given functions, the runtime libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowering.llvm.loading.linking import LoadedCode, link
from lowering.llvm.loading.symbols import resolve_symbols


def load_objects(
    objects: Sequence[bytes], symbols: Mapping[str, int] | None = None, keep_alive: object = None
) -> LoadedCode:
    """Link objects with each other, with `symbols` (name to address) and with the run-time libraries.

    `keep_alive` is held as long as the code: whatever owns the memory after `symbols`.

    Raises `CodegenError` for damaged objects, for a name that two objects define and for undefined symbols.
    """
    return link(objects, lambda names: resolve_symbols(names, symbols), keep_alive)
