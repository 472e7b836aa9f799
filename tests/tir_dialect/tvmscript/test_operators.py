"""Every scalar op as TVMScript, read back: it computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.support.tir import parse_prim_func
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.tvmscript import ScriptError, as_tvmscript
from tir_dialect.tvmscript.expressions import WRITERS

INTEGERS = ("i8", "ui8", "i32", "ui32", "i64")
FLOATS = ("f32", "f64")
PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge"
ORDERINGS = "oeq une olt ole ogt oge ult ule ugt uge one ueq ord uno"


def named(prefix, names, arity, dtypes):
    return [(f"{prefix}.{name}", arity, dtypes) for name in names.split()]


CASES = (
    *named("arith", "addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui", 2, INTEGERS),
    *named("arith", "andi ori xori minsi maxsi minui maxui", 2, INTEGERS),
    *named("arith", "andi ori xori", 2, ("i1",)),
    *named("arith", "addf subf mulf divf minimumf maximumf minnumf maxnumf", 2, FLOATS),
    *named("arith", "negf", 1, FLOATS),
    *named("math", "exp exp2 expm1 log log2 log10 log1p sin cos tan atan sinh cosh tanh asinh", 1, FLOATS),
    *named("math", "sqrt rsqrt cbrt erf floor ceil trunc roundeven absf", 1, FLOATS),
    *named("math", "powf atan2 copysign", 2, FLOATS),
    *named("math", "fma", 3, FLOATS),
    *named("math", "absi ctpop ctlz cttz", 1, ("i32", "i64")),
    *named("tir", "fmod greater", 2, FLOATS),
    *named("tir", "scaled_exp", 1, ("f32",)),
    *((f"arith.cmpi {name},", 2, INTEGERS) for name in PREDICATES.split()),
    *((f"arith.cmpf {name},", 2, FLOATS) for name in ORDERINGS.split()),
)
CONVERSIONS = [
    ("extsi", "i8", "i32"),
    ("extui", "i8", "i32"),
    ("extui", "ui8", "i64"),
    ("extsi", "ui8", "i64"),
    ("extui", "i1", "i32"),
    ("extsi", "i1", "i32"),
    ("trunci", "i32", "i8"),
    ("trunci", "i64", "ui8"),
    ("sitofp", "i8", "f32"),
    ("uitofp", "i8", "f32"),
    ("uitofp", "ui8", "f64"),
    ("fptosi", "f32", "i32"),
    ("fptoui", "f32", "i32"),
    ("extf", "f16", "f32"),
    ("truncf", "f64", "f32"),
    ("bitcast", "f32", "i32"),
    ("bitcast", "i32", "f32"),
]


def signless(dtype):
    return dtype.lstrip("u")


def values(dtype, seed):
    from tir_dialect.dtypes import numpy_dtype, parse_dtype

    rng = np.random.default_rng(seed)
    kind = numpy_dtype(parse_dtype(dtype))
    if kind.kind == "f":
        return np.concatenate([rng.normal(0, 3, 12), [0, 1, -1, -0.5]]).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, 16).astype(kind)
    return np.concatenate([rng.integers(-100, 100, 14), [3, 1]]).astype(kind)


def again(func: PrimFuncOp) -> PrimFuncOp:
    """The function that its script is."""
    (found,) = (op for op in parse(as_tvmscript(func)).ops if isinstance(op, PrimFuncOp))
    return found


def check(func, inputs, result, rtol=0.0):
    outputs = [np.zeros(16, result) for _ in range(2)]
    for each, output in zip((func, again(func)), outputs, strict=True):
        with np.errstate(all="ignore"):
            run_prim_func(each, [*inputs, output])
    np.testing.assert_allclose(*outputs, rtol=rtol)


def function(types, result, body):
    names = "xyz"[: len(types)]
    pairs = [*zip(names.upper(), types, strict=True), ("R", result)]
    params = ", ".join(f"%{name}: !tir.buffer<[16], {type}>" for name, type in pairs)
    loads = "\n".join(f"%{name} = tir.load %{name.upper()}[%i]" for name in names)
    return parse_prim_func(f"""
tir.prim_func @f({params}) {{
  %n = arith.constant 16 : index
  tir.for (%i) in (%n) {{
    {loads}
    {body}
    tir.store %r, %R[%i]
  }}
}}""")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, _, dtypes in CASES for dtype in dtypes])
def test_ops(name, dtype):
    (arity,) = {arity for each, arity, dtypes in CASES if each == name and dtype in dtypes}
    result = "i1" if ".cmp" in name else dtype
    operands = ", ".join(["%x", "%y", "%z"][:arity])
    func = function([dtype] * arity, result, f"%r = {name} {operands} : {signless(dtype)}")
    inputs = [values(dtype, seed) for seed in range(arity)]
    # TVM takes these from the C library
    rtol = 2e-7 if name in ("math.cbrt", "math.expm1") else 0.0
    check(func, inputs, "bool" if result == "i1" else inputs[0].dtype, rtol)


@pytest.mark.parametrize(("name", "source", "target"), CONVERSIONS)
def test_conversions(name, source, target):
    func = function([source], target, f"%r = arith.{name} %x : {signless(source)} to {signless(target)}")
    check(func, [np.abs(values(source, 0)) if name == "fptoui" else values(source, 0)], values(target, 0).dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ("-7", "i8"),
        ("200", "ui8"),
        ("true", "i1"),
        ("-9223372036854775808", "i64"),
        ("0.1", "f16"),
        ("0.1", "bf16"),
        ("0.1", "f32"),
        ("1.0e-40", "f32"),
        ("0x7FC00000", "f32"),
        ("0xFF800000", "f32"),
        ("3.0e300", "f64"),
    ],
)
def test_constants(value, dtype):
    number = value if dtype != "ui8" else str(int(value) - 256)
    constant = "arith.constant true" if dtype == "i1" else f"arith.constant {number} : {signless(dtype)}"
    check(function([], dtype, f"%r = {constant}"), [], values(dtype, 0).dtype)


def test_shifts_and_choices():
    body = "%k = arith.constant 3 : i32 %s = arith.{} %x, %k : i32 %c = arith.cmpi slt, %s, %y : i32"
    for shift in ("shli", "shrsi", "shrui"):
        func = function(["i32", "i32"], "i32", f"{body.format(shift)} %r = arith.select %c, %s, %x : i32")
        check(func, [values("i32", 0), values("i32", 1)], np.int32)


def test_all_ops_but_those_of_vectors_are_here():
    known = {name.split(" ")[0] for name, *_ in CASES} | {f"arith.{name}" for name, *_ in CONVERSIONS}
    others = {
        "arith.shli",
        "arith.shrsi",
        "arith.shrui",
        "arith.select",
        "arith.index_cast",
        "math.ipowi",
        "math.round",
    }
    inverse = {f"math.{name}" for name in ("acos", "acosh", "asin", "atanh")}
    assert WRITERS.keys() - known == others | inverse | {"tir.compare", "tir.select", "tir.convert"}


def test_what_tvm_has_not():
    with pytest.raises(ScriptError, match=r"'math.round' cannot be written as TVMScript: TVM and this project round"):
        as_tvmscript(function(["f32"], "f32", "%r = math.round %x : f32"))
    with pytest.raises(ScriptError, match=r"'math.cbrt' .* C has one of f32 and f64 only, got float16"):
        as_tvmscript(function(["f16"], "f16", "%r = math.cbrt %x : f16"))
