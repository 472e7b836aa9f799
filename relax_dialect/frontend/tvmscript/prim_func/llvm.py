"""Intrinsics of LLVM that every machine has, by name: `T.call_llvm_pure_intrin("float32", "llvm.sqrt", x)`."""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.foreign import typed_arguments

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
    from relax_dialect.frontend.tvmscript.text.arguments import Arguments

_SAME = (
    "sqrt exp exp2 exp10 log log2 log10 sin cos tan asin acos atan sinh cosh tanh "
    "fabs floor ceil trunc pow copysign fma"
)
_FUNCTIONS = MappingProxyType(
    {
        **{name: name for name in _SAME.split()},
        "rint": "nearbyint",
        "nearbyint": "nearbyint",
        "roundeven": "nearbyint",
        "fmuladd": "fma",
        "ctpop": "popcount",
        "smax": "max",
        "smin": "min",
    }
)
"""The functions of `T` that intrinsics are."""
_OF_ONE = frozenset(_FUNCTIONS.values()) - {"pow", "copysign", "fma", "max", "min"}


def llvm_intrinsic(reader: TirExpressionReader, node: ast.Call) -> object:
    """The function that an intrinsic is; `TVMScriptError` for one that only some machines have."""
    what = f"T.{reader.aliases.name_in('tir', node.func)}"
    given = typed_arguments(reader, node, what, "name *operands")
    name = _name(reader, given.require("name"))
    if not isinstance(name, str):
        return _numbered(reader, node, given)
    function = _FUNCTIONS.get(name.removeprefix("llvm.").partition(".")[0]) if name.count(".") < 3 else None
    if function is None:
        reader.fail(given.require("name"), f"{name} names an instruction of one machine; use a function of T")
    operands = [reader.value(each) for each in given.rest]
    if function in _OF_ONE and len(operands) == 2:
        # texts of TVM before 0.20 say first how many operands tell the intrinsic's type
        operands = operands[1:]
    return reader.apply(node, function, *operands)


def _numbered(reader: TirExpressionReader, node: ast.Call, given: Arguments) -> object:
    """An intrinsic by its number in one release of LLVM: that of three numbers is the sum of a product."""
    if len(given.rest) != 4:
        reader.fail(given.require("name"), "the numbers of intrinsics are those of one release of LLVM; write the name")
    return reader.apply(node, "fma", *(reader.value(each) for each in given.rest[1:]))


def _name(reader: TirExpressionReader, node: ast.expr) -> object:
    """The name, also in `T.llvm_lookup_intrinsic_id("llvm.sqrt")`; a number, where the text has that."""
    is_looked_up = isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) == "llvm_lookup_intrinsic_id"
    if isinstance(node, ast.Call) and is_looked_up and node.args:
        node = node.args[0]
    return reader.value(node)
