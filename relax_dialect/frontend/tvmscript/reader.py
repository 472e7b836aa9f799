"""The way from what a caller hands over to a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.frontend.tvmscript.module import ModuleReader
from relax_dialect.frontend.tvmscript.text.scalable import vscale_of, with_fixed_lanes
from relax_dialect.frontend.tvmscript.text.source import Tree, read_object, read_text
from tir_dialect.target import Target


def read(
    source: str | Callable[..., object] | type,
    filename: str | None = None,
    frame: Mapping[str, object] | None = None,
    target: Target | str | None = None,
) -> ModuleOp:
    """The module of a text or of a decorated object; `frame` has names that are visible where that stands.

    The target says how long vectors are that the text leaves to the machine.
    """
    text = isinstance(source, str)
    tree = read_text(source, filename or "<tvmscript>", frame) if text else read_object(source, frame)
    machine = Target.parse(target) if isinstance(target, str) else target
    vscale = vscale_of(None if machine is None else machine.vector_bits)
    return _read_tree(replace(tree, body=with_fixed_lanes(tree.body, vscale), vscale=vscale))


def _read_tree(tree: Tree) -> ModuleOp:
    try:
        return ModuleReader(tree).read()
    except RecursionError:
        raise tree.source.error_at(1, 1, "the text is nested too deeply") from None
