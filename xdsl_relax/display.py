"""How programs and profiles are shown: as HTML in notebooks and files, with colours in terminals."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from vm_dialect.executable import Executable
from vm_dialect.profiler import Profile
from xdsl_relax.model import Model
from xdsl_relax.passes import run_passes

_TOKENS = re.compile(
    r"(?P<comment>//[^\n]*)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<symbol>@[\w$.-]+|@\"[^\"\n]*\")"
    r"|(?P<value>[%^][\w$.-]+(?:\#\d+)?)"
    r"|(?P<type>![a-z_]\w*(?:\.\w+)*|\b(?:[su]?i\d+|ui\d+|b?f\d+\w*|index)\b)"
    r"|(?P<op>\b[a-z_]\w*\.[a-z_][\w.]*)"
    r"|(?P<number>(?<![\w.])-?\d[\w.]*)"
)
"""What a text in the syntax of MLIR consists of, as far as it gets a colour."""

_COLOURS = {
    "comment": ("#6a737d", "90"),
    "string": ("#9c4400", "33"),
    "symbol": ("#00707a", "36"),
    "value": ("#1a5fb4", "34"),
    "type": ("#2a7d2e", "32"),
    "op": ("#8030a0", "35"),
    "number": ("#9c4400", "33"),
}
"""In HTML, readable on white and on black, and of terminals."""


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with its kind: a key of the colours, or nothing."""
    end = 0
    for match in _TOKENS.finditer(text):
        if match.start() > end:
            yield "", text[end : match.start()]
        yield match.lastgroup or "", match[0]
        end = match.end()
    if end < len(text):
        yield "", text[end:]


def as_html(text: str) -> str:
    """A text in the syntax of MLIR as HTML with colours."""
    parts = (
        f'<span style="color:{_COLOURS[kind][0]}">{escape(piece)}</span>' if kind else escape(piece)
        for kind, piece in pieces(text)
    )
    return f'<pre style="line-height:1.25;overflow-x:auto">{"".join(parts)}</pre>'


def as_terminal(text: str) -> str:
    """A text in the syntax of MLIR with the escape sequences of terminals."""
    return "".join(f"\x1b[{_COLOURS[kind][1]}m{piece}\x1b[0m" if kind else piece for kind, piece in pieces(text))


def profile_html(profile: Profile) -> str:
    """A profile as a table; the bar of each row is its share of the time."""
    total = profile.nanoseconds or 1
    rows = "".join(
        f"<tr><td style='text-align:right'>{row.nanoseconds / 1000:.1f}</td><td>{_bar(row.nanoseconds / total)}</td>"
        f"<td style='text-align:right'>{row.calls}</td><td style='text-align:left'>{escape(row.site.callee)}</td>"
        f"<td style='text-align:left'>{escape(row.site.location or f'{row.site.caller}:{row.site.index}')}</td></tr>"
        for row in profile.rows
    )
    head = "".join(f"<th>{title}</th>" for title in ("time us", "share", "calls", "callee", "from"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _bar(share: float) -> str:
    return f'<div style="background:#1a5fb4;height:0.8em;width:{100 * share:.0f}px" title="{100 * share:.1f}%"></div>'


@dataclass(frozen=True)
class Shown:
    """What is shown of a value."""

    text: str
    html: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


def shown(value: object) -> Shown:
    """A module or op as its text, an executable as its listing, a profile as its table, anything else by its `repr`."""
    match value:
        case Operation():
            text = str(value)
            return Shown(text, as_html(text))
        case Executable():
            text = value.as_text()
            return Shown(text, as_html(text))
        case Model():
            text = repr(value) if value.executable is None else f"{value!r}\n{value.executable.stats()}"
            return Shown(text, f"<pre>{escape(text)}</pre>")
        case Profile():
            return Shown(value.as_text(), profile_html(value))
        case _:
            return Shown(repr(value), f"<pre>{escape(repr(value))}</pre>")


def show(value: object) -> None:
    """Shows a value: as HTML in a notebook, else on standard output, with colours if that is a terminal."""
    what = shown(value)
    if (display := _notebook_display()) is not None:
        display(what)
    else:
        is_program = isinstance(value, Operation | Executable)
        print(as_terminal(what.text) if is_program and sys.stdout.isatty() else what.text)


def _notebook_display() -> Callable[[object], object] | None:
    """What shows values in a notebook, if this process belongs to one."""
    library: Any = sys.modules.get("IPython")
    shell = None if library is None else library.get_ipython()
    if shell is None or type(shell).__name__ == "TerminalInteractiveShell":
        return None
    from importlib import import_module

    return cast("Callable[[object], object]", import_module("IPython.display").display)


_PROGRAM = ("xdsl.ir.core", "Operation")
_CLASSES = (
    _PROGRAM,
    ("vm_dialect.executable.executable", "Executable"),
    ("vm_dialect.profiler", "Profile"),
    ("xdsl_relax.model", "Model"),
)


def register(shell: Any = None) -> None:
    """Makes a shell of IPython, that of this process unless another is given, show our values as HTML."""
    library: Any = sys.modules.get("IPython")
    if shell is None and library is not None:
        shell = library.get_ipython()
    if shell is None:
        return
    html, plain = (shell.display_formatter.formatters[kind] for kind in ("text/html", "text/plain"))
    for module, name in _CLASSES:
        html.for_type_by_name(module, name, _html)
    plain.for_type_by_name(*_PROGRAM, _plain)


def _html(value: object) -> str:

    return shown(value).html


def _plain(value: object, printer: Any, cycle: bool) -> None:
    """Where there is no HTML, an op is its text: xDSL shows addresses of its parts."""
    printer.text(str(value))


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
