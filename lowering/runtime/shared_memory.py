"""The code of collectives through shared memory, in this process: `vm_dialect/shared_memory.py` calls it.

It is compiled once per machine and loaded once per process; it is never unloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from lowering.llvm.code_cache import compile_cached
from lowering.llvm.compiler import CompileOptions
from lowering.runtime.loading import LoadedCode, load_objects
from lowering.runtime.support import with_pauses
from tir_dialect.target import Target
from vm_dialect.dtypes import element_type
from vm_dialect.shared_memory import SUMMED, dtype_word

_KINDS = {
    "f32": ("float", "float", "fadd"),
    "f64": ("double", "double", "fadd"),
    "f16": ("half", "float", "fadd"),
    "bf16": ("i16", "float", "fadd"),
    "i32": ("i32", "i32", "add"),
    "i64": ("i64", "i64", "add"),
}
"""Of each element type of `SUMMED`, what LLVM loads, what it adds up, and how."""


def functions() -> Mapping[str, int] | None:
    """The addresses of the functions by name; `None` on a machine for which there are none, or that is not Linux."""
    code = _loaded()
    return None if code is None else code.symbols


@cache
def _loaded() -> LoadedCode | None:
    target = Target.host()
    text = collectives_text(target) if sys.platform.startswith("linux") else None
    return None if text is None else load_objects([compile_cached("support", text, target, CompileOptions())])


def collectives_text(target: Target) -> str | None:
    """The LLVM text for a machine; `None` for one of another kind than threads know."""
    text = with_pauses(_written("shared_memory"), target)
    if text is None:
        return None
    labels = {2: "two", 4: "four", 8: "eight"}
    elements = {element.name: element for element in map(element_type, SUMMED)}
    words = {name: dtype_word(element) for name, element in elements.items()}
    widths = (f"i32 {words[name]}, label %{labels[element.itemsize]}" for name, element in elements.items())
    cases = (f"i32 {word}, label %{name}" for name, word in words.items())
    calls = (f"{name}:\n  call void @add_{name}({_ARGUMENTS})\n  br label %added" for name in words)
    text = (
        text.replace("WIDTHS", " ".join(widths))
        .replace("CASES", " ".join(cases))
        .replace("ADDITIONS", "\n".join(calls))
    )
    return "\n".join([text, *map(_sum, words)])


_ARGUMENTS = "ptr %target, ptr %terms, i32 %size, i64 %n"


def _sum(name: str) -> str:
    """The function that adds up an element type, and those by which it becomes the type of the sum and back."""
    kind, wide, add = _KINDS[name]
    text = _written("sums").replace("NAME", name).replace("KIND", kind).replace("WIDE", wide).replace("ADD", add)
    widen, narrow = _CASTS[name] if kind != wide else (f"ret {kind} %x", f"ret {kind} %x")
    return f"""{text}
define internal {wide} @widen_{name}({kind} %x) {{
  {widen}
}}
define internal {kind} @narrow_{name}({wide} %x) {{
  {narrow}
}}
"""


_CASTS = {
    "f16": ("%y = fpext half %x to float\n  ret float %y", "%y = fptrunc float %x to half\n  ret half %y"),
    "bf16": (
        """%bits = zext i16 %x to i32
  %high = shl i32 %bits, 16
  %y = bitcast i32 %high to float
  ret float %y""",
        """%bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %up = add i32 %bits, %half
  %rounded = lshr i32 %up, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, %x
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %y = trunc i32 %chosen to i16
  ret i16 %y""",
    ),
}
"""To the type of the sum, and back to the number next to it: processors that round to bf16 lose small numbers."""


def _written(name: str) -> str:
    return (files("lowering.runtime") / "collective" / f"{name}.ll").read_text(encoding="utf-8")
