"""Tensor expressions: kernels written as formulas and compiled to readable `tir.prim_func`s.

::

    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A, B = te.placeholder((n, k), "f32", "A"), te.placeholder((k, m), "f32", "B")
    r = te.reduce_axis(k, "r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], r), name="C")
    func = te.create_prim_func([A, B, C], name="matmul")
"""

from tir_dialect.te.calls import call_extern, call_packed
from tir_dialect.te.compute import Compute as ComputeOp
from tir_dialect.te.compute import compute
from tir_dialect.te.conversions import cast, const, reinterpret, scalar
from tir_dialect.te.expr import Expr
from tir_dialect.te.extern import Extern as ExternOp
from tir_dialect.te.extern import ExternBuilder, extern
from tir_dialect.te.extern_primfunc import extern_primfunc
from tir_dialect.te.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    copysign,
    cos,
    cosh,
    count_leading_zeros,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    fmax,
    fmin,
    fmod,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    popcount,
    pow,
    round,
    round_away,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tir_dialect.te.functions import pow as power
from tir_dialect.te.functions import round as nearbyint
from tir_dialect.te.library import hypot, ldexp, nextafter
from tir_dialect.te.nodes import IterVar
from tir_dialect.te.nodes import Slice as TensorSlice
from tir_dialect.te.operations import Operation
from tir_dialect.te.operations import Placeholder as PlaceholderOp
from tir_dialect.te.operators import absolute as abs
from tir_dialect.te.operators import (
    ceildiv,
    div,
    floordiv,
    floormod,
    if_then_else,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    select,
    truncdiv,
    truncmod,
)
from tir_dialect.te.operators import floordiv as indexdiv
from tir_dialect.te.operators import floormod as indexmod
from tir_dialect.te.prim_func import create_prim_func
from tir_dialect.te.reducer import Reducer, comm_reducer, reduce_axis
from tir_dialect.te.reductions import all, any, max, max_value, min, min_value, prod, sum
from tir_dialect.te.scan import scan
from tir_dialect.te.scan_steps import Scan as ScanOp
from tir_dialect.te.shapes import size_var, var
from tir_dialect.te.tag import tag_scope
from tir_dialect.te.tensor import Tensor, placeholder

__all__ = [
    "ComputeOp",
    "Expr",
    "ExternBuilder",
    "ExternOp",
    "IterVar",
    "Operation",
    "PlaceholderOp",
    "Reducer",
    "ScanOp",
    "Tensor",
    "TensorSlice",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "call_extern",
    "call_packed",
    "cast",
    "cbrt",
    "ceil",
    "ceildiv",
    "comm_reducer",
    "compute",
    "const",
    "copysign",
    "cos",
    "cosh",
    "count_leading_zeros",
    "create_prim_func",
    "div",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "extern",
    "extern_primfunc",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "nearbyint",
    "nextafter",
    "placeholder",
    "popcount",
    "pow",
    "power",
    "prod",
    "reduce_axis",
    "reinterpret",
    "round",
    "round_away",
    "rsqrt",
    "scalar",
    "scan",
    "select",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
