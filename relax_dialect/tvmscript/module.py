"""The text of modules and of functions of the graph level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import (
    CallDPSPackedOp,
    CallPackedOp,
    CallPurePackedOp,
    CallTIRInplaceOp,
    CallTIROp,
    DestinationPassing,
)
from relax_dialect.ops.calls import CallClosureOp, CallOp
from relax_dialect.ops.control_flow import IfOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeGetOp, ShapeOp, TupleGetOp, TupleOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.ops.values import ConstantOp, DTypeOp, NullOp, PrimOp, StringOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from relax_dialect.tvmscript.operators import FIRST_OF, float_text, operator_text, quoted, type_text
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.tvmscript.functions import HEAD, extents, function_lines
from tir_dialect.tvmscript.functions import as_tvmscript as prim_funcs_as_tvmscript
from tir_dialect.tvmscript.text import Line, Names, Suite, dim_text, dtype_text, python_name, refuse, rendered, tuple_of

MOST_ELEMENTS = 4096
"""A constant with more of them is not written out."""


def as_tvmscript(module: ModuleOp) -> str:
    """A module of Relax functions and PrimFuncs as TVMScript: Python text in the syntax of TVM 0.27.

    TVM reads the text, and so does `relax_dialect.frontend.tvmscript`. Names of parameters and values are kept as far
    as Python has them; locations are left out.

    Raises `ScriptError`, a ValueError, for an op or a type that TVM has no text for; TypeError for what is no module.
    """
    if not isinstance(cast("object", module), ModuleOp):
        raise TypeError(f"as_tvmscript expected a module, got {type(module).__name__}")
    if not any(isinstance(op, FuncOp) for op in module.ops):
        return prim_funcs_as_tvmscript(module)
    symbols: dict[str, None] = {}
    texts: list[list[Line]] = []
    globals_ = {_symbol_name(op): python_name(_symbol_name(op)) for op in module.ops}
    for op in module.ops:
        match op:
            case FuncOp():
                texts.append(_Function(op, globals_, symbols).lines())
            case PrimFuncOp():
                symbols |= dict.fromkeys(sorted(map(python_name, extents(op))))
                texts.append(function_lines(op))
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


class _Function:
    """Writes one function."""

    def __init__(self, func: FuncOp, functions: Mapping[str, str], symbols: dict[str, None]):
        self._func = func
        self._functions = functions
        """The names of functions in the text."""
        self._symbols = symbols
        """The symbols that are parameters of functions, which this one adds to."""
        self._used = set[str]()
        """Those that this function uses."""
        self._own = set[str]()
        """Those that a signature binds, of this function or of one inside."""
        self._names = Names(["R", "cls", "Module", "float", *functions.values()])
        self._texts: dict[SSAValue, str] = {}
        self._stem = "gv"
        """What values without a name are called; in dataflow regions another one, as TVM has it."""

    def lines(self) -> list[Line]:
        """The decorator and the definition."""
        func, kind = self._func, self._func.function_type
        head = self._head(func, self._functions[func.sym_name.data])
        flags = [text for text, on in (("pure=False", not kind.pure), ("private=True", func.is_private)) if on]
        attributes = self._attributes()
        body = [*([f"R.func_attr({{{', '.join(attributes)}}})"] if attributes else []), "cls = Module"]
        lines: list[Line] = self._block(func.body.block)
        self._symbols |= dict.fromkeys(self._own)
        lines = [*body, *(f"{name} = T.int64()" for name in sorted(self._used - self._own)), *lines]
        return [f"@R.function({', '.join(flags)})" if flags else "@R.function", Suite(head, lines)]

    def _head(self, func: FuncOp | ClosureOp, name: str) -> str:
        """The line with the parameters of a function, whose names are defined."""
        kind = func.function_type
        _require_bare_symbols(func)
        for symbol, witness in zip(kind.symbol_names, func.witnesses, strict=True):
            self._texts[witness] = python_name(symbol)
        self._own |= set(map(python_name, kind.symbol_names))
        params = [self._parameter(value, each, func) for value, each in zip(func.params, func.param_names, strict=True)]
        return f"def {name}({', '.join(params)}) -> {self._type(kind.ret, func)}:"

    def _parameter(self, value: SSAValue, name: str, func: Operation) -> str:
        text = self._define(value, name)
        if isinstance(value.type, PrimType) and (symbol := value.type.symbol) is not None:
            raise refuse(func, f"the parameter {name} is the value of the symbol {symbol}, which TVM cannot say")
        return f"{text}: {self._type(value.type, func)}"

    def _attributes(self) -> list[str]:
        found = ['"relax.force_pure": True'] if self._func.force_pure is not None else []
        for which, key in (("lower", "tir_var_lower_bound"), ("upper", "tir_var_upper_bound")):
            bounds = {
                python_name(each.symbol.data): limit
                for each in self._func.function_type.symbols
                if (limit := each.interval[which == "upper"]) not in (None, 0)
            }
            if bounds:
                found.append(
                    f'"{key}": {{{", ".join(f"{chr(34)}{name}{chr(34)}: {n}" for name, n in bounds.items())}}}'
                )
        return found

    # Names

    def _define(self, value: SSAValue, hint: str | None = None) -> str:
        text = self._names.fresh(hint or value.name_hint, self._stem)
        self._texts[value] = text
        return text

    def _type(self, info: object, op: Operation) -> str:
        if isinstance(info, StructInfo):
            self._used |= set(map(python_name, free_symbols(info)))
        return type_text(cast("StructInfo", info), op)

    def value(self, value: SSAValue) -> str:
        """A value where an operator takes it."""
        return self._texts[value]

    def argument(self, value: SSAValue) -> str:
        """A value where a function takes it, or a tuple: numbers are values there, too."""
        text = self._texts[value]
        return f"R.prim_value({text})" if isinstance(value.type, PrimType) and not text.isidentifier() else text

    # Statements

    def _block(self, block: Block) -> list[Line]:
        lines: list[Line] = []
        for op in block.ops:
            lines += self._statement(op)
        return lines or ["pass"]

    def _statement(self, op: Operation) -> list[Line]:
        match op:
            case DataflowOp():
                return self._dataflow(op)
            case IfOp():
                return self._if(op)
            case ClosureOp():
                return self._closure(op)
            case _ if op.name == "relax.return":
                return [f"return {self.argument(op.operands[0])}"]
            case ConstantOp() if op.result.type.rank != 0 or op.result.has_more_than_one_use():
                return [f"{self._define(op.result)} = {_constant(op)}"]  # one tensor, which something may write into
            case ShapeOp() | ConstantOp() | PrimOp() | StringOp() | DTypeOp() | NullOp() | ShapeGetOp() | TupleGetOp():
                self._texts[op.results[0]] = self._expression(op)
                return []
            case MatchCastOp():
                for symbol, witness in zip(op.symbols, op.witnesses, strict=True):
                    self._texts[witness] = python_name(symbol.symbol.data)
                text = f"R.match_cast({self.value(op.value)}, {self._type(op.result.type, op)})"
                return [f"{self._define(op.result)} = {text}"]
            case PrintOp():
                return [f"_ = R.print({self._formatted([], op.values, op.format.data)})"]
            case AssertOp():
                values = f"[{', '.join(map(self.value, op.values))}]"
                return [f"_ = R.assert_op({self.value(op.condition)}, {values}, format={quoted(op.format.data)})"]
            case _:
                return self._binding(op, self._call(op))

    def _formatted(self, first: Sequence[str], values: Sequence[SSAValue], text: str) -> str:
        return ", ".join([*first, *map(self.argument, values), f"format={quoted(text)}"])

    def _binding(self, op: Operation, text: str) -> list[Line]:
        """`lv = ...`; the results of several are fields of a tuple."""
        if not op.results:
            return [f"_ = {text}"]
        if isinstance(op, CallPackedOp) and op.results[0].first_use is None:
            return [f"_ = {text}"]
        if len(op.results) == 1 and op.name not in FIRST_OF:
            return [f"{self._define(op.results[0])} = {text}"]
        name = self._names.fresh(op.results[0].name_hint, self._stem)
        for index, result in enumerate(op.results):
            self._texts[result] = f"{name}[{index}]"
        return [f"{name} = {text}"]

    def _dataflow(self, op: DataflowOp) -> list[Line]:
        lines: list[Line] = []
        *inner, output = op.body.block.ops
        self._stem = "lv"
        for each in inner:
            lines += self._statement(each)
        self._stem = "gv"
        shown: list[str] = []
        for result, value in zip(op.res, output.operands, strict=True):
            text = self._texts[value]
            if isinstance(value.type, PrimType) and value.type.symbol is not None:
                self._texts[result] = text
                continue
            if not text.isidentifier() or text in shown or value.owner.parent is not op.body.block:
                text = self._define(result)
                lines.append(f"{text} = {self.argument(value)}")
            shown.append(text)
            self._texts[result] = text
        lines.append(f"R.output({', '.join(shown)})")
        return [Suite("with R.dataflow():", lines)]

    def _closure(self, op: ClosureOp) -> list[Line]:
        """A function inside of another one; if it calls itself, by its name."""
        name = self._define(op.result)
        if op.itself is not None:
            self._texts[op.itself] = name
        stem, self._stem = self._stem, "gv"
        head, body = self._head(op, name), self._block(op.body.block)
        self._stem = stem
        return ["@R.function" if op.function_type.pure else "@R.function(pure=False)", Suite(head, body)]

    def _if(self, op: IfOp) -> list[Line]:
        """A branch; several results, or none, are a tuple."""
        result = self._names.fresh(op.res[0].name_hint if op.res else None, "gv")
        suites: list[Line] = []
        for head, region in ((f"if {self.value(op.condition)}:", op.then_region), ("else:", op.else_region)):
            lines: list[Line] = []
            *inner, last = region.block.ops
            for each in inner:
                lines += self._statement(each)
            values = list(map(self.argument, last.operands))
            if len(values) != 1:
                fields, values = self._tuple(last.operands), [self._names.fresh(None, "gv")]
                lines.append(f"{values[0]} = {fields}")
            lines.append(f"{result} = {values[0]}")
            suites.append(Suite(head, lines))
        for index, each in enumerate(op.res):
            self._texts[each] = result if len(op.res) == 1 else f"{result}[{index}]"
        return suites

    # Expressions

    def _expression(self, op: Operation) -> str:
        match op:
            case ShapeOp():
                return f"R.shape([{', '.join(dim_text(dim.data).text for dim in op.values)}])"
            case ConstantOp():
                return _constant(op)
            case PrimOp():
                return _number(op)
            case StringOp():
                return f"R.str({quoted(op.value.data)})"
            case DTypeOp():
                return f'R.dtype("{dtype_text(op.value)}")'
            case TupleGetOp():
                return f"{self.value(op.tuple)}[{op.index.value.data}]"
            case NullOp():
                return "R.null_value()"
            case _:
                raise refuse(op, "TVM 0.27 has no such operator")

    def _call(self, op: Operation) -> str:
        match op:
            case TupleOp():
                return tuple_of([self.argument(field) for field in op.fields]) if op.fields else "R.tuple()"
            case CallTIROp() | CallTIRInplaceOp():
                return self._call_tir(op)
            case CallDPSPackedOp():
                return (
                    f"R.call_dps_packed({quoted(op.symbol.data)}, {self._tuple(op.arguments)}, out_ty={self._out(op)})"
                )
            case CallPackedOp() | CallPurePackedOp():
                which = op.name.removeprefix("relax.")
                arguments = [quoted(op.symbol.data), *map(self.argument, op.arguments)]
                types = [self._type(result.type, op) for result in op.results] or ["R.Tuple()"]
                return f"R.{which}({', '.join([*arguments, f'ty_args=({types[0]},)'])})"
            case CallOp():
                callee = self._functions[op.callee.string_value()]
                return f"cls.{callee}({', '.join(map(self.argument, op.arguments))})"
            case CallClosureOp():
                return f"{self.value(op.callee)}({', '.join(map(self.argument, op.arguments))})"
            case Operator():
                return operator_text(cast("IRDLOperation", op), self.value)
            case _:
                raise refuse(op, "TVMScript has no text for it")

    def _tuple(self, values: Sequence[SSAValue]) -> str:
        return tuple_of([self.argument(value) for value in values]) if values else "R.tuple()"

    def _call_tir(self, op: CallTIROp | CallTIRInplaceOp) -> str:
        arguments = [f"cls.{self._functions[op.callee.string_value()]}", self._tuple(op.arguments)]
        if op.tir_vars.data:
            raise refuse(op, "TVM 0.27 has no values of symbols beside the arguments")
        if isinstance(op, CallTIRInplaceOp):
            return (
                f"R.call_tir_inplace({', '.join(arguments)}, {list(op.inplace.get_values())}, out_ty={self._out(op)})"
            )
        return f"R.call_tir({', '.join(arguments)}, out_ty={self._out(op)})"

    def _out(self, op: DestinationPassing) -> str:
        if op.shapes:
            raise refuse(op, "the shape of a result is a value, which TVM's call does not take")
        types = [self._type(result.type, op) for result in op.res]
        return types[0] if len(types) == 1 else f"[{', '.join(types)}]"


def _require_bare_symbols(func: FuncOp | ClosureOp) -> None:
    """TVM finds the value of a symbol where it is a whole dimension of a parameter."""
    kind = func.function_type
    bare = {name for param in kind.params for dim in _dims(param) if (name := dim.as_symbol) is not None}
    for name in kind.symbol_names:
        if name not in bare:
            raise refuse(func, f"no parameter has {name} as a whole dimension, as TVM needs it")


def _dims(info: object) -> Iterator[Dim]:
    """The known dimensions in a type."""
    match info:
        case TensorType() | ShapeType():
            yield from (dim for dim in info.dims or () if dim is not None)
        case TupleType():
            for field in info.fields:
                yield from _dims(field)
        case _:
            return


def _constant(op: ConstantOp) -> str:
    """A tensor with its elements."""
    dtype, array = op.result.type.dtype, op.array
    if array is None or dtype is None:
        raise refuse(op, "its elements are in another file, and not in the text")
    if array.size > MOST_ELEMENTS:
        raise refuse(op, f"a constant of more than {MOST_ELEMENTS} elements is not written out")
    if array.size == 0:
        return f'R.zeros(R.shape({list(array.shape)}), "{dtype_text(dtype)}")'
    return f'R.const({_nested(array.tolist())}, "{dtype_text(dtype)}")'


def _nested(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, cast('list[object]', value)))}]"
    return float_text(value) if isinstance(value, float) else repr(value)


def _number(op: PrimOp) -> str:
    match op.value:
        case IntegerAttr():
            dtype = dtype_text(op.value.type)
            value = op.value.value.data
            return str(bool(value)) if dtype == "bool" else str(value) if dtype == "int64" else f"T.{dtype}({value})"
        case FloatAttr():
            return f"T.{dtype_text(op.value.type)}({float_text(op.value.value.data)})"
        case _:
            return dim_text(op.value.data).text
