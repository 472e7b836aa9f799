"""Arrays of strings as arguments: a program takes the position of each in a list of those that its model names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from relax_dialect.ops.structure import FuncOp
    from vm_dialect.executable import Executable

NOTE = "strings"
"""Note of the metadata of an executable: these lists by function and parameter, as JSON."""

Lists: TypeAlias = Mapping[str, Sequence[str]]
"""By parameter the strings whose positions it takes; the position after the last one is that of all others."""


def lists_of(func: FuncOp) -> Lists:
    """The lists of the parameters of an imported function."""
    from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

    from relax_dialect.ops.structure import STRINGS

    said = func.attributes.get(STRINGS)
    if not isinstance(said, DictionaryAttr):
        return {}
    return {
        name: [each.data for each in cast("ArrayAttr[StringAttr]", said.data[name])]
        for name in func.param_names
        if name in said.data
    }


def with_lists(executable: Executable, module: ModuleOp) -> Executable:
    """An executable that also has the lists of the module from which it was built."""
    from relax_dialect.ops.structure import FuncOp

    found = {op.sym_name.data: lists for op in module.ops if isinstance(op, FuncOp) and (lists := lists_of(op))}
    if not found:
        return executable
    notes = {**executable.metadata.notes, NOTE: json.dumps(found)}
    return replace(executable, metadata=replace(executable.metadata, notes=notes))


def noted_lists(executable: Executable) -> Mapping[str, Lists]:
    """By function the lists that an executable has."""
    return cast("Mapping[str, Lists]", json.loads(executable.metadata.notes.get(NOTE, "{}")))


def encoded(arguments: Sequence[Any], parameters: Sequence[str], lists: Lists) -> list[Any]:
    """The arguments of a call, with positions instead of strings where there is a list."""
    return [
        _positions(argument, lists[name]) if name in lists else argument
        for name, argument in zip(parameters, arguments, strict=False)
    ] + list(arguments[len(parameters) :])


def _positions(argument: Any, names: Sequence[str]) -> Any:
    if not isinstance(argument, np.ndarray | list | str):
        return argument
    array = np.asarray(cast("Any", argument))
    if array.dtype.kind not in "OSTU":
        return cast("Any", argument)
    table = {name: position for position, name in enumerate(names)}
    found = [table.get(_text(each), len(names)) for each in array.reshape(-1).tolist()]
    return np.array(found, np.int64).reshape(array.shape)


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)
