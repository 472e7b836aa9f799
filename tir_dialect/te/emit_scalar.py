"""From expressions to ops of arith and math: one op per function, or an expansion; each expression once per region.

The signs of index expressions are analysed: division of non-negative operands can be unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, f32, f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from tir_dialect import dims
from tir_dialect.dims import Dim, Prover, symbol
from tir_dialect.dtypes import scalar_type
from tir_dialect.ops.arithmetic import DimOp, FmodOp
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_bool, is_float, is_index, is_unsigned
from tir_dialect.te.expr import DType, Expr
from tir_dialect.te.nodes import IterVar, Tensor, post_order
from tir_dialect.types import as_name_hint

DIM_FUNCTIONS: Mapping[str, Callable[[Dim, Dim], Dim]] = MappingProxyType(
    {
        "add": Dim.__add__,
        "subtract": Dim.__sub__,
        "multiply": Dim.__mul__,
        "floordiv": dims.floordiv,
        "floormod": dims.mod,
        "minimum": dims.minimum,
        "maximum": dims.maximum,
    }
)
_DIVISIONS = ("floordiv", "floormod")


def dim_of(function: str, operands: Sequence[Dim]) -> Dim | None:
    """`function(*operands)`, named as in `nodes.Apply`; `None` if dimensions lack it, or for a division by 0."""
    compute = DIM_FUNCTIONS.get(function)
    if compute is None or len(operands) != 2:
        return None
    if function in _DIVISIONS and operands[1].constant_value == 0:
        return None
    return compute(*operands)


class Signs:
    """Sign analysis of expressions over the given iterators, each of which runs from 0 to its extent."""

    def __init__(self, variables: Iterable[IterVar] = ()):
        self._symbols = {variable: symbol(f"_{number}.{variable.name}") for number, variable in enumerate(variables)}
        self._dims: dict[Expr, Dim | None] = {}
        self._prover: Prover | None = None

    def divides_unsigned(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether neither side is negative for any values of the variables; a divisor 0 has no result anyway."""
        dividend, divisor = self._dim(lhs), self._dim(rhs)
        if dividend is None or divisor is None:
            return False
        prover = self._known()
        return bool(prover.less_equal(0, dividend)) and bool(prover.less_equal(0, divisor))

    def less_equal(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether the left side is at most the right side for all values of the variables."""
        low, high = self._dim(lhs), self._dim(rhs)
        return low is not None and high is not None and bool(self._known().less_equal(low, high))

    def _known(self) -> Prover:
        if self._prover is None:
            # An iterator without values has no bounds; what it indexes is not executed.
            lengths = {dim: axis.length for axis, dim in self._symbols.items()}
            limits = {dim: length for dim, length in lengths.items() if length is None or length.constant_value != 0}
            self._prover = Prover({str(dim): (0, None if n is None else n - 1) for dim, n in limits.items()})
        return self._prover

    def _dim(self, root: Expr) -> Dim | None:
        for expr in post_order((root,), lambda node: () if node in self._dims else node.operands):
            if expr not in self._dims:
                if isinstance(expr, nodes.Size):
                    self._dims[expr] = expr.dim
                elif isinstance(expr, IterVar):
                    self._dims[expr] = self._symbols.get(expr)
                elif not isinstance(expr, nodes.Apply):
                    self._dims[expr] = None
                else:
                    operands = [self._dims[operand] for operand in expr.operands]
                    known = [dim for dim in operands if dim is not None]
                    self._dims[expr] = dim_of(expr.function, known) if len(known) == len(operands) else None
        return self._dims[root]


Insert: TypeAlias = "Callable[[Operation], SSAValue]"
"""Puts an op at the insertion point and returns its result."""


def value_type(dtype: DType) -> AnyFloat | IntegerType | IndexType:
    """The type of a scalar of `dtype`: `ui8` is `i8`."""
    return dtype if isinstance(dtype, IndexType) else scalar_type(dtype)


def emit_cast(insert: Insert, value: SSAValue, source: DType, target: DType) -> SSAValue:
    """`value`, read as `source`, converted to `target`, which is not `i1` unless `source` is."""
    if isinstance(source, AnyFloat):
        if isinstance(target, AnyFloat):
            if source == target:
                return value
            if max(source.bitwidth, target.bitwidth) < f32.bitwidth:
                # These have no common order: all are exact in f32
                value, source = insert(arith.ExtFOp(value, f32)), f32
            op = arith.ExtFOp if source.bitwidth < target.bitwidth else arith.TruncFOp
            return insert(op(value, target))
        if isinstance(target, IndexType):
            return insert(arith.IndexCastOp(insert(arith.FPToSIOp(value, i64)), target))
        op = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
        return insert(op(value, _integer(target)))
    if isinstance(target, AnyFloat):
        if isinstance(source, IndexType):
            value = insert(arith.IndexCastOp(value, i64))
        op = arith.UIToFPOp if is_bool(source) or is_unsigned(source) else arith.SIToFPOp
        return insert(op(value, target))
    if isinstance(source, IndexType):
        return value if isinstance(target, IndexType) else insert(arith.IndexCastOp(value, _integer(target)))
    if isinstance(target, IndexType):
        # `index_cast` extends the sign
        unsigned = is_bool(source) or is_unsigned(source)
        return insert(arith.IndexCastOp(_resize(insert, value, source, i64) if unsigned else value, target))
    return _resize(insert, value, source, _integer(target))


def _resize(insert: Insert, value: SSAValue, source: DType, target: IntegerType) -> SSAValue:
    width = _integer(source).width.data
    if width == target.width.data:
        return value
    if width > target.width.data:
        return insert(arith.TruncIOp(value, target))
    unsigned = is_bool(source) or is_unsigned(source)
    return insert(arith.ExtUIOp(value, target) if unsigned else arith.ExtSIOp(value, target))


def _integer(dtype: DType) -> IntegerType:
    kind = value_type(dtype)
    if not isinstance(kind, IntegerType):
        raise TypeError(f"te: expected an integer dtype, got {dtype}")
    return kind


OpTable: TypeAlias = "Mapping[str, Callable[..., Operation]]"

_FLOAT_OPS: OpTable = {
    "add": arith.AddfOp,
    "subtract": arith.SubfOp,
    "multiply": arith.MulfOp,
    "divide": arith.DivfOp,
    "negative": arith.NegfOp,
    "minimum": arith.MinimumfOp,
    "maximum": arith.MaximumfOp,
    "fmin": arith.MinnumfOp,
    "fmax": arith.MaxnumfOp,
    "absolute": math.AbsFOp,
    "power": math.PowFOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "trunc": math.TruncOp,
    "round": math.RoundEvenOp,
    "round_away": math.RoundOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "cbrt": math.CbrtOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "atan2": math.Atan2Op,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
    "erf": math.ErfOp,
    "fma": math.FmaOp,
    "copysign": math.CopySignOp,
    "select": arith.SelectOp,
}

_INTEGER_OPS: OpTable = {
    "add": arith.AddiOp,
    "subtract": arith.SubiOp,
    "multiply": arith.MuliOp,
    "bitwise_and": arith.AndIOp,
    "bitwise_or": arith.OrIOp,
    "bitwise_xor": arith.XOrIOp,
    "left_shift": arith.ShLIOp,
    "popcount": math.CtPopOp,
    "count_leading_zeros": math.CountLeadingZerosOp,
    "select": arith.SelectOp,
}

_SIGNED_OPS: OpTable = {
    **_INTEGER_OPS,
    "floordiv": arith.FloorDivSIOp,
    "truncdiv": arith.DivSIOp,
    "truncmod": arith.RemSIOp,
    "minimum": arith.MinSIOp,
    "maximum": arith.MaxSIOp,
    "absolute": math.AbsIOp,
    "power": math.IPowIOp,
    "right_shift": arith.ShRSIOp,
}

_UNSIGNED_OPS: OpTable = {
    **_INTEGER_OPS,
    "floordiv": arith.DivUIOp,
    "floormod": arith.RemUIOp,
    "truncdiv": arith.DivUIOp,
    "truncmod": arith.RemUIOp,
    "minimum": arith.MinUIOp,
    "maximum": arith.MaxUIOp,
    "right_shift": arith.ShRUIOp,
}

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
PREDICATES = frozenset(_FLOAT_PREDICATES)
"""The functions that compare."""


def op_table(dtype: DType) -> OpTable:
    """The functions of operands of `dtype` that are one op."""
    if is_float(dtype):
        return _FLOAT_OPS
    return _UNSIGNED_OPS if is_bool(dtype) or is_unsigned(dtype) else _SIGNED_OPS


def integer_predicate(predicate: str, dtype: DType) -> str:
    """The predicate of `arith.cmpi` for integers, indices and truth values."""
    if predicate in ("eq", "ne"):
        return predicate
    return ("u" if is_bool(dtype) or is_unsigned(dtype) else "s") + predicate


def float_predicate(predicate: str) -> str:
    """The predicate of `arith.cmpf`: a comparison with NaN is false, but for `ne`."""
    return _FLOAT_PREDICATES[predicate]


Expansion: TypeAlias = "Callable[[Insert, Sequence[SSAValue], DType], SSAValue]"
"""Emits a function of values that are read as the dtype."""


def expansion(function: str, dtype: DType) -> Expansion:
    """How to compute `function` of operands of `dtype`; KeyError if there is no such function."""
    if function in PREDICATES:
        return _compare(function)
    return (_FLOAT_EXPANSIONS if is_float(dtype) else _INTEGER_EXPANSIONS)[function]


def _compare(predicate: str) -> Expansion:
    def emit(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
        lhs, rhs = values
        if is_float(dtype):
            return insert(arith.CmpfOp(lhs, rhs, float_predicate(predicate)))
        return insert(arith.CmpiOp(lhs, rhs, integer_predicate(predicate, dtype)))

    return emit


def _float_floordiv(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    return insert(math.FloorOp(insert(arith.DivfOp(values[0], values[1]))))


def _float_truncmod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    # It is exact, so computing it in f32 is exact for the narrower types, too
    if dtype == f64:
        return insert(FmodOp(*values))
    wide = [emit_cast(insert, value, dtype, f32) for value in values]
    return emit_cast(insert, insert(FmodOp(*wide)), f32, dtype)


def _float_floormod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    divisor = values[1]
    remainder = _float_truncmod(insert, values, dtype)
    zero = insert(arith.ConstantOp(FloatAttr(0.0, _float_type(dtype))))
    negative = [insert(arith.CmpfOp(value, zero, "olt")) for value in (remainder, divisor)]
    nonzero = insert(arith.CmpfOp(remainder, zero, "une"))
    wrong = insert(arith.AndIOp(nonzero, insert(arith.XOrIOp(negative[0], negative[1]))))
    shifted = insert(arith.AddfOp(remainder, divisor))
    # a zero remainder takes the sign of the divisor, as in Python and NumPy
    signed = insert(math.CopySignOp(remainder, divisor))
    return insert(arith.SelectOp(wrong, shifted, insert(arith.SelectOp(nonzero, remainder, signed))))


def _signed_floormod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    lhs, rhs = values
    if is_index(dtype):  # as analyses of indices know it
        quotient = insert(arith.FloorDivSIOp(lhs, rhs))
        return insert(arith.SubiOp(lhs, insert(arith.MuliOp(quotient, rhs))))
    remainder = insert(arith.RemSIOp(lhs, rhs))
    zero = emit_constant(insert, 0, dtype)
    nonzero = insert(arith.CmpiOp(remainder, zero, "ne"))
    differ = insert(arith.CmpiOp(insert(arith.XOrIOp(remainder, rhs)), zero, "slt"))
    wrong = insert(arith.AndIOp(nonzero, differ))
    return insert(arith.SelectOp(wrong, insert(arith.AddiOp(remainder, rhs)), remainder))


def _unsigned_power(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    # math.ipowi reads its exponent as signed; 64 bits hold every narrower unsigned one
    base, exponent = (emit_cast(insert, value, dtype, i64) for value in values)
    if isinstance(dtype, IntegerType) and dtype.width.data == 64:
        # An exponent below 2**63 with the same powers modulo 2**64: those of odd numbers repeat after
        # 2**62, and those of even numbers are 0 from the 64th on.
        zero, rest, many = (insert(arith.ConstantOp(IntegerAttr(each, i64))) for each in (0, 2**62 - 1, 2**62))
        is_large = insert(arith.CmpiOp(exponent, zero, "slt"))
        exponent = insert(
            arith.SelectOp(is_large, insert(arith.OrIOp(insert(arith.AndIOp(exponent, rest)), many)), exponent)
        )
    return emit_cast(insert, insert(math.IPowIOp(base, exponent)), i64, dtype)


def _isnan(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    return insert(arith.CmpfOp(values[0], values[0], "uno"))


def _magnitude(predicate: str) -> Expansion:
    def emit(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
        infinity = insert(arith.ConstantOp(FloatAttr(inf, _float_type(dtype))))
        return insert(arith.CmpfOp(insert(math.AbsFOp(values[0])), infinity, predicate))

    return emit


def _float_type(dtype: DType) -> AnyFloat:
    if not isinstance(dtype, AnyFloat):
        raise TypeError(f"te: expected a float dtype, got {dtype}")
    return dtype


_FLOAT_EXPANSIONS: Mapping[str, Expansion] = {
    "floordiv": _float_floordiv,
    "floormod": _float_floormod,
    "truncmod": _float_truncmod,
    "isnan": _isnan,
    "isinf": _magnitude("oeq"),
    "isfinite": _magnitude("olt"),
}

_INTEGER_EXPANSIONS: Mapping[str, Expansion] = {
    "floormod": _signed_floormod,
    "power": _unsigned_power,
}


def emit_reinterpret(insert: Insert, value: SSAValue, target: DType) -> SSAValue:
    """The bits of `value` as a value of `target`."""
    kind = value_type(target)
    return value if value.type == kind else insert(arith.BitcastOp(value, kind))


def emit_constant(insert: Insert, value: float | bool, dtype: DType) -> SSAValue:
    """The number `value` of `dtype`."""
    kind = value_type(dtype)
    if isinstance(kind, AnyFloat):
        return insert(arith.ConstantOp(FloatAttr(float(value), kind)))
    if kind == i1:
        return insert(arith.ConstantOp(IntegerAttr.from_bool(bool(value))))
    number = int(value)
    if is_unsigned(dtype) and isinstance(kind, IntegerType) and number >= 2 ** (kind.width.data - 1):
        number -= 2**kind.width.data
    return insert(arith.ConstantOp(IntegerAttr(number, kind)))


_UNSIGNED_DIVISION = {"floordiv": arith.DivUIOp, "floormod": arith.RemUIOp}


@dataclass
class Names:
    """What expressions may refer to: buffers of tensors, values of variables, arguments of symbols."""

    buffers: dict[Tensor, SSAValue] = field(default_factory=dict[Tensor, SSAValue])
    variables: dict[Expr, SSAValue] = field(default_factory=dict[Expr, SSAValue])
    symbols: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


def emit_dim(insert: Callable[[Operation], SSAValue], dim: Dim, names: Names) -> SSAValue:
    """The value of a dimension: an argument, a constant, or `tir.dim`."""
    if (value := dim.constant_value) is not None:
        return insert(arith.ConstantOp(IntegerAttr(value, IndexType())))
    if (name := dim.as_symbol) is not None:
        return names.symbols[name]
    return insert(DimOp(dim))


class ScalarEmitter:
    """Appends the ops of expressions to a block and remembers the values."""

    def __init__(
        self, block: Block, names: Names, signs: Signs | None = None, values: Mapping[Expr, SSAValue] | None = None
    ):
        self.block = block
        self._names = names
        self._signs = signs or Signs()
        self._values: dict[Expr, SSAValue] = dict(values or {})

    def emit(self, *roots: Expr) -> tuple[SSAValue, ...]:
        """The values of the expressions."""
        for expr in post_order(roots, self._needed):
            if expr not in self._values:
                self._values[expr] = self._value(expr)
        return tuple(self._values[root] for root in roots)

    def inside(self, block: Block) -> ScalarEmitter:
        """An emitter for a block that what has been emitted so far dominates."""
        return ScalarEmitter(block, self._names, self._signs, self._values)

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Appends an op with one result."""
        self.block.add_op(op)
        op.results[0].name_hint = as_name_hint(hint)
        return op.results[0]

    def _needed(self, expr: Expr) -> tuple[Expr, ...]:
        if expr in self._values:
            return ()
        # the branches of a conditional are emitted into regions of their own
        return expr.operands[:1] if isinstance(expr, nodes.Conditional) else expr.operands

    def _value(self, expr: Expr) -> SSAValue:
        operands = [self._values[operand] for operand in expr.operands if operand in self._values]
        match expr:
            case nodes.Var():
                return self._names.variables[expr]
            case nodes.Const():
                return emit_constant(self.insert, expr.value, expr.dtype)
            case nodes.Size():
                return emit_dim(self.insert, expr.dim, self._names)
            case nodes.Load():
                return self.insert(LoadOp(self._names.buffers[expr.tensor], operands), expr.tensor.name.lower())
            case nodes.Cast():
                return emit_cast(self.insert, operands[0], expr.operands[0].dtype, expr.dtype)
            case nodes.CallExtern():
                return self.insert(CallExternOp(expr.symbol, operands, value_type(expr.dtype), pure=True))
            case nodes.Conditional():
                condition, then, otherwise = expr.operands
                regions = self._branch(then), self._branch(otherwise)
                return self.insert(IfOp(self._values[condition], regions[0], regions[1], [value_type(expr.dtype)]))
            case nodes.Apply():
                return self._apply(expr, operands)
            case _:
                raise TypeError(f"te: a {type(expr).__name__} has no value inside an expression")

    def _apply(self, expr: nodes.Apply, operands: Sequence[SSAValue]) -> SSAValue:
        # a comparison has the result i1, a selection a condition: the last operand tells the kind of function
        dtype = expr.operands[-1].dtype
        if expr.function == "reinterpret":
            return emit_reinterpret(self.insert, operands[0], expr.dtype)
        if is_index(dtype) and expr.function in _UNSIGNED_DIVISION and self._signs.divides_unsigned(*expr.operands):
            return self.insert(_UNSIGNED_DIVISION[expr.function](operands[0], operands[1]))
        if (op := op_table(dtype).get(expr.function)) is not None:
            return self.insert(op(*operands))
        return expansion(expr.function, dtype)(self.insert, operands, dtype)

    def _branch(self, expr: Expr) -> Region:
        block = Block()
        block.add_op(YieldOp(*self.inside(block).emit(expr)))
        return Region(block)
