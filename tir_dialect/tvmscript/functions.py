"""The text of functions and modules."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.tvmscript.errors import refuse
from tir_dialect.tvmscript.lines import Line, Suite, rendered
from tir_dialect.tvmscript.statements import Statements, buffer_arguments
from tir_dialect.tvmscript.text import INDEX, Names, Text, dtype_text, python_name
from tir_dialect.types import BufferType

HEAD = (
    "from __future__ import annotations",
    "",
    "from typing import TypeVar",
    "",
)


def as_tvmscript(op: PrimFuncOp | ModuleOp) -> str:
    """A PrimFunc, or a module of PrimFuncs, as TVMScript: Python text in the syntax of TVM 0.27.

    ```python
    n = TypeVar("n")


    @T.prim_func(s_tir=True)
    def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2.0)
    ```

    TVM reads the text, and so does `relax_dialect.frontend.tvmscript`. A symbol that is no extent of a buffer becomes
    a parameter. Bounds of symbols, which TVM's PrimFuncs have not, are left out. Integer division by
    0 and conversions out of range are defined here, and are not there.

    Raises `ScriptError`, a ValueError, for what TVM has no text for; TypeError for what is neither function nor module.
    """
    if not isinstance(cast("object", op), PrimFuncOp | ModuleOp):
        raise TypeError(f"as_tvmscript expected a tir.prim_func or a module of them, got {type(op).__name__}")
    funcs = [op] if isinstance(op, PrimFuncOp) else _prim_funcs(op)
    names = sorted({name for func in funcs for name in extents(func)})
    module = [] if isinstance(op, PrimFuncOp) else ["from tvm.script import ir as I"]
    symbols = [f'{python_name(name)} = TypeVar("{python_name(name)}")' for name in names]
    head = [*HEAD, *module, "from tvm.script import tirx as T", "", *symbols, "", ""]
    texts = [function_lines(func) for func in funcs]
    if isinstance(op, PrimFuncOp):
        return "\n".join([*head, *rendered(texts[0])]) + "\n"
    body: list[Line] = []
    for lines in texts:
        body += [*lines, ""]
    text = rendered(["@I.ir_module", Suite("class Module:", body[:-1])])
    return "\n".join([*head, *(line.rstrip() for line in text)]) + "\n"


def _prim_funcs(module: ModuleOp) -> list[PrimFuncOp]:
    funcs: list[PrimFuncOp] = []
    for op in module.ops:
        if not isinstance(op, PrimFuncOp):
            raise refuse(op, "expected a module of PrimFuncs alone")
        funcs.append(op)
    return funcs


def extents(func: PrimFuncOp) -> set[str]:
    """The symbols that a buffer has as an extent: callers need not say what they are."""
    types = [param.type for param in func.params]
    dims = (dim for type in types if isinstance(type, BufferType) for dim in type.shape)
    return {name for dim in dims if (name := dim.as_symbol) is not None}


def function_lines(func: PrimFuncOp) -> list[Line]:
    """The lines of one function, whose extents are names of the module."""
    found = extents(func)
    symbols = dict(zip(func.symbol_names, func.symbol_args, strict=True))
    writer = Statements(Names([func.sym_name.data, *map(python_name, symbols)]))
    writer.expressions.is_symbolic = bool(symbols)
    for name, argument in symbols.items():
        writer.expressions.names[argument] = Text(python_name(name), INDEX)
    # those that shapes are made of stand before the buffers, and the others after
    used = frozenset[str]().union(*(param.type.symbols for param in func.params if isinstance(param.type, BufferType)))
    sizes = {name: f"{python_name(name)}: T.int64" for name in symbols if name not in found}
    parameters = [text for name, text in sizes.items() if name in used]
    parameters += [_parameter(writer, param) for param in func.params]
    parameters += [text for name, text in sizes.items() if name not in used]
    alias = f'T.func_attr({{"tirx.noalias": {func.may_alias is None}}})'
    head = f"def {python_name(func.sym_name.data)}({', '.join(parameters)}):"
    private = "private=True, " if func.is_private else ""
    return [f"@T.prim_func({private}s_tir=True)", Suite(head, [alias, *writer.of(func.body.block, in_block=True)])]


def _parameter(writer: Statements, param: SSAValue) -> str:
    if isinstance(param.type, BufferType):
        return f"{writer.name(param, 'buffer', 'handle')}: T.Buffer({buffer_arguments(param.type)})"
    dtype = dtype_text(param.type)
    return f"{writer.name(param, 'scalar', dtype)}: T.{dtype}"
