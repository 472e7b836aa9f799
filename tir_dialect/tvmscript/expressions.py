"""The text of values: constants, loads, calls, and what is computed of them.
Scalar ops and their counterparts on vectors have one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import TypeAlias

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.arithmetic import SCALE, ConvertOp, DimOp, FmodOp, GreaterOp, RampOp, ScaledExpOp
from tir_dialect.ops.calls import CallExternOp, CallPackedOp, ForeignCallOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp, buffer_type
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.ops.vectors import CompareOp, SelectOp
from tir_dialect.tvmscript.text import Level, Text, call, dim_text, dtype_text, integer, number, refuse
from tir_dialect.types import BufferType

Writer: TypeAlias = Callable[[Operation, Sequence[Text]], Text]
"""From an op and the texts of its operands to the text of its result."""


def _signed(dtype: str) -> str:
    return dtype.removeprefix("u") if dtype.startswith("uint") else dtype


def _unsigned(dtype: str) -> str:
    return f"u{dtype}" if dtype.startswith("int") else dtype


def _converted(op: Operation, operands: Sequence[Text], sign: Callable[[str], str] | None) -> list[Text]:
    """The operands in one dtype; what is not negative anyway, an index, stays as it is."""
    dtype = operands[0].dtype
    if sign is not None and not isinstance(op.operands[0].type, IndexType):
        dtype = sign(dtype)
    return [operand.of_dtype(dtype) for operand in operands]


def _infix(symbol: str, level: Level, sign: Callable[[str], str] | None = None) -> Writer:
    """An operator of Python."""

    def write(op: Operation, operands: Sequence[Text]) -> Text:
        one, other = _converted(op, operands, sign)
        stronger = Level(level + 1)
        return Text(f"{one.at(level)} {symbol} {other.at(stronger)}", one.dtype, level)

    return write


def _function(name: str, sign: Callable[[str], str] | None = None) -> Writer:
    """A function of `T`."""

    def write(op: Operation, operands: Sequence[Text]) -> Text:
        given = _converted(op, operands, sign)
        return call(f"T.{name}", *(each.text for each in given), dtype=given[0].dtype)

    return write


def _template(text: str) -> Writer:
    """An expression, bracketed, of operands that may occur several times."""
    return lambda op, operands: Text(
        f"({text.format(*(each.at(Level.ATOM) for each in operands), dtype=operands[0].dtype)})", operands[0].dtype
    )


def _extern(name: str) -> Writer:
    """A function of the C library that TVM has not."""

    def write(op: Operation, operands: Sequence[Text]) -> Text:
        suffixes = {"float32": "f", "float64": ""}
        (operand,) = operands
        if (suffix := suffixes.get(operand.dtype)) is None:
            raise refuse(op, f"TVM has no function for it, and C has one of f32 and f64 only, got {operand.dtype}")
        return call("T.call_pure_extern", f'"{operand.dtype}"', f'"{name}{suffix}"', operand.text, dtype=operand.dtype)

    return write


def _logical(symbol: str, level: Level, bitwise: Writer) -> Writer:
    """An operator of truth values, which is a bitwise one of integers."""

    def write(op: Operation, operands: Sequence[Text]) -> Text:
        if operands[0].dtype != "bool":
            return bitwise(op, operands)
        one, other = operands
        return Text(f"{one.at(level)} {symbol} {other.at(Level(level + 1))}", "bool", level)

    return write


def _exclusive_or(op: Operation, operands: Sequence[Text]) -> Text:
    one, other = operands
    if one.dtype != "bool":
        return _infix("^", Level.BIT_XOR)(op, operands)
    if other.text == "T.bool(True)":
        return Text(f"not {one.at(Level.NOT)}", "bool", Level.NOT)
    return _compared("!=", one, other)


def _compared(symbol: str, one: Text, other: Text) -> Text:
    """A comparison; Python would read one of comparisons as a chain."""
    lanes = one.dtype.partition("x")[2]
    dtype = f"boolx{lanes}" if lanes else "bool"
    return Text(f"{one.at(Level.BIT_OR)} {symbol} {other.at(Level.BIT_OR)}", dtype, Level.COMPARE)


_INTEGERS = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_UNSIGNED = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
_FLOATS = {"oeq": "==", "une": "!=", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">="}
_NEGATED = {"ult": ">=", "ule": ">", "ugt": "<=", "uge": "<"}


def _compare(op: Operation, operands: Sequence[Text]) -> Text:
    match op:
        case arith.CmpiOp():
            predicate, is_float = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], False
        case arith.CmpfOp():
            predicate, is_float = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], True
        case CompareOp():
            predicate, is_float = op.predicate.data, op.is_float
        case _:
            raise TypeError(op.name)
    if is_float:
        return _compare_floats(predicate, *operands)
    sign = _unsigned if predicate in _UNSIGNED else _signed
    one, other = (operand.of_dtype(sign(operands[0].dtype)) for operand in operands)
    return _compared((_UNSIGNED | _INTEGERS)[predicate], one, other)


def _compare_floats(predicate: str, one: Text, other: Text) -> Text:
    if predicate in _FLOATS:
        return _compared(_FLOATS[predicate], one, other)
    if predicate in _NEGATED:
        inner = _compared(_NEGATED[predicate], one, other)
        return Text(f"not {inner.at(Level.NOT)}", inner.dtype, Level.NOT)
    a, b = one.at(Level.BIT_OR), other.at(Level.BIT_OR)
    text = {
        "one": f"({a} < {b} or {a} > {b})",
        "ueq": f"(not ({a} < {b} or {a} > {b}))",
        "ord": f"({a} == {a} and {b} == {b})",
        "uno": f"({a} != {a} or {b} != {b})",
        "true": "T.bool(True)",
        "false": "T.bool(False)",
    }[predicate]
    return Text(text, "bool")


def _select(op: Operation, operands: Sequence[Text]) -> Text:
    condition, then, otherwise = operands
    return call("T.Select", condition.text, then.text, otherwise.of_dtype(then.dtype).text, dtype=then.dtype)


def _greater(op: Operation, operands: Sequence[Text]) -> Text:
    one, other = operands
    return _select(op, (_compared(">", one, other), one, other))


def _scaled_exp(op: Operation, operands: Sequence[Text]) -> Text:
    (x,) = operands
    return Text(f"T.exp({x.text}) * T.float32({SCALE})", x.dtype, Level.PRODUCT)


_SIGNS: Mapping[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "extsi": (_signed, _signed),
    "extui": (_unsigned, _unsigned),
    "sitofp": (_signed, _signed),
    "uitofp": (_unsigned, _unsigned),
    "fptoui": (_signed, _unsigned),
}
"""Which sign operand and result of a conversion have, where not that of the operand."""


def _convert(kind: str, op: Operation, operands: Sequence[Text]) -> Text:
    (operand,) = operands
    target = dtype_text(op.results[0].type)
    if operand.dtype == "bool" and kind == "extsi":
        return Text(f'-T.Cast("{target}", {operand.text})', target, Level.SIGN)
    if kind in _SIGNS:
        before, after = _SIGNS[kind]
        return operand.of_dtype(before(operand.dtype)).of_dtype(after(target))
    return operand.of_dtype(_unsigned(target) if operand.dtype.startswith("uint") else target)


def _index_cast(op: Operation, operands: Sequence[Text]) -> Text:
    """TVM's index may have 32 bits, so it is converted even where the dtypes are called alike."""
    (operand,) = operands
    target = dtype_text(op.results[0].type)
    return call("T.Cast", f'"{target}"', operand.of_dtype(_signed(operand.dtype)).text, dtype=target)


