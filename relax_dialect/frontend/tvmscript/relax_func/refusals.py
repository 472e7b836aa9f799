"""What functions of relax are not given, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

STATEMENTS: Mapping[type[ast.stmt], str] = MappingProxyType(
    {
        ast.For: "relax functions have no `for`; write a recursive function, or a loop in a PrimFunc",
        ast.While: "relax functions have no `while`; write a recursive function, or a loop in a PrimFunc",
        ast.Try: "programs have no exceptions",
        ast.Raise: "programs have no exceptions; use R.assert_op",
        ast.Assert: "use R.assert_op",
        ast.ClassDef: "classes have no place in a function",
        ast.Import: "imports have no place in a function",
        ast.ImportFrom: "imports have no place in a function",
    }
)
"""Statements of Python that are none of a program."""

_TYPES = ("Any", "Callable", "DTensor", "Object", "Prim", "Shape", "Tensor", "dist.DTensor")
_BUILDERS = (
    *("If", "Then", "Else", "SeqExpr", "arg"),
    *("emit_var_binding", "func_name", "func_ret_ty", "func_ret_type", "func_ret_value"),
)

OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "grad": "this operator of gradients is not known: differentiate before, or write it as operators",
        "nn.attention_var_len": "rows of unlike length are a kernel for GPUs in TVM; cut them apart, or use a mask",
        "macro": "R.macro stands above a function, which is read where it is called",
        "rewriter": "R.rewriter describes a pass, not a program",
        **dict.fromkeys(_TYPES, "a type is no value; it stands behind a colon or an arrow"),
        **dict.fromkeys(_BUILDERS, "it builds programs from Python; a text has the program itself"),
        "device_mesh": "a mesh stands in I.module_global_infos, or in a type or call that asks for one",
        "dist.device_mesh": "a mesh stands in I.module_global_infos, or in a type or call that asks for one",
        "dataflow": "R.dataflow begins a region: `with R.dataflow():`",
        "function": "R.function stands above a function",
    }
)
"""Why some names of `R` are not taken."""
