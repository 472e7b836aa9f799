"""Devices of a text: `"cuda:1"`, `"vdevice:3"`, `I.vdevice("llvm", 0, "global")`, `R.cpu(0)`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader

DEVICES = "I.module_global_infos"
"""What a scope calls the devices of the module; no name of a text can be that."""

CPU_KINDS = frozenset({"llvm", "c", "cpu", "ext_dev"})
"""What the machine that programs are compiled for is called."""


def read_device(reader: StaticReader, node: ast.expr) -> str:
    """A device as its kind, and its number among those of the kind: `cuda:1`."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "vdevice":
        kind, number = read_vdevice(reader, node)
        return f"{kind}:{number}"
    text = reader.text(node)
    kind, _, number = text.partition(":")
    known = items_of(reader.scope.find(DEVICES)) or ()
    if kind != "vdevice" or not number.isdigit():
        return text if number else f"{kind}:0"
    if int(number) >= len(known):
        reader.fail(node, f'expected a device of I.module_global_infos, got "{text}"; it has {len(known)}')
    return str(known[int(number)])


def read_vdevice(reader: StaticReader, node: ast.Call) -> tuple[str, int]:
    """The kind and number of `I.vdevice(target, number, memory_scope)`."""
    names = {"index": "vdevice_id"}
    given = Arguments(reader.source, node, "I.vdevice", "target vdevice_id memory_scope", names)
    target, number = reader.value(given.require("target")), given.get("vdevice_id")
    kind = cast("dict[str, object]", target).get("kind") if isinstance(target, dict) else target
    if not isinstance(kind, str):
        reader.fail(node, "I.vdevice expected a target: its kind, or a dictionary that has it")
    return kind.split()[0], 0 if number is None else reader.integer(number)


def device_names(reader: StaticReader, nodes: Sequence[ast.expr]) -> tuple[str, ...]:
    """The names of a module's devices: those of a kind are counted."""
    counts: Counter[str] = Counter()
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "vdevice":
            kind, _ = read_vdevice(reader, node)
            found.append(f"{kind}:{counts[kind]}")
            counts[kind] += 1
    return tuple(found)