def _bitcast(op: Operation, operands: Sequence[Text]) -> Text:
    target = dtype_text(op.results[0].type)
    return call("T.reinterpret", f'"{target}"', operands[0].text, dtype=target)


def _refused(reason: str) -> Writer:
    def write(op: Operation, operands: Sequence[Text]) -> Text:
        raise refuse(op, reason)

    return write


_CONVERSIONS: Mapping[type[Operation], str] = {
    arith.ExtSIOp: "extsi",
    arith.ExtUIOp: "extui",
    arith.TruncIOp: "trunci",
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    arith.FPToSIOp: "fptosi",
    arith.FPToUIOp: "fptoui",
    arith.ExtFOp: "extf",
    arith.TruncFOp: "truncf",
}

_FUNCTIONS = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp2 floor fma log log10 log1p log2 rsqrt "
    "sin sinh sqrt tan tanh trunc"
)

WRITERS: Mapping[str, Writer] = {
    arith.AddiOp.name: _infix("+", Level.SUM),
    arith.SubiOp.name: _infix("-", Level.SUM),
    arith.MuliOp.name: _infix("*", Level.PRODUCT),
    arith.AddfOp.name: _infix("+", Level.SUM),
    arith.SubfOp.name: _infix("-", Level.SUM),
    arith.MulfOp.name: _infix("*", Level.PRODUCT),
    arith.DivfOp.name: _infix("/", Level.PRODUCT),
    arith.NegfOp.name: lambda op, operands: Text(f"-{operands[0].at(Level.SIGN)}", operands[0].dtype, Level.SIGN),
    arith.FloorDivSIOp.name: _infix("//", Level.PRODUCT, _signed),
    arith.DivUIOp.name: _infix("//", Level.PRODUCT, _unsigned),
    arith.RemUIOp.name: _infix("%", Level.PRODUCT, _unsigned),
    arith.DivSIOp.name: _function("truncdiv", _signed),
    arith.RemSIOp.name: _function("truncmod", _signed),
    arith.CeilDivSIOp.name: _function("ceildiv", _signed),
    arith.CeilDivUIOp.name: _function("ceildiv", _unsigned),
    arith.MinSIOp.name: _function("min", _signed),
    arith.MaxSIOp.name: _function("max", _signed),
    arith.MinUIOp.name: _function("min", _unsigned),
    arith.MaxUIOp.name: _function("max", _unsigned),
    arith.MinimumfOp.name: _function("min"),
    arith.MaximumfOp.name: _function("max"),
    arith.MinnumfOp.name: _template("T.Select({0} != {0}, {1}, T.Select({1} != {1}, {0}, T.min({0}, {1})))"),
    arith.MaxnumfOp.name: _template("T.Select({0} != {0}, {1}, T.Select({1} != {1}, {0}, T.max({0}, {1})))"),
    arith.AndIOp.name: _logical("and", Level.AND, _infix("&", Level.BIT_AND)),
    arith.OrIOp.name: _logical("or", Level.OR, _infix("|", Level.BIT_OR)),
    arith.XOrIOp.name: _exclusive_or,
    arith.ShLIOp.name: _infix("<<", Level.SHIFT),
    arith.ShRSIOp.name: _infix(">>", Level.SHIFT, _signed),
    arith.ShRUIOp.name: _infix(">>", Level.SHIFT, _unsigned),
    arith.CmpiOp.name: _compare,
    arith.CmpfOp.name: _compare,
    CompareOp.name: _compare,
    arith.SelectOp.name: _select,
    SelectOp.name: _select,
    arith.IndexCastOp.name: _index_cast,
    arith.BitcastOp.name: _bitcast,
    GreaterOp.name: _greater,
    ScaledExpOp.name: _scaled_exp,
    FmodOp.name: _function("fmod"),
    math.AbsFOp.name: _function("abs"),
    math.AbsIOp.name: _function("abs", _signed),
    math.PowFOp.name: _function("pow"),
    math.IPowIOp.name: _function("pow", _signed),
    math.RoundEvenOp.name: _function("nearbyint"),
    math.RoundOp.name: _refused("TVM and this project round halves differently"),
    math.CbrtOp.name: _extern("cbrt"),
    math.ExpM1Op.name: _extern("expm1"),
    math.CtPopOp.name: _function("popcount"),
    math.CountLeadingZerosOp.name: _function("clz"),
    math.CountTrailingZerosOp.name: _template("T.popcount(T.bitwise_and(T.bitwise_not({0}), {0} - T.{dtype}(1)))"),
    **{f"math.{name}": _function(name) for name in _FUNCTIONS.split()},
    **{kind.name: partial(_convert, text) for kind, text in _CONVERSIONS.items()},
    ConvertOp.name: lambda op, operands: _convert(_kind(op), op, operands),
}
"""How the ops of scalars, and those of vectors that are alike, are written, by op name."""


