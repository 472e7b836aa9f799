"""The way from what a caller hands over to a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.frontend.tvmscript.module import ModuleReader
from relax_dialect.frontend.tvmscript.text.source import Tree, read_object, read_text


def read(
    source: str | Callable[..., object] | type,
    filename: str | None = None,
    frame: Mapping[str, object] | None = None,
) -> ModuleOp:
    """The module of a text or of a decorated object; `frame` has names that are visible where that stands."""
    text = isinstance(source, str)
    tree = read_text(source, filename or "<tvmscript>", frame) if text else read_object(source, frame)
    return _read_tree(tree)


def _read_tree(tree: Tree) -> ModuleOp:
    try:
        return ModuleReader(tree).read()
    except RecursionError:
        raise tree.source.error_at(1, 1, "the text is nested too deeply") from None
