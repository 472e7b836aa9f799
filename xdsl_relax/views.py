"""Views of modules, in notebooks and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike, fspath
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from xdsl_relax.passes import run_passes

HEIGHT = 600
"""Of the frame in a notebook, in pixels."""


@dataclass(frozen=True)
class View:
    """The page of a module, which a notebook shows: `docs/howto/view.md`."""

    module: ModuleOp
    before: ModuleOp | None = None
    """The module before passes, which stands on the left."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    def html(self) -> str:
        """The page, which needs no network."""
        from lowering.view.page import page

        return page(self.module, self.before, sizes=self.sizes)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page (.html), or the graph of the first function that is no kernel (.svg, .dot)."""
        from lowering.view.page import write_view

        if fspath(path).endswith(".html"):
            Path(path).write_text(self.html(), encoding="utf-8")
        else:
            write_view(Path(path), self.module)

    def _repr_html_(self) -> str:
        source = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{source}" style="width: 100%; height: {HEIGHT}px; border: 1px solid #ccc"></iframe>'


def view(module: ModuleOp, passes: str | None = None, *, sizes: Mapping[str, int] | None = None) -> View:
    """A view of a module; with passes, before and after them, side by side.

    `sizes` are values of symbols for the plan of the memory. Drawing needs Graphviz (`xdsl-relax[view]`).
    """
    if passes is None:
        return View(module, None, sizes or {})
    return View(run_passes(module, passes), module, sizes or {})