def _kind(op: Operation) -> str:
    assert isinstance(op, ConvertOp)
    return op.kind.data


@dataclass
class Expressions:
    """The texts of values. One that a statement has named is its name; others are written out where they are used."""

    names: dict[SSAValue, Text] = field(default_factory=dict[SSAValue, Text])
    is_symbolic: bool = False
    """Whether the function has symbols, which have 64 bits: all its indices have them then."""

    def of(self, value: SSAValue) -> Text:
        """The text of a value."""
        known = self.names.get(value)
        if known is not None:
            return known
        op = value.owner
        if not isinstance(op, Operation):
            raise ValueError("a block argument has no name")
        return self.of_op(op, value)

    def of_op(self, op: Operation, value: SSAValue) -> Text:
        """The text of a result of an op, which is written out."""
        if isinstance(op, IfOp):
            # `T.if_then_else`, of which TVM evaluates one side.
            number = op.results.index(value)
            sides: list[Text] = []
            for region in (op.then_body, op.else_body):
                last = region.block.last_op
                assert isinstance(last, YieldOp)
                sides.append(self.of(last.values[number]))
            then, otherwise = sides
            return call(
                "T.if_then_else",
                self.of(op.condition).text,
                then.text,
                otherwise.of_dtype(then.dtype).text,
                dtype=then.dtype,
            )
        write = _FORMS.get(op.name)
        if write is not None:
            return write(self, op)
        writer = WRITERS.get(op.name)
        if writer is None:
            raise refuse(op, "TVM has nothing like it")
        return writer(op, [self.of(operand) for operand in op.operands])

    def index(self, value: SSAValue) -> str:
        """The text of an index that makes a variable, which takes the dtype of it."""
        text = self.of(value)
        return text.text if text.number is None or not self.is_symbolic else f"T.int64({text.number})"

    def buffer(self, value: SSAValue) -> str:
        """The name of a buffer."""
        return self.names[value].text

    def index_text(self, op: LoadOp | StoreOp) -> str:
        """The indices of an access: `i, T.Ramp(j, 1, 8)` for a vector that extends along the last dimension."""
        indices = [self.of(index).text for index in op.indices]
        if op.lanes is not None and isinstance(op.indices[-1].type, IndexType):
            indices[-1] = f"T.Ramp({indices[-1]}, 1, {op.lanes})"
        return ", ".join(indices) or "()"

    def foreign(self, op: ForeignCallOp) -> Text:
        """A call of a function from outside."""
        arguments = [
            f"{self.buffer(each)}.data" if isinstance(each.type, BufferType) else self.of(each).text
            for each in op.arguments
        ]
        dtype = "void" if op.result is None else dtype_text(op.result.type)
        name = f'"{op.function.data}"'
        if isinstance(op, CallPackedOp):
            last = [] if op.result is None else [f'dtype="{dtype}"']
            return call("T.call_packed", name, *arguments, *last, dtype=dtype)
        function = "T.call_extern" if op.pure is None else "T.call_pure_extern"
        return call(function, f'"{dtype}"', name, *arguments, dtype=dtype)


