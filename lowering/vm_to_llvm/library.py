"""What is linked into a shared library: the objects of an executable, entries that choose code for the processor, and
what the code calls.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise

import numpy as np

from lowering.llvm.binding import enable_inline_assembler
from lowering.llvm.code_cache import compile_cached
from lowering.llvm.compiler import CompileOptions
from lowering.llvm.features import FEATURES, code_features
from lowering.llvm.llvm_types import quoted
from lowering.runtime.loading import object_symbols, renamed
from lowering.runtime.support import SUPPORT, THREADS
from lowering.vm_to_llvm.loading import described
from lowering.vm_to_llvm.runtime_builder import format_string, string_definition
from lowering.vm_to_llvm.symbols import entry_symbol
from tir_dialect.target import PROCESSORS, Target
from vm_dialect import messages
from vm_dialect.builtins.calls import MOST_FIELDS
from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.library import LIBRARY_BUILTINS, LibraryCode, objects_by_target
from vm_dialect.executable.model import PACKED_NOTE

_BASELINES = {"x86_64": "x86-64", "aarch64": PROCESSORS["aarch64"]}
"""LLVM's names of the processors whose code runs on every machine of an architecture."""

CHECKED = "checked."
"""Before the symbol of an entry that another one of its name guards."""


def library_code(executable: ExecutableContents) -> LibraryCode:
    """Machine code of a library: the native objects, what they call beside the C library and tvm-ffi, and a check.

    If the code needs more than the baseline of the architecture, or is there for several targets, each function is
    entered through a check that runs everywhere, and goes on in the first variant of the code that the processor can
    run. If there is none, a call raises `RuntimeError` that names what is missing for the last. Code whose target is
    not a `Target.code_key()` is not checked.

    `CodegenError` if LLVM does not know the target of the objects.
    """
    variants = [_variant(target, objects) for target, objects in objects_by_target(executable).items()]
    called = set(json.loads(executable.metadata.notes.get(PACKED_NOTE, "[]")))
    sources = {"builtins.c": builtins_source()} if called & LIBRARY_BUILTINS else {}
    if len(variants) > 1:
        # The objects of all variants, in which every symbol has the prefix of its variant, and one that chooses.
        objects: list[bytes] = []
        for index, variant in enumerate(variants):
            defined = {name for code in variant.objects for name in object_symbols(code).defined}
            names = {name: f"{_prefix(index)}{name}" for name in defined}
            objects += (renamed(code, names) for code in variant.objects)
        symbols = map(entry_symbol, executable.entries)
        entries = {name: [f"{_prefix(i)}{name}" for i in range(len(variants))] for name in symbols}
        return LibraryCode(
            [*objects, _check(variants, entries)],
            {each.name: _prefix(i) for i, each in enumerate(variants)},
            sources,
        )
    objects = [code for variant in variants for code in variant.objects]
    if any(variant.features for variant in variants):
        # The objects with other names for the entries of `functions`, and an object with checks under the old ones.
        prefix = CHECKED
        known = [name for code in objects for name in object_symbols(code).defined]
        while any(name.startswith(prefix) for name in known):
            prefix = f"_{prefix}"
        names = {entry_symbol(name): f"{prefix}{entry_symbol(name)}" for name in executable.entries}
        entries = {name: [real] for name, real in names.items()}
        objects = [*(renamed(code, names) for code in objects), _check(variants, entries)]
    return LibraryCode(objects, {variant.name: "" for variant in variants}, sources)


@dataclass(frozen=True)
class _Variant:
    """The code for one target."""

    name: str
    target: Target | None
    """`None` if the name is not that of a target."""
    objects: Sequence[bytes]
    features: frozenset[str]
    """What it needs beyond the baseline of the architecture."""


def _variant(name: str, objects: Sequence[bytes]) -> _Variant:
    target = described(name)
    called = {symbol for code in objects for symbol in object_symbols(code).undefined}
    # Threads are limited by name.
    needed = [support for support in SUPPORT if support is THREADS or not called.isdisjoint(support.symbols)]
    options = CompileOptions(as_written=True)
    machine = target or Target.host()
    texts = [each.library_text(machine) for each in needed if each.library_text is not None]
    support = [compile_cached("support", text, machine, options) for text in texts]
    features = frozenset[str]() if target is None else code_features(target) or frozenset[str]()
    return _Variant(name, target, [*objects, *support], features)


def _prefix(index: int) -> str:
    return f"variant{index}."


def _check(variants: Sequence[_Variant], entries: Mapping[str, Sequence[str]]) -> bytes:
    """The object that chooses among variants, for every processor of the architecture."""
    targets = [Target.host() if each.target is None else each.target for each in variants]
    arch = targets[0].arch
    cpus = [(target.cpu, each.features) for target, each in zip(targets, variants, strict=True)]
    enable_inline_assembler()
    baseline = Target(targets[0].triple, _BASELINES[arch])
    return compile_cached("library", check_text(arch, cpus, entries), baseline, CompileOptions(as_written=True))


