"""Where the time of a run goes: one row for each call in the program, and the same as a flame graph.

The levels are those of the names of the model's layers, `/encoder/layer.0/MatMul`, or a file and a position in it; the
last one is the kernel. The page needs no network. A click on a box makes it as wide as the page, and one on a box above
it takes that back.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from time import perf_counter_ns
from typing import Any

import tvm_ffi

from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.program import Site
from vm_dialect.thread import Decision

MOST_EVENTS = 1_000_000
"""Calls whose times are kept one by one."""


@dataclass(frozen=True)
class Peaks:
    """What a machine can do at best."""

    gflops: float
    """Billions of operations on `f32` per second."""
    gigabytes: float
    """Billions of bytes that are read from memory per second."""


@dataclass
class ProfileRow:
    """All calls made by one instruction."""

    site: Site
    calls: int = 0
    nanoseconds: int = 0
    """Time in the callee, without that of calls which the callee makes in bytecode."""
    bytes: int = 0
    """Bytes of the tensors among the arguments, each once for a call: what is moved at least if all are used."""
    flops: int | None = None
    """Floating-point operations, where the program says them."""

    @property
    def gflops(self) -> float | None:
        """Billions of floating-point operations per second."""
        return None if self.flops is None or not self.nanoseconds else self.flops / self.nanoseconds

    @property
    def gigabytes(self) -> float | None:
        """Billions of bytes per second."""
        return self.bytes / self.nanoseconds if self.bytes and self.nanoseconds else None

    def share_of(self, peaks: Peaks | None) -> float | None:
        """The least time that the machine needs for this much work and memory, over the time taken; above 1 where what
        is counted as memory stays in a cache.
        """
        if peaks is None or not self.nanoseconds or not (self.bytes or self.flops):
            return None
        return max((self.flops or 0) / peaks.gflops, self.bytes / peaks.gigabytes) / self.nanoseconds


@dataclass(frozen=True)
class Event:
    """One call: when it began, on the clock of `perf_counter_ns`, and how long it took."""

    site: Site
    start: int
    nanoseconds: int


@dataclass(frozen=True, repr=False)
class Profile:
    """The profile of one run."""

    result: Any
    """What the function returned."""
    nanoseconds: int
    """Time of the whole run; the profiler's own is left out as far as it has been measured."""
    rows: tuple[ProfileRow, ...]
    """In order of the time they took, most first."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    peaks: Peaks | None = None
    """Of the machine, if they were measured."""

    def __repr__(self) -> str:
        """Time and number of calls; `as_text` has the table."""
        calls = sum(row.calls for row in self.rows)
        return f"<Profile {self.nanoseconds / 1000:.1f} us, {calls} calls of {len(self.rows)} instructions>"

    @property
    def layers(self) -> tuple[ProfileRow, ...]:
        """One row for each location in the source: the names of the model's nodes, or positions in a file."""
        found: dict[str, ProfileRow] = {}
        for row in self.rows:
            name = row.site.location or "(unknown)"
            layer = found.setdefault(name, ProfileRow(Site(row.site.caller, row.site.index, "", name)))
            layer.calls += row.calls
            layer.nanoseconds += row.nanoseconds
            layer.bytes += row.bytes
            if row.flops is not None:
                layer.flops = (layer.flops or 0) + row.flops
        return tuple(sorted(found.values(), key=lambda row: -row.nanoseconds))

    def as_text(self) -> str:
        """Two tables: of calls, with callee, caller and instruction, and what they were made from; and of layers."""
        lines = [_head("call")]
        for row in self.rows:
            location = f"  # {row.site.location}" if row.site.location else ""
            lines.append(self._line(row, f"{row.site.callee}  in {row.site.caller}:{row.site.index}{location}"))
        lines.append(f"{self.nanoseconds / 1000:12.1f} {100:5.1f}%           total")
        if any(row.site.location for row in self.rows):
            lines += ["", _head("layer"), *(self._line(row, row.site.location) for row in self.layers)]
        if self.peaks is not None:
            peaks = f"{self.peaks.gflops:.0f} GFLOP/s (f32), {self.peaks.gigabytes:.0f} GB/s"
            lines += ["", f"roof: share of what this machine can do: {peaks}"]
        return "\n".join(lines)

    def _line(self, row: ProfileRow, what: str) -> str:
        share = 100 * row.nanoseconds / (self.nanoseconds or 1)
        numbers = [_number(row.gflops), _number(row.gigabytes), _percent(row.share_of(self.peaks))]
        return f"{row.nanoseconds / 1000:12.1f} {share:5.1f}% {row.calls:8} {' '.join(numbers)}  {what}"

    def as_json(self) -> str:
        """The rows of both tables, and the peaks, as JSON; times in nanoseconds."""
        peaks = None if self.peaks is None else {"gflops": self.peaks.gflops, "gigabytes": self.peaks.gigabytes}
        calls, layers = ([self._record(row) for row in rows] for rows in (self.rows, self.layers))
        return json.dumps({"nanoseconds": self.nanoseconds, "peaks": peaks, "calls": calls, "layers": layers}, indent=1)

    def _record(self, row: ProfileRow) -> dict[str, object]:
        return {
            "callee": row.site.callee,
            "caller": row.site.caller,
            "instruction": row.site.index,
            "source": row.site.location,
            "calls": row.calls,
            "nanoseconds": row.nanoseconds,
            "bytes": row.bytes,
            "flops": row.flops,
            "roofline": row.share_of(self.peaks),
        }

    def as_trace(self) -> str:
        """The calls in the order of time, as JSON that Perfetto, speedscope and `chrome://tracing` show."""
        begin = min((event.start for event in self.events), default=0)
        events = [
            {
                "name": event.site.callee,
                "cat": "kernel",
                "ph": "X",
                "ts": (event.start - begin) / 1000,
                "dur": event.nanoseconds / 1000,
                "pid": 0,
                "tid": 0,
                "args": {"source": event.site.location, "caller": event.site.caller, "instruction": event.site.index},
            }
            for event in sorted(self.events, key=lambda event: event.start)
        ]
        return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})

    def as_html(self) -> str:
        """A flame graph as a page: layers of the model, or positions in a file, and below them kernels."""
        rows = ((row.site.location, row.site.callee, row.nanoseconds, row.calls) for row in self.rows)
        return page(frames_of(rows))


