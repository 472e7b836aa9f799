"""What is linked into a shared library: the objects of an executable, and entries that check the processor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from lowering.cache.cached_compiler import compile_cached
from lowering.llvm.binding import enable_inline_assembler
from lowering.llvm.compiler import CompileOptions
from lowering.llvm.features import FEATURES, code_features
from lowering.llvm.loading.elf import object_symbols, renamed
from lowering.llvm.text.llvm_types import quoted
from lowering.runtime.kernel.support import SUPPORT
from lowering.vm_to_llvm.compatibility import described
from lowering.vm_to_llvm.runtime_text import string_definition
from lowering.vm_to_llvm.symbols import entry_symbol
from tir_dialect.target import PROCESSORS, Target
from vm_dialect.executable.contents import ExecutableContents

_BASELINES = {"x86_64": "x86-64", "aarch64": PROCESSORS["aarch64"]}
"""LLVM's names of the processors whose code runs on every machine of an architecture."""

CHECKED = "checked."
"""Before the symbol of an entry that another one of its name guards."""


def library_objects(executable: ExecutableContents) -> list[bytes]:
    """Machine code of a library: the native objects, what they call beside the C library and tvm-ffi, and a check.

    If the code needs more than the baseline of the architecture, each function is entered through a check that runs
    everywhere: on a processor without the features, a call raises `RuntimeError` with their names. Code whose target is
    not a `Target.code_key()` is not checked.

    `ValueError` for an executable of other machines: the linker is of this one. `CodegenError` if LLVM does not know
    the target of the objects.
    """
    targets = _targets(executable)
    objects = [item.code for item in executable.native]
    called = {name for code in objects for name in object_symbols(code).undefined}
    needed = [support for support in SUPPORT if not called.isdisjoint(support.symbols)]
    target = targets[0] if targets else Target.host()
    options = CompileOptions(as_written=True)
    texts = [each.library_text() for each in needed if each.library_text is not None]
    objects += [compile_cached("support", text, target, options) for text in texts]
    required = {name for target in targets for name in code_features(target) or ()}
    return _checked(objects, executable.entries, targets, required) if required else objects


def _targets(executable: ExecutableContents) -> list[Target]:
    """What the native objects are compiled for."""
    own = Target.host()
    names = dict.fromkeys(item.target for item in executable.native)
    if other := [name for name in names if name.partition("-")[0] not in (own.arch, name)]:
        raise ValueError(
            f'the code is for "{other[0]}", a library is for this machine ({own.arch}): build it with target=host'
        )
    return [target for name in names if (target := described(name)) is not None]


def _checked(
    objects: Sequence[bytes], functions: Sequence[str], targets: Sequence[Target], required: Iterable[str]
) -> list[bytes]:
    """The objects with other names for the entries of `functions`, and an object with checks under the old ones."""
    prefix = CHECKED
    known = [name for code in objects for name in object_symbols(code).defined]
    while any(name.startswith(prefix) for name in known):
        prefix = f"_{prefix}"
    names = {entry_symbol(name): f"{prefix}{entry_symbol(name)}" for name in functions}
    arch, cpus = targets[0].arch, ", ".join(dict.fromkeys(target.cpu for target in targets))
    baseline = Target(targets[0].triple, _BASELINES[arch])
    text = check_text(arch, cpus, required, names)
    enable_inline_assembler()
    entries = compile_cached("library", text, baseline, CompileOptions(as_written=True))
    return [*(renamed(code, names) for code in objects), entries]


def check_text(arch: str, cpus: str, required: Iterable[str], entries: dict[str, str]) -> str:
    """The LLVM text of entries that call others by a jump if the processor has the required features."""
    order = [name for name in FEATURES[arch] if name in set(required)]
    begin = f"the library is compiled for the processor {cpus}, and this one lacks ".encode()
    older = "x86-64-v2" if arch == "x86_64" else "aarch64"
    advice = f": build it for this processor, or with a target such as {older}"
    size = len(begin) + sum(len(name) + 2 for name in order) + len(advice) + 1
    padded = begin.ljust(size - 1, b"\0")
    lines = [
        _runtime("check").replace("FEATURE_COUNT", str(len(order))),
        _runtime(arch),
        string_definition("relax_message", padded).replace("private unnamed_addr constant", "internal global"),
        string_definition("relax_advice", advice.encode()),
        *(string_definition(f"relax_feature_{i}", name.encode()) for i, name in enumerate(order)),
        _table(arch, order),
        *(_entry(name, real) for name, real in entries.items()),
    ]
    return "\n".join(lines)


def _table(arch: str, features: Sequence[str]) -> str:
    known = [FEATURES[arch][name] for name in features]
    rows = ", ".join(
        f"%feature {{ i32 {each.register}, i32 {each.bits}, i32 {each.state}, ptr @relax_feature_{i} }}"
        for i, each in enumerate(known)
    )
    return f"@relax_features = private unnamed_addr constant [{len(known)} x %feature] [{rows}]"


_PARAMETERS = "ptr %self, ptr %args, i32 %count, ptr %ret"


def _entry(name: str, real: str) -> str:
    return f"""
declare hidden i32 @{quoted(real)}(ptr, ptr, i32, ptr)

define i32 @{quoted(name)}({_PARAMETERS}) {{
  %refused = load i8, ptr @relax_refused
  %is.refused = icmp ne i8 %refused, 0
  br i1 %is.refused, label %refuse, label %enter

enter:
  %status = musttail call i32 @{quoted(real)}({_PARAMETERS})
  ret i32 %status

refuse:
  %failed = call i32 @relax_refuse()
  ret i32 %failed
}}"""


@cache
def _runtime(name: str) -> str:
    return (files("lowering.runtime") / "library" / f"{name}.ll").read_text(encoding="utf-8")
