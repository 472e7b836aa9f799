"""The native runtime as LLVM IR: the files of `runtime/` with the texts of errors filled in.

Generated code stays small because whatever is not worth inlining is a function here. The files form a few objects, each
compiled once per target; a module is linked with those that it needs.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from typing_extensions import override

from vm_dialect import messages

CORE, SELDOM = ALWAYS = ("core", "seldom")
"""The parts that every program has: what goes along with its calls, and what is for the start and for errors."""

PARTS: dict[str, tuple[str, ...]] = {
    CORE: ("numbers", "values", "checks", "sizes", "pages", "tensors"),
    SELDOM: ("errors", "packed", "module"),
    "arenas": ("arenas",),
    "containers": ("containers",),
    "closures": ("functions", "deferred", "stack"),
    "observation": ("observe",),
}
"""The objects, and the files of `runtime/` in each. They depend on what every program has alone."""


class _Mark(int):
    """An integer that is known at run time only: it prints as the mark for one."""

    @override
    def __format__(self, spec: str) -> str:
        return "{}"


_N = _Mark()
_SUBJECT = "{subject}"

_CHECKED_KINDS = ("tensor", "shape", "tuple", "function")

TEXTS: dict[str, str] = {
    "negative_size": messages.negative_size(),
    "negative_dimension": messages.negative_dimension(),
    "out_of_storage": messages.out_of_storage(),
    "wrong_element_count": messages.wrong_element_count(),
    "wrong_rank": messages.wrong_rank(_SUBJECT, _N),
    "wrong_dtype": messages.wrong_dtype(_SUBJECT, "{expected}"),
    "wrong_device": messages.wrong_device(_SUBJECT),
    "not_contiguous": messages.not_contiguous(_SUBJECT),
    "not_aligned": messages.not_aligned(_SUBJECT, _N),
    "no_such_field": messages.no_such_field(_N),
    "no_such_axis": messages.no_such_axis(_N),
    "no_such_element": messages.no_such_element(_N),
    "division_by_zero": messages.division_by_zero(),
    "unknown_packed": messages.unknown_packed("{name}"),
    "too_deep": messages.too_deep("{name}", _N),
    "no_stack": messages.no_stack("{name}"),
    "borrowed": "a borrowed DLTensor cannot be kept or returned: pass a tensor object",
    "too_large": messages.too_large(),
    "too_large_argument": messages.too_large_argument(_SUBJECT),
    "overflow": messages.overflow(),
    "missing_constant": "constant {name} of the native code is missing",
    "thread_keys": "cannot guard against deep recursion: the process has no thread-local key left",
    **{f"not_{kind}": messages.wrong_kind(_SUBJECT, kind) for kind in _CHECKED_KINDS},
}
"""Templates whose parts are all known at run time only; marks are filled in from left to right."""

_STRINGS: dict[str, str] = {
    "type_error": "TypeError",
    "value_error": "ValueError",
    "memory_error": "MemoryError",
    "recursion_error": "RecursionError",
    "runtime_error": "RuntimeError",
    "invoke_closure_subject": "invoke_closure",
    "tuple_get_subject": "tuple_get",
    "alloc_tensor_subject": "alloc_tensor",
    "shape_function_name": "ffi.Shape",
    "array_function_name": "ffi.Array",
    "no_text": messages.no_text(),
    "slice": "%.*s",
    "other_dtype": "DLPack type %d of %d bits",
}
"""Other C strings of the run-time support."""


def format_string(template: str) -> bytes:
    """A template as a format string of C: `{}` is a 64-bit integer, `{word}` a C string."""
    text = re.sub(r"\{(\w*)\}", lambda mark: "%s" if mark[1] else "%lld", template.replace("%", "%%"))
    return text.encode()


def string_definition(name: str, text: bytes) -> str:
    """A private C string in LLVM's language."""
    data = text + b"\0"
    escaped = "".join(f"\\{byte:02X}" if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte) for byte in data)
    return f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"'


def _kind_table() -> list[str]:
    """Names of kinds, and the table of `@vmrt_kind_name` from type index to name."""
    names = sorted({*messages.KINDS.values(), "object"})
    lines = [string_definition(f"vmrt_kind_{name}", name.encode()) for name in names]
    entries = ", ".join(f"ptr @vmrt_kind_{messages.kind_name(index)}" for index in range(80))
    return [*lines, f"@vmrt_kind_names = private unnamed_addr constant [80 x ptr] [{entries}]"]


@cache
def runtime_text(part: str) -> str:
    """The module of one of the `PARTS`: its files, declarations of what they use of other parts, and texts."""
    code = _code(part)
    used = set(_NAME.findall(code))
    elsewhere = [each for other in ALWAYS if other != part for each in _definitions(other).items()]
    declared = [declaration for name, declaration in elsewhere if name in used]
    texts = [text for name, text in _texts().items() if name in used]
    return "\n".join([_file("abi"), *declared, code, *texts, ""])


def parts_for(text: str) -> list[str]:
    """The parts that generated code needs: those of all programs, and those that define what its text names."""
    used = set(_NAME.findall(text))
    return [part for part in PARTS if part in ALWAYS or not used.isdisjoint(_definitions(part))]


@cache
def _texts() -> dict[str, str]:
    """The definitions of all texts, by name."""
    texts = {f"vmrt_text_{name}": format_string(text) for name, text in TEXTS.items()}
    strings = {f"vmrt_{name}": text.encode() for name, text in _STRINGS.items()}
    defined = {name: string_definition(name, text) for name, text in {**texts, **strings}.items()}
    return {**defined, "vmrt_kind_names": "\n".join(_kind_table())}


_NAME = re.compile(r"@(\w+)")
_FUNCTION = re.compile(r"^define (\S+ @(\w+)\(.*\).*) \{$", flags=re.MULTILINE)
_VARIABLE = re.compile(r"^@(\w+) = hidden global (\S+) ", flags=re.MULTILINE)


@cache
def _definitions(part: str) -> dict[str, str]:
    """What a part defines for others, by name, as they declare it.

    Variables are hidden, but not declared so: others would use offsets of 32 bits, and objects may be loaded further
    apart than that. So they use addresses, which a linker of shared libraries makes offsets again.
    """
    code = _code(part)
    functions = {name: f"declare {head}" for head, name in _FUNCTION.findall(code)}
    return {**functions, **{name: f"@{name} = external global {kind}" for name, kind in _VARIABLE.findall(code)}}


@cache
def _code(part: str) -> str:
    return "\n".join(map(_file, PARTS[part]))


def _file(name: str) -> str:
    """The text of a file, in which `MOST_BYTES` stands for the limit of tensors."""
    text = (files("lowering.runtime") / "vm" / f"{name}.ll").read_text(encoding="utf-8")
    return text.replace("MOST_BYTES", str(messages.MOST_BYTES))
