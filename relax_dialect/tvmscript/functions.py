"""The text of a function of the graph level, and of those that its loops become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import SymbolTable

from relax_dialect.function_symbols import bound_symbols, captures
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import (
    CallDPSPackedOp,
    CallPackedOp,
    CallPurePackedOp,
    CallTIRInplaceOp,
    CallTIROp,
    DestinationPassing,
)
from relax_dialect.ops.calls import CallClosureOp, CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeGetOp, ShapeOp, TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.ops.values import ConstantOp, DTypeOp, NullOp, PrimOp, StringOp
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import PrimType, ShapeType, StructInfo, TensorType, TupleType
from relax_dialect.traits import purity_violations
from relax_dialect.tvmscript.operators import FIRST_OF, float_text, operator_text, quoted, type_text
from tir_dialect.dims import Dim, constant, maximum, symbol
from tir_dialect.tvmscript.text import (
    MODULE_NAMES,
    Line,
    Names,
    Suite,
    dim_text,
    dtype_text,
    refuse,
    symbol_text,
    tuple_of,
)

MOST_ELEMENTS = 4096
"""A constant with more of them is not written out."""

EXPRESSIONS = (ShapeOp, ConstantOp, PrimOp, StringOp, DTypeOp, NullOp)
"""Ops that are no statements, and mean the same everywhere in a function."""


class FunctionWriter:
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
        self._names = Names([*MODULE_NAMES, *functions.values(), *map(symbol_text, bound_symbols(func))])
        self._texts: dict[SSAValue, str] = {}
        self._counters: dict[SSAValue, Dim] = {}
        """Of each loop around: its counter in symbols of the text."""
        self._loops: list[Line] = []
        """The functions that loops became."""
        self._stem = "gv"
        """What values without a name are called; in dataflow regions another one, as TVM has it."""

    def lines(self) -> list[Line]:
        """The decorator and the definition, after the functions that its loops became."""
        func, kind = self._func, self._func.function_type
        head = self._head(func, self._functions[func.sym_name.data])
        flags = [text for text, on in (("pure=False", not kind.pure), ("private=True", func.is_private)) if on]
        attributes = ['"relax.force_pure": True'] if self._func.force_pure is not None else []
        for which, key in (("lower", "tir_var_lower_bound"), ("upper", "tir_var_upper_bound")):
            bounds = {
                symbol_text(each.symbol.data): limit
                for each in self._func.function_type.symbols
                if (limit := each.interval[which == "upper"]) not in (None, 0)
            }
            if bounds:
                attributes.append(
                    f'"{key}": {{{", ".join(f"{chr(34)}{name}{chr(34)}: {n}" for name, n in bounds.items())}}}'
                )
        body = [*([f"R.func_attr({{{', '.join(attributes)}}})"] if attributes else []), "cls = Module"]
        lines: list[Line] = self._block(func.body.block)
        self._symbols |= dict.fromkeys(self._own)
        lines = [*body, *(f"{name} = T.int64()" for name in sorted(self._used - self._own)), *lines]
        return [*self._loops, f"@R.function({', '.join(flags)})" if flags else "@R.function", Suite(head, lines)]

    def _head(self, func: FuncOp | ClosureOp, name: str) -> str:
        """The line with the parameters of a function, whose names are defined."""
        kind = func.function_type
        _require_whole_dimensions(func, kind.params, kind.symbol_names)
        for bound, witness in zip(kind.symbol_names, func.witnesses, strict=True):
            self._texts[witness] = symbol_text(bound)
        self._own |= set(map(symbol_text, kind.symbol_names))
        params = [self._parameter(value, each, func) for value, each in zip(func.params, func.param_names, strict=True)]
        return f"def {name}({', '.join(params)}) -> {self._type(_with_rank(kind.ret), func)}:"

    def _parameter(self, value: SSAValue, name: str | None, func: Operation) -> str:
        text = self._define(value, name)
        if isinstance(value.type, PrimType) and (symbol := value.type.symbol) is not None:
            raise refuse(func, f"the parameter {text} is the value of the symbol {symbol}, which TVM cannot say")
        info, names = self._named(cast("StructInfo", value.type))
        self._own |= names
        return f"{text}: {self._type(info, func)}"

    # Names

    def _define(self, value: SSAValue, hint: str | None = None) -> str:
        text = self._names.fresh(hint or value.name_hint, self._stem)
        self._texts[value] = text
        return text

    def _type(self, info: object, op: Operation) -> str:
        if isinstance(info, StructInfo):
            self._used |= set(map(symbol_text, free_symbols(info)))
        return type_text(cast("StructInfo", info), op)

    def _named(self, info: StructInfo) -> tuple[StructInfo, set[str]]:
        """A type with symbols for the dimensions that it does not know beside known ones, and these symbols."""
        match info:
            case TensorType() | ShapeType() if _is_partly_known(info):
                dims = [symbol(self._names.fresh(None, "d")) if dim is None else dim for dim in info.dims or ()]
                names = {str(new) for new, dim in zip(dims, info.dims or (), strict=True) if dim is None}
                return info.with_shape(dims) if isinstance(info, TensorType) else ShapeType(dims), names
            case TupleType():
                fields = list(map(self._named, info.fields))
                return TupleType(field for field, _ in fields), set[str]().union(*(names for _, names in fields))
            case _:
                return info, set()

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
            case DataflowOp() | IfOp() | WhileOp() | ForOp():
                return self._with_regions(op)
            case ClosureOp() | MakeClosureOp():
                return self._closure(op) if isinstance(op, ClosureOp) else self._partial_application(op)
            case _ if op.name == "relax.return":
                return [f"return {self.argument(op.operands[0])}"]
            case ConstantOp() if op.result.type.rank != 0 or op.result.has_more_than_one_use():
                return [f"{self._define(op.result)} = {_constant(op)}"]  # one tensor, which something may write into
            case TupleGetOp() | ShapeGetOp():
                self._texts[op.result] = self._expression(op)
                return []
            case _ if isinstance(op, EXPRESSIONS):
                self._texts[op.results[0]] = self._expression(op)
                return []
            case MatchCastOp():
                for symbol, witness in zip(op.symbols, op.witnesses, strict=True):
                    self._texts[witness] = symbol_text(symbol.symbol.data)
                text = f"R.match_cast({self.value(op.value)}, {self._type(self._named(op.result.type)[0], op)})"
                return [f"{self._define(op.result)} = {text}"]
            case PrintOp():
                return [f"_ = R.print({self._formatted([], op.values, op.format.data)})"]
            case AssertOp():
                values = f"[{', '.join(map(self.value, op.values))}]"
                return [f"_ = R.assert_op({self.value(op.condition)}, {values}, format={quoted(op.format.data)})"]
            case _:
                return self._binding(op, self._call(op))

    def _with_regions(self, op: DataflowOp | IfOp | WhileOp | ForOp) -> list[Line]:
        match op:
            case DataflowOp():
                return self._dataflow(op)
            case IfOp():
                return self._if(op)
            case WhileOp():
                return self._while(op)
            case ForOp():
                return self._for(op)

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
        return _local_function(head, body, pure=op.function_type.pure)

    def _partial_application(self, op: MakeClosureOp) -> list[Line]:
        """A function inside of this one that calls the other with what is captured, then its own parameters."""
        kind, callee = op.result.type, op.callee.string_value()
        if callee not in self._functions or not isinstance(SymbolTable.lookup_symbol(op, op.callee), FuncOp):
            raise refuse(op, f"TVM calls a PrimFunc such as @{callee} only by R.call_tir")
        if kind.opaque:
            raise refuse(op, f"the type of the function value says no parameters: {kind}")
        if kind.symbols:
            _require_whole_dimensions(op, kind.params, kind.symbol_names)
        name = self._define(op.result)
        params = [self._names.fresh(None, "arg") for _ in kind.params]
        typed = [f"{param}: {self._type(info, op)}" for param, info in zip(params, kind.params, strict=True)]
        self._own |= set(map(symbol_text, kind.symbol_names))
        result = self._names.fresh(None, "gv")
        arguments = [*map(self.argument, op.captured), *params]
        body = [f"{result} = cls.{self._functions[callee]}({', '.join(arguments)})", f"return {result}"]
        head = f"def {name}({', '.join(typed)}) -> {self._type(kind.ret, op)}:"
        return _local_function(head, body, pure=kind.pure)

    # Loops: functions that call themselves

    def _while(self, op: WhileOp) -> list[Line]:
        tested, block = op.condition_region.block, op.body.block

        def condition() -> tuple[list[Line], str]:
            for argument, value in zip(block.args, tested.args, strict=True):
                self._texts[value] = self._texts[argument]
            *inner, last = tested.ops
            return [line for each in inner for line in self._statement(each)], self.value(last.operands[0])

        return self._loop(op, (), condition)

    def _for(self, op: ForOp) -> list[Line]:
        """The number of iterations is a symbol of the function, and so is the counter if it is one of the loop."""
        lower, upper, step = self._bounds(op)
        if lower is None or upper is None or step is None:
            raise refuse(op, "a bound or the step is a number that no dimension says, with which TVM cannot compute")
        if op.counts_up is None:
            raise refuse(op, "whether it counts up or down is known only when it runs")
        own = None if op.counter_symbol is None else op.counter_symbol.data
        simple = lower.constant_value == 0 and step.constant_value == 1
        number = own if own is not None and simple else self._names.fresh(op.counter.name_hint if simple else None, "i")
        position = lower + symbol(number) * step
        counters = [(number, constant(0), symbol(number) + 1)]
        if own is not None and not simple:
            # What counts down to 0 ends at -1, which is no dimension.
            next_ = position + step
            counters.append((own, lower, next_) if op.counts_up else (own, maximum(lower, 0), maximum(next_, 0)))
        text = dim_text(position).text
        self._counters[op.counter] = position if own is None else symbol(own)
        self._texts[op.counter] = text if own is None else symbol_text(own)
        condition = f"{text} {'<' if op.counts_up else '>'} {dim_text(upper).text}"
        return self._loop(op, counters, lambda: ([], condition))

    def _bounds(self, op: ForOp) -> tuple[Dim | None, Dim | None, Dim | None]:
        """The lower bound, the upper one and the step, where a dimension or the counter of a loop around says it."""
        lower, upper, step = op.bounds
        return (
            self._counters.get(op.lower, lower),
            self._counters.get(op.upper, upper),
            step if op.step is None else self._counters.get(op.step, step),
        )

    def _is_variable(self, value: SSAValue) -> bool:
        """Whether the text of a value is of one function, no number, symbol or constant."""
        if value in self._counters or (isinstance(value.type, PrimType) and value.type.symbol is not None):
            return False
        return not isinstance(value.owner, EXPRESSIONS) or self._texts[value].isidentifier()

    def _loop(
        self, op: LoopOp, counters: Sequence[tuple[str, Dim, Dim]], condition: Callable[[], tuple[list[Line], str]]
    ) -> list[Line]:
        """Writes the private function that a loop becomes; gives its call.

        Parameters are the counters and the sizes around the loop, as a shape, then the carried values and those around.
        Of each counter there is its name, its value at first, and the next one.
        """
        block = op.regions[-1].block
        values, symbols = captures(op)
        carried, captured = op.carried(block), list(filter(self._is_variable, values))
        whole = _whole_dimensions(value.type for value in (*carried, *captured))
        if unknown := set(op.symbol_names) - whole:
            raise refuse(op, f"no carried value has {min(unknown)} as a whole dimension, as TVM needs it")
        dims = [self._counters[value] for value in values if value in self._counters]
        dims += [dim for dim in self._bounds(op) if dim is not None] if isinstance(op, ForOp) else []
        symbols = symbols.union(*(dim.symbols for dim in dims)) - whole
        sizes = sorted(symbols - {name for name, _, _ in counters})
        around = [(name, symbol(name), symbol(name)) for name in sizes]
        shapes = [*counters, *around]
        first = [_shape_text(dim for _, dim, _ in shapes)] if shapes else []
        first += map(self.argument, (*op.inits, *captured))
        result = self._names.fresh(op.res[0].name_hint if op.res else None, "gv")

        saved = self._own, self._used, {value: self._texts[value] for value in captured}
        self._own, self._used = {*map(symbol_text, (*whole, *(name for name, _, _ in shapes)))}, set[str]()
        for name, witness in zip(op.symbol_names, op.witnesses(block), strict=True):
            self._texts[witness] = symbol_text(name)
        name = self._names.fresh(None, f"{self._functions[self._func.sym_name.data]}_loop")
        shape = [f"{self._names.fresh(None, 'sizes')}: R.Shape([{', '.join(symbol_text(each[0]) for each in shapes)}])"]
        params = [*(shape if shapes else []), *(self._parameter(value, None, op) for value in (*carried, *captured))]
        types = [self._type(_with_rank(value.type), op) for value in op.res]
        match types:
            case [only]:
                returned, final = only, self.argument(carried[0])
            case []:  # TVM's machine does not keep an empty tuple
                returned, final = "R.Shape([])", "R.shape([])"
            case _:
                returned, final = f"R.Tuple({', '.join(types)})", self._tuple(carried)
        lines, text = condition()
        *inner, last = block.ops
        again = [line for each in inner for line in self._statement(each)]
        following = [_shape_text(dim for _, _, dim in shapes)] if shapes else []
        following += map(self.argument, (*last.operands, *captured))
        inside = self._names.fresh(None, "gv")
        self._symbols |= dict.fromkeys(self._own)
        body = [
            "cls = Module",
            *(f"{each} = T.int64()" for each in sorted(self._used - self._own)),
            *lines,
            Suite(f"if {text}:", [*again, f"{inside} = cls.{name}({', '.join(following)})"]),
            Suite("else:", [f"{inside} = {final}"]),
            f"return {inside}",
        ]
        pure = not any(True for region in op.regions for _ in purity_violations(region, name))
        flags = "private=True" if pure else "pure=False, private=True"
        self._loops += [f"@R.function({flags})", Suite(f"def {name}({', '.join(params)}) -> {returned}:", body), ""]

        self._own, self._used, texts = saved
        self._texts |= texts
        for index, value in enumerate(op.res):
            self._texts[value] = result if len(op.res) == 1 else f"{result}[{index}]"
        return [f"{result} = cls.{name}({', '.join(first)})"]

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


def _local_function(head: str, body: Sequence[Line], *, pure: bool) -> list[Line]:
    return ["@R.function" if pure else "@R.function(pure=False)", Suite(head, [*body])]


def _shape_text(dims: Iterable[Dim]) -> str:
    return f"R.shape([{', '.join(dim_text(dim).text for dim in dims)}])"


def _whole_dimensions(params: Iterable[object]) -> set[str]:
    """The symbols of which TVM finds the value: those that are a whole dimension of a parameter."""
    return {name for param in params for dim in _dims(param) if (name := dim.as_symbol) is not None}


def _require_whole_dimensions(op: Operation, params: Iterable[object], symbols: Iterable[str]) -> None:
    whole = _whole_dimensions(params)
    for name in symbols:
        if name not in whole:
            raise refuse(op, f"no parameter has {name} as a whole dimension, as TVM needs it")


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


def _is_partly_known(info: TensorType | ShapeType) -> bool:
    dims = info.dims or ()
    return None in dims and any(dim is not None for dim in dims)


def _with_rank(info: StructInfo) -> StructInfo:
    """The type of a result in TVM, which knows all dimensions or none."""
    match info:
        case TensorType() | ShapeType() if _is_partly_known(info):
            unknown = [None for _ in info.dims or ()]
            return info.with_shape(unknown) if isinstance(info, TensorType) else ShapeType(unknown)
        case TupleType():
            return TupleType(map(_with_rank, info.fields))
        case _:
            return info


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
