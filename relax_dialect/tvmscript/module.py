"""The text of modules of the graph level."""

from __future__ import annotations

import itertools
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relax_dialect.function_symbols import all_symbols, substitute_in
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.tvmscript.functions import FunctionWriter
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.tvmscript.functions import HEAD, extents, function_lines
from tir_dialect.tvmscript.functions import as_tvmscript as prim_funcs_as_tvmscript
from tir_dialect.tvmscript.text import Line, Names, Suite, function_texts, refuse, rendered, symbol_text


def as_tvmscript(module: ModuleOp) -> str:
    """A module of Relax functions and PrimFuncs as TVMScript: Python text in the syntax of TVM 0.27.

    TVM reads the text, and so does `relax_dialect.frontend.tvmscript`. Names of parameters and values are kept as far
    as Python has them; locations are left out. Loops are private functions that call themselves, as TVM has no others:
    each iteration takes a frame of TVM's machine. A result type has all dimensions or none, as TVM's types do.

    Raises `ScriptError`, a ValueError, for an op or a type that TVM has no text for; TypeError for what is no module.
    """
    if not isinstance(cast("object", module), ModuleOp):
        raise TypeError(f"as_tvmscript expected a module, got {type(module).__name__}")
    if not any(isinstance(op, FuncOp) for op in module.ops):
        return prim_funcs_as_tvmscript(module)
    module = _with_names_apart(module)
    symbols: dict[str, None] = {}
    texts: list[list[Line]] = []
    used = (name for op in module.ops for name in (op.symbol_names if isinstance(op, PrimFuncOp) else all_symbols(op)))
    globals_ = function_texts([_symbol_name(op) for op in module.ops], used)
    for op in module.ops:
        match op:
            case FuncOp():
                texts.append(FunctionWriter(op, globals_, symbols).lines())
            case PrimFuncOp():
                symbols |= dict.fromkeys(sorted(map(symbol_text, extents(op))))
                texts.append(function_lines(op, globals_[op.sym_name.data]))
            case _:
                raise refuse(op, "a module of TVMScript has Relax functions and PrimFuncs")
    body: list[Line] = []
    for lines in texts:
        body += [*lines, ""]
    imports = [
        "from tvm.script import ir as I",
        "from tvm.script import relax as R",
        "from tvm.script import tirx as T",
    ]
    names = [f'{name} = TypeVar("{name}")' for name in sorted(symbols)]
    head = [*HEAD, *imports, "", *names, "", ""]
    text = rendered(["@I.ir_module", Suite("class Module:", body[:-1])])
    return "\n".join([*head, *(line.rstrip() for line in text)]) + "\n"


def _symbol_name(op: Operation) -> str:
    if not isinstance(op, FuncOp | PrimFuncOp):
        raise refuse(op, "a module of TVMScript has Relax functions and PrimFuncs")
    return op.sym_name.data


def _with_names_apart(module: ModuleOp) -> ModuleOp:
    """A module in which `relax.match_cast` binds no symbol of a name that a signature binds somewhere.

    That is a name of the whole text, which TVM does not let a function define.
    """
    signatures: set[str] = set()
    for func in module.ops:
        if isinstance(func, PrimFuncOp):
            signatures |= extents(func)
        for op in func.walk():
            signatures |= {
                name for region in op.regions for block in region.blocks for name in symbols_witnessed(block)
            }
    if not any(signatures.intersection(symbols_witnessed(op)) for op in module.walk()):
        return module
    module = module.clone()
    names = Names(signatures.union(*map(all_symbols, module.ops)))
    for func in module.ops:
        renamed: dict[str, Dim] = {}
        for op in list(func.walk()):
            clashing = signatures.intersection(symbols_witnessed(op))
            renamed |= {name: symbol(names.fresh(name, name)) for name in sorted(clashing - set(renamed))}
            if clashing and (block := op.parent) is not None:
                following = itertools.dropwhile(lambda each, first=op: each is not first, block.ops)
                substitute_in(following, {name: renamed[name] for name in clashing})
    return module