def _head(what: str) -> str:
    return f"{'time us':>12} {'share':>6} {'calls':>8} {'GFLOP/s':>8} {'GB/s':>8} {'roof':>6}  {what}"


def _number(value: float | None) -> str:
    return f"{'':8}" if value is None else f"{value:8.2f}"


def _percent(value: float | None) -> str:
    return f"{'':6}" if value is None else f"{100 * value:5.1f}%"


class Profiler:
    """An instrument that adds up times."""

    def __init__(self, work: Mapping[str, tuple[Sequence[str], str]] = {}) -> None:
        """`work` has the names of the sizes of kernels, and expressions of these that say how much they compute."""
        self._rows: dict[tuple[str, int], ProfileRow] = {}
        self._work = {kernel: _Work(sizes, text) for kernel, (sizes, text) in work.items()}
        self._events: list[Event] = []
        self._own = 0
        """Time in `hear`, which is no part of the run."""
        # Of every call that has not returned: its start, and the time of the calls inside it.
        self._open: list[list[int]] = []

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        """Starts the clock of a call."""
        self._open.append([perf_counter_ns(), 0])
        return Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Stops the clock of the call that started last."""
        start, _ = self._open[-1]
        self.measured(site, arguments, start, perf_counter_ns() - start)

    def hear(self, phase: int, site: Site, arguments: Sequence[Any], start: int, elapsed: int) -> None:
        """What native code says before (0) and after (1) a call, with the times that it has taken itself."""
        begin = perf_counter_ns()
        if phase == 0:
            self._open.append([begin, 0])
        else:
            self.measured(site, arguments, start, elapsed)
        self._own += perf_counter_ns() - begin

    def measured(self, site: Site, arguments: Sequence[Any], start: int, elapsed: int) -> None:
        """A call whose time somebody else has taken."""
        _, inside = self._open.pop()
        if self._open:
            self._open[-1][1] += elapsed
        row = self._rows.setdefault((site.caller, site.index), ProfileRow(site))
        row.calls += 1
        row.nanoseconds += elapsed - inside
        row.bytes += sum(map(_bytes, arguments))
        if (work := self._work.get(site.callee)) is not None:
            row.flops = (row.flops or 0) + work.of(arguments)
        if len(self._events) < MOST_EVENTS:
            self._events.append(Event(site, start, elapsed))

    def profile(self, result: Any, nanoseconds: int, peaks: Peaks | None = None) -> Profile:
        """What has been seen."""
        rows = sorted(self._rows.values(), key=lambda row: -row.nanoseconds)
        return Profile(result, nanoseconds - self._own, tuple(rows), tuple(self._events), peaks)


def _bytes(value: object) -> int:
    if not isinstance(value, tvm_ffi.Tensor):
        return 0
    element = BY_FFI_NAME.get(value.dtype)
    return 0 if element is None else value.numel() * element.itemsize


class _Work:
    """An expression of sizes, such as `2 * n * m`. Nothing else is ever evaluated."""

    def __init__(self, sizes: Sequence[str], text: str):
        self._sizes = sizes
        self._expression = ast.parse(text, mode="eval").body

    def of(self, arguments: Sequence[Any]) -> int:
        """The value for the arguments of a kernel, of which the sizes come first."""
        return _value(self._expression, dict(zip(self._sizes, arguments, strict=False)))


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
}

_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "broadcast": lambda *extents: next((extent for extent in extents if extent != 1), 1),
    "floordiv": int.__floordiv__,
    "max": max,
    "min": min,
    "mod": int.__mod__,
}


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            return sizes[name]
        case ast.UnaryOp(ast.USub(), inner):
            return -_value(inner, sizes)
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_value(left, sizes), _value(right, sizes))
        case ast.Call(ast.Name(name), arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(each, sizes) for each in arguments))
        case _:
            raise ValueError(f"expected an expression of sizes, got {ast.unparse(node)}")


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