def check_text(arch: str, variants: Sequence[tuple[str, Collection[str]]], entries: Mapping[str, Sequence[str]]) -> str:
    """The LLVM text of entries that call one of others by a jump: that of the first variant, the name of a processor
    and the features it needs, which the processor can run.
    """
    orders = [[name for name in FEATURES[arch] if name in set(features)] for _, features in variants]
    lines = [
        _runtime("check")
        .replace("FEATURE_COUNT", str(sum(map(len, orders))))
        .replace("VARIANT_COUNT", str(len(variants))),
        _runtime(arch),
        *_messages(arch, variants[-1][0], orders[-1]),
        *_tables(arch, orders),
        *(_entry(name, reals) for name, reals in entries.items()),
    ]
    return "\n".join(lines)


def _messages(arch: str, cpu: str, needed: Sequence[str]) -> Iterator[str]:
    begin = f"the library is compiled for the processor {cpu}, and this one lacks ".encode()
    older = "x86-64-v2" if arch == "x86_64" else "aarch64"
    advice = f": build it for this processor, or with a target such as {older}"
    size = len(begin) + sum(len(name) + 2 for name in needed) + len(advice) + 1
    padded = begin.ljust(size - 1, b"\0")
    yield string_definition("relax_message", padded).replace("private unnamed_addr constant", "internal global")
    yield string_definition("relax_advice", advice.encode())


def _tables(arch: str, orders: Sequence[Sequence[str]]) -> Iterator[str]:
    names = list(dict.fromkeys(name for order in orders for name in order))
    yield from (string_definition(f"relax_feature_{i}", name.encode()) for i, name in enumerate(names))
    known = [(FEATURES[arch][name], names.index(name)) for order in orders for name in order]
    rows = ", ".join(
        f"%feature {{ i32 {each.register}, i32 {each.bits}, i32 {each.state}, ptr @relax_feature_{i} }}"
        for each, i in known
    )
    yield f"@relax_features = private unnamed_addr constant [{len(known)} x %feature] [{rows}]"
    ends = list(accumulate(map(len, orders), initial=0))
    ranges = ", ".join(f"{{ i64, i64 }} {{ i64 {begin}, i64 {end} }}" for begin, end in pairwise(ends))
    yield f"@relax_variants = private unnamed_addr constant [{len(orders)} x {{ i64, i64 }}] [{ranges}]"


_PARAMETERS = "ptr %self, ptr %args, i32 %count, ptr %ret"


def _entry(name: str, reals: Sequence[str]) -> str:
    declared = "\n".join(f"declare hidden i32 @{quoted(real)}(ptr, ptr, i32, ptr)" for real in reals)
    cases = " ".join(f"i8 {index}, label %enter.{index}" for index in range(len(reals)))
    jumps = "\n\n".join(
        f"enter.{index}:\n"
        f"  %status.{index} = musttail call i32 @{quoted(real)}({_PARAMETERS})\n"
        f"  ret i32 %status.{index}"
        for index, real in enumerate(reals)
    )
    return f"""
{declared}

define i32 @{quoted(name)}({_PARAMETERS}) {{
  %choice = load i8, ptr @relax_choice
  switch i8 %choice, label %refuse [ {cases} ]

{jumps}

refuse:
  %failed = call i32 @relax_refuse()
  ret i32 %failed
}}"""


@cache
def builtins_source() -> str:
    """The C source of the builtins, with the texts and limits that the virtual machine and NumPy have."""
    texts = {
        "NEGATIVE_DIMENSION": messages.negative_dimension(),
        "TOO_LARGE": messages.too_large(),
        "UNKNOWN_PACKED": messages.unknown_packed("{name}"),
    }
    defined = {name: json.dumps(format_string(text).decode()) for name, text in texts.items()}
    defined |= {"MOST_BYTES": f"{messages.MOST_BYTES}LL", "MOST_FIELDS": str(MOST_FIELDS)}
    # Which floats NumPy writes with an exponent has changed between its versions.
    defined["LARGE_SINGLE"] = "1e6f" if "e" in str(np.array([2e6], np.float32)) else "1e8f"
    defined["LARGE_HALF"] = "1e3" if "e" in str(np.array([2e3], np.float16)) else "1e8"
    source = (files("lowering.runtime") / "library" / "builtins.c").read_text(encoding="utf-8")
    return "\n".join([*(f"#define {name} {text}" for name, text in defined.items()), source])


@cache
def _runtime(name: str) -> str:
    return (files("lowering.runtime") / "library" / f"{name}.ll").read_text(encoding="utf-8")