def is_expression(op: Operation) -> bool:
    """Whether an op changes nothing, so that it can stand inside of an expression."""
    if isinstance(op, IfOp):
        return bool(op.outputs) and all(is_expression(inner) for region in op.regions for inner in region.block.ops)
    if isinstance(op, ForeignCallOp):
        return op.pure is not None and op.result is not None
    return isinstance(op, YieldOp) or op.name in _FORMS or op.name in WRITERS


def _constant(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, arith.ConstantOp)
    value = op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        return _literal(value.type, value.value.data)
    if isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat() and isinstance(value.type, VectorType):
        (first, *_) = value.get_values()
        if isinstance(first, int | float):
            scalar = _literal(value.get_element_type(), first)
            return call("T.Broadcast", scalar.text, str(value.type.get_shape()[0]), dtype=dtype_text(value.type))
    raise refuse(op, "vectors of different numbers have no literal")


def _literal(type: Attribute, value: float) -> Text:
    if isinstance(type, IndexType):
        return number(int(value))
    dtype = dtype_text(type)
    if dtype == "bool":
        return Text(f"T.bool({bool(value)})", dtype)
    if dtype.startswith("int"):
        return integer(int(value), dtype)
    if not isfinite(value):
        return Text(f'T.{dtype}("{value}")', dtype)
    # the shortest text that gives the number in this dtype
    return Text(f"T.{dtype}({numpy_dtype(type).type(value)})", dtype)


def _load(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, LoadOp)
    dtype = dtype_text(buffer_type(op.buffer).dtype)
    whole = dtype if op.lanes is None else f"{dtype}x{op.lanes}"
    name = self.buffer(op.buffer)
    if op.mask is not None:
        return call("T.masked_load", f'"{whole}"', name, self.index_text(op), self.of(op.mask).text, dtype=whole)
    return Text(f"{name}[{self.index_text(op)}]", whole)


def _dim(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, DimOp)
    return dim_text(op.dim)


def _ramp(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, RampOp)
    base, step = self.of(op.base), self.of(op.step)
    return call("T.Ramp", base.text, step.text, str(op.lanes), dtype=dtype_text(op.result.type))


def _broadcast(self: Expressions, op: Operation) -> Text:
    type = op.results[0].type
    assert isinstance(type, VectorType)
    (lanes,) = type.get_shape()
    scalar = self.of(op.operands[0])
    return call("T.Broadcast", scalar.text, str(lanes), dtype=f"{scalar.dtype}x{lanes}")


def _address(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, AddressOfOp)
    indices = ", ".join(self.of(index).text for index in op.indices) or "()"
    return call("T.address_of", f"{self.buffer(op.buffer)}[{indices}]", dtype="handle")


def _foreign(self: Expressions, op: Operation) -> Text:
    assert isinstance(op, ForeignCallOp)
    return self.foreign(op)


_FORMS: Mapping[str, Callable[[Expressions, Operation], Text]] = {
    arith.ConstantOp.name: _constant,
    LoadOp.name: _load,
    DimOp.name: _dim,
    RampOp.name: _ramp,
    vector.BroadcastOp.name: _broadcast,
    AddressOfOp.name: _address,
    CallExternOp.name: _foreign,
    CallPackedOp.name: _foreign,
}
"""The ops whose text needs more than that of their operands."""


def reads_memory(op: Operation) -> bool:
    """Whether the value of an op depends on when it is computed."""
    return any(isinstance(inner, LoadOp | ForeignCallOp) for inner in op.walk())
