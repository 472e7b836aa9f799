"""Meshes of workers: `R.device_mesh((2, 2), I.Range(0, 4))`, and what `I.module_global_infos` has of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.devices import device_names
from relax_dialect.frontend.tvmscript.text.evaluator import items_of

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader

DTENSOR = "shape dtype device_mesh placement ndim"
"""The parameters of `R.DTensor`."""


@dataclass(frozen=True)
class Mesh:
    """How many workers stand along each axis, and which devices they are, row by row."""

    shape: tuple[int, ...]
    devices: tuple[int, ...] = field(compare=False)


def is_dtensor(kind: str | None) -> bool:
    """Whether a name of `R` is that of distributed tensors."""
    return kind in ("DTensor", "dist.DTensor")


def read_mesh(reader: StaticReader, node: ast.Call) -> Mesh | None:
    """The mesh of a call of `R.device_mesh`; `None` for another call."""
    if reader.aliases.name_in("relax", node.func) not in ("device_mesh", "dist.device_mesh"):
        return None
    given = Arguments(reader.source, node, "R.device_mesh", "shape device_ids")
    shape, devices = given.require("shape"), given.require("device_ids")
    sizes, ids = _integers(reader, shape), _devices(reader, devices)
    if prod(sizes) != len(ids):
        reader.fail(devices, f"expected {prod(sizes)} devices for a mesh of {sizes}, got {len(ids)}")
    return Mesh(sizes, ids)


def _devices(reader: StaticReader, node: ast.expr) -> tuple[int, ...]:
    if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "Range":
        given = Arguments(reader.source, node, "I.Range", "begin end")
        first, last = given.require("begin"), given.get("end")
        start = reader.integer(first)
        return tuple(range(start)) if last is None else tuple(range(start, reader.integer(last)))
    return _integers(reader, node)


def _integers(reader: StaticReader, node: ast.expr) -> tuple[int, ...]:
    items = items_of(reader.value(node))
    found = tuple(each for each in items or () if isinstance(each, int) and not isinstance(each, bool))
    if items is None or len(found) != len(items):
        reader.fail(node, "expected a list of integers")
    return found


def read_global_infos(reader: StaticReader, call: ast.Call) -> tuple[dict[str, list[Mesh]], tuple[str, ...]]:
    """The meshes in the dictionary of `I.module_global_infos`, by name, and the names of its devices."""
    node = Arguments(reader.source, call, "I.module_global_infos", "global_infos").require("global_infos")
    if not isinstance(node, ast.Dict):
        reader.fail(node, "I.module_global_infos expected a dictionary")
    found: dict[str, list[Mesh]] = {}
    devices: tuple[str, ...] = ()
    for key, value in zip(node.keys, node.values, strict=True):
        entries = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        meshes = [read_mesh(reader, each) for each in entries if isinstance(each, ast.Call)]
        if key is not None and (known := [mesh for mesh in meshes if mesh is not None]):
            found[reader.text(key)] = known
        devices += device_names(reader, entries)
    return found, devices


def as_attribute(meshes: dict[str, list[Mesh]]) -> dict[str, object]:
    """The meshes as an attribute of the module."""
    return {
        name: tuple({"shape": mesh.shape, "devices": mesh.devices} for mesh in each) for name, each in meshes.items()
    }
