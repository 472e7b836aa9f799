"""Functions as TVM lowers them for callers from outside: their parameters are where boxed arguments lie."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from relax_dialect.frontend.tvmscript.text.names import Aliases
from tir_dialect.calling_conventions import Convention

_PARAMETERS: Mapping[Sequence[str], Convention] = MappingProxyType(
    {
        ("self_handle", "args", "num_args", "result"): Convention.ANY,
        ("args", "arg_type_ids", "num_args", "out_ret_value", "out_ret_tcode"): Convention.VALUES,
        ("args", "arg_type_ids", "num_args", "out_ret_value", "out_ret_tcode", "resource_handle"): Convention.VALUES,
    }
)
"""The names that TVM gives the parameters."""

_OF_ADDRESSES = (
    "tvm_struct_",
    "anylist_",
    "isnullptr",
    "tvm_call_packed_lowered",
    "call_packed_lowered",
    "tvm_call_cpacked_lowered",
    "call_cpacked_lowered",
    "tvm_call_trace_packed_lowered",
)
"""What takes pointers as they are, by how the names begin."""


def convention_of(function: ast.FunctionDef) -> Convention | None:
    """The convention by which a function is called, if it is one of TVM's."""
    return _PARAMETERS.get(tuple(argument.arg for argument in function.args.args))


def address_names(aliases: Aliases, function: ast.FunctionDef) -> frozenset[str]:
    """The parameters of a function that are addresses, if their annotations say that they are pointers."""
    if convention_of(function) is not None:
        return frozenset(argument.arg for argument in function.args.args)
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and (aliases.name_in("tir", node.func) or "").startswith(_OF_ADDRESSES):
            found |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return frozenset(found)
