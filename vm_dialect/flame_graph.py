"""The times of a run as a flame graph: boxes as wide as their time, each below what it is a part of.

The levels are those of the names of the model's layers, `/encoder/layer.0/MatMul`, or a file and a position in it; the
last one is the kernel. The page needs no network. A click on a box makes it as wide as the page, and one on a box above
it takes that back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

LEAST_SHARE = 0.0005
"""Boxes with a smaller share of the run are one box together."""

_POSITION = re.compile(r"(.*?):(\d+(?::\d+)?)")
_COLOURS = ("#fdd663", "#fcad70", "#f28b82", "#ffc875", "#f7b267")

_STYLE = """
body { font: 13px sans-serif; margin: 12px; }
.row { display: flex; }
.node { min-width: 0; overflow: hidden; }
.bar { border-bottom: 1px solid #fff; padding: 2px 0; text-indent: 4px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; cursor: pointer; box-shadow: inset 1px 0 #fff; }
.bar:hover { filter: brightness(0.9); }
.aside { display: none; }
"""

_SCRIPT = """
document.addEventListener("click", event => {
  const bar = event.target.closest(".bar");
  if (!bar) return;
  document.querySelectorAll(".aside").forEach(each => each.classList.remove("aside"));
  for (let node = bar.parentElement; node.parentElement.classList.contains("row"); ) {
    for (const each of node.parentElement.children) if (each !== node) each.classList.add("aside");
    node = node.parentElement.parentElement;
  }
});
"""


@dataclass
class Frame:
    """A box: a layer, a group of layers, or a kernel."""

    name: str
    nanoseconds: int = 0
    calls: int = 0
    children: dict[str, Frame] = field(default_factory=dict[str, "Frame"])

    def add(self, path: Sequence[str], nanoseconds: int, calls: int) -> None:
        """Counts calls of what is reached by the names in `path`."""
        self.nanoseconds += nanoseconds
        self.calls += calls
        if path:
            self.children.setdefault(path[0], Frame(path[0])).add(path[1:], nanoseconds, calls)

    @property
    def largest_first(self) -> list[Frame]:
        """The boxes below it."""
        return sorted(self.children.values(), key=lambda each: -each.nanoseconds)


def levels_of(location: str) -> list[str]:
    """The levels of a source location: file and position, or the segments of a layer's name."""
    position = _POSITION.fullmatch(location)
    if position is not None:
        return [position[1], position[2]]
    return [each for each in re.split(r"[/.]", location) if each] or ["(unknown)"]


def frames_of(calls: Iterable[tuple[str, str, int, int]]) -> Frame:
    """The frames of calls: of each its source location, the callee, the time in nanoseconds and the number of calls."""
    root = Frame("all")
    for location, callee, nanoseconds, count in calls:
        root.add([*levels_of(location), callee], nanoseconds, count)
    return root


def page(root: Frame) -> str:
    """The flame graph as an HTML page."""
    head = f'<meta charset="utf-8"><title>profile</title><style>{_STYLE}</style>'
    body = f'<div class="row">{"".join(_box(root, root.nanoseconds or 1, 0))}</div><script>{_SCRIPT}</script>'
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>{body}</body></html>\n"


def _box(frame: Frame, whole: int, depth: int) -> Iterator[str]:
    share = frame.nanoseconds / whole
    told = f"{frame.name}: {frame.nanoseconds / 1000:.1f} us, {100 * share:.1f} %, {frame.calls} calls"
    colour = _COLOURS[depth % len(_COLOURS)]
    yield f'<div class="node" style="flex: {max(frame.nanoseconds, 1)} 1 0">'
    yield f'<div class="bar" style="background: {colour}" title="{escape(told, quote=True)}">{escape(frame.name)}</div>'
    if frame.children:
        yield '<div class="row">'
        small = Frame("")
        for child in frame.largest_first:
            if child.nanoseconds < LEAST_SHARE * whole:
                small.add([child.name], child.nanoseconds, child.calls)
            else:
                yield from _box(child, whole, depth + 1)
        if small.children:
            yield from _box(Frame(f"{len(small.children)} more", small.nanoseconds, small.calls), whole, depth + 1)
        yield "</div>"
    yield "</div>"
