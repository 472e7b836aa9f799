"""Our elementary functions of f32: at most 2 units in the last position off, everywhere."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.tir_to_llvm.arithmetic.math_ops import OWN
from lowering.tir_to_llvm.math.power import ROOTS
from tests.lowering.tir_to_llvm.math.functions import COUNT, EDGES, LOOP, REFERENCES, check, inputs
from tir_dialect.target import Target


@pytest.fixture(scope="module", params=["host", "x86-64-v2"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Code with and without fused multiply-add."""
    tir = request.getfixturevalue("tir")
    text = "".join(
        LOOP.replace("NAME", name).replace("KIND", kind) for name in REFERENCES for kind in ("serial", "vectorized")
    )
    return compile_prim_funcs(tir(text.replace("for serial", "for")), Target.parse(request.param), cache=NO_CACHE)


def test_every_expansion_is_tested():
    assert {f"math.{name}" for name in (*REFERENCES, "powf", "atan2")} == set(OWN)


POWER = """
tir.prim_func @power_KIND(%X: !tir.buffer<[16384], f32>, %Y: !tir.buffer<[16384], f32>, %Z: !tir.buffer<[16384], f32>) {
  %n = arith.constant 16384 : index
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = tir.load %Y[%i]
    %z = math.powf %x, %y : f32
    tir.store %z, %Z[%i]
  }
}"""


@pytest.mark.parametrize("target", ["host", "x86-64-v2"])
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_error_of_powers(kind: str, target: str, tir):
    import ctypes

    text = POWER.replace("KIND", kind).replace("for serial", "for")
    compiled = compile_prim_funcs(tir(text), Target.parse(target), cache=NO_CACHE)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(compiled.address(f"power_{kind}"))
    for x, y in bases_and_exponents():
        got = np.empty_like(x)
        assert call(x.ctypes.data, y.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            exact = np.float64(x) ** np.float64(y)
        check("powf", (x, y), got, exact)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_error_of_angles_of_points(kind: str, target: str, tir):
    """With the quadrants and special values of IEEE 754."""
    import ctypes

    text = POWER.replace("powf", "atan2").replace("KIND", kind).replace("for serial", "for")
    compiled = compile_prim_funcs(tir(text), Target.parse(target), cache=NO_CACHE)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(compiled.address(f"power_{kind}"))
    rng = np.random.default_rng(0)
    edges = np.array(EDGES, np.float32)
    pairs = [tuple(np.resize(part.ravel(), COUNT) for part in np.meshgrid(edges, edges))]
    pairs += [(inputs(seed), rng.permutation(inputs(seed + 1))) for seed in range(3)]
    pairs += [tuple(np.float32(rng.uniform(-1, 1, (2, COUNT)))) for _ in range(4)]
    for y, x in pairs:
        y, x, got = np.ascontiguousarray(y), np.ascontiguousarray(x), np.empty_like(x)
        assert call(y.ctypes.data, x.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            exact = np.arctan2(np.float64(y), np.float64(x))
        check("atan2", (y, x), got, exact)


@pytest.mark.parametrize("exponent", ROOTS)
def test_error_of_roots(exponent: float, tir):
    """A power whose exponent is in the code, of one number and of vectors."""
    import ctypes

    kinds, given = ("serial", "vectorized"), f"arith.constant {exponent} : f32"
    text = "".join(POWER.replace("KIND", kind).replace("tir.load %Y[%i]", given) for kind in kinds)
    compiled = compile_prim_funcs(tir(text.replace("for serial", "for")), Target.parse("host"), cache=NO_CACHE)
    for kind in kinds:
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(compiled.address(f"power_{kind}"))
        for seed in range(3):
            x, got = inputs(seed), np.empty(COUNT, np.float32)
            assert call(x.ctypes.data, x.ctypes.data, got.ctypes.data) == 0
            with np.errstate(all="ignore"):
                exact = np.power(np.float64(x), np.full(COUNT, exponent))
            check(f"power {exponent}", x, got, exact, 1.5)


def bases_and_exponents() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    edges = np.array([*EDGES, 3.0, -3.0, 0.5, -0.5, 1e30, 8388609.0, -8388609.0, 2.0**24], np.float32)
    grid = np.meshgrid(edges, edges)
    pairs = [tuple(np.resize(part.ravel(), COUNT).astype(np.float32) for part in grid)]
    bases = np.exp(rng.uniform(-80, 80, COUNT)).astype(np.float32)
    pairs.append((bases, (rng.uniform(-88, 88, COUNT) / np.log(bases.astype(np.float64))).astype(np.float32)))
    near = (1 + rng.uniform(-1, 1, COUNT) * 10.0 ** rng.uniform(-7, -1, COUNT)).astype(np.float32)
    pairs.append((near, (rng.uniform(-1, 1, COUNT) * 10.0 ** rng.uniform(-2, 8, COUNT)).astype(np.float32)))
    # Results of nearly all sizes and logarithms that are small, where an error of the logarithm counts most.
    middle = rng.uniform(0.9, 1.1, COUNT).astype(np.float32)
    pairs.append((middle, (rng.uniform(-103, 88.7, COUNT) / np.log(middle.astype(np.float64))).astype(np.float32)))
    subnormal = rng.integers(1, 2**23, COUNT, dtype=np.uint32).view(np.float32)
    pairs.append((subnormal, rng.uniform(-1, 1, COUNT).astype(np.float32)))
    whole = rng.integers(-30, 30, COUNT).astype(np.float32)
    pairs.append((rng.uniform(-20, 20, COUNT).astype(np.float32), whole))
    return pairs


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("name", REFERENCES)
def test_error(name: str, kind: str, kernels: Kernels):
    check_function(name, kind, kernels, map(inputs, range(3)))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        *(("acosh", 1.03, 1.032), ("atanh", 0.115, 0.125), ("asinh", 0.35, 0.4), ("log1p", 0.43, 0.46)),
        *(("asinh", 0.51, 0.53), ("acosh", 1.115, 1.13), ("atanh", 0.0077, 0.0079), ("log1p", -0.033, -0.03)),
        *(("tan", 0.7, 0.9), ("tan", 1.5, 1.65), ("tan", 0.04, 0.06), ("tan", 4.64, 4.66), ("tan", 23.4, 23.6)),
        *(("tan", 262000.0, 262288.0), ("tan", 131000.0, 131001.0)),
        *((name, low, high) for name in ("log", "log2", "log10") for low, high in ((0.74, 0.76), (0.96, 1.07))),
        *(("tanh", 0.17, 0.18), ("tanh", 0.51, 0.53), ("tanh", 8.1, 8.2)),
    ],
)
def test_error_where_it_is_greatest(name: str, low: float, high: float, kernels: Kernels):
    numbers = np.linspace(low, high, 8 * COUNT).astype(np.float32)
    check_function(name, "vectorized", kernels, np.split(numbers, 8))


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_error_over_the_whole_range(name: str, kernels: Kernels):
    """One number of each thousand that there are: 8,200 of each exponent, subnormal ones among them."""
    numbers = np.arange(256 * COUNT, dtype=np.uint64) * 1021 % 2**32
    check_function(name, "vectorized", kernels, np.split(numbers.astype(np.uint32).view(np.float32), 256))


def check_function(name: str, kind: str, kernels: Kernels, arguments: Iterable[np.ndarray]) -> None:
    import ctypes

    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(kernels.address(f"{name}_{kind}"))
    for x in arguments:
        got = np.empty_like(x)
        assert call(x.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            exact = np.float64(REFERENCES[name](x.astype(np.float64)))
        check(name, x, got, exact)


def lowered_text(text: str, machine: str, tir: Callable[[str], ModuleOp]) -> str:
    from lowering.llvm.llvm_text import llvm_text
    from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
    from lowering.tir_to_llvm.emitter import LoweringOptions

    return llvm_text(lower_prim_funcs(list(tir(text).ops), LoweringOptions.of(Target.parse(machine))))


def test_tanh_is_one_formula(tir: Callable[[str], ModuleOp]):
    """Without tables in registers: one way for all arguments, so that there is no blend of two, and one division."""
    lowered = lowered_text(LOOP.replace("NAME", "tanh").replace("KIND", "vectorized"), "x86-64-v3", tir)
    counts = {name: lowered.count(name) for name in (" fdiv ", " select ")}
    assert counts == {" fdiv ": 1, " select ": 2}


@pytest.mark.parametrize("name", ["log", "log2", "log10"])
def test_logarithms_are_short(name: str, tir: Callable[[str], ModuleOp]):
    """With AVX-512: mantissa and exponent in one instruction each, which know zeros, infinities and subnormal numbers;
    one table of reciprocals and one of their logarithms. The vector fills eight registers.
    """
    lowered = lowered_text(LOOP.replace("NAME", name).replace("KIND", "vectorized"), "x86-64-v4", tir)
    body = lowered[: lowered.index("declare")]
    counts = {word: body.count(word) for word in ("getmant", "getexp", "permvar", " select ", "fcmp")}
    assert counts == {"getmant": 8, "getexp": 8, "permvar": 16, " select ": 1, "fcmp": 1}


@pytest.mark.parametrize("name", ["asinh", "acosh", "atanh", "log1p"])
def test_logarithms_of_sums_are_of_tables(name: str, tir: Callable[[str], ModuleOp]):
    """With AVX-512, except for arguments out of the range of the formulas: two tables, no integers made floats."""
    lowered = lowered_text(LOOP.replace("NAME", name).replace("KIND", "vectorized"), "x86-64-v4", tir)
    near = lowered[: lowered.index("vector.reduce")]
    assert near.count("permvar") == 16
    assert "sitofp" not in near


def test_tangent_has_no_division(tir: Callable[[str], ModuleOp]):
    """With AVX-512 it is of two tables, and the quotient of an estimate and one Newton step."""
    lowered = lowered_text(LOOP.replace("NAME", "tan").replace("KIND", "vectorized"), "x86-64-v4", tir)
    near = lowered[: lowered.index("vector.reduce")]
    assert " fdiv " not in lowered
    assert (near.count("rcp14"), near.count("vpermi2var")) == (8, 16)


def test_cube_roots_are_of_tables(tir: Callable[[str], ModuleOp]):
    """With AVX-512: two tables, of reciprocals and of roots, and nothing to ask of zeros, infinities and NaN."""
    lowered = lowered_text(LOOP.replace("NAME", "cbrt").replace("KIND", "vectorized"), "x86-64-v4", tir)
    body = lowered[: lowered.index("declare")]
    counts = {word: body.count(word) for word in ("permvar", "vpermi2var", " select ", "fcmp", "icmp ne <")}
    assert counts == {"permvar": 8, "vpermi2var": 8, " select ": 0, "fcmp": 0, "icmp ne <": 0}


EVERYWHERE = {"copysign", "fabs", "floor", "fmuladd", "sqrt", "vector"}


@pytest.mark.parametrize(
    ("machine", "more"), [("x86-64-v4", {"fma", "x86"}), ("x86-64-v3 vector-bits=512", set()), ("neoverse-n1", set())]
)
def test_no_function_is_called(machine: str, more: set[str], tir: Callable[[str], ModuleOp]):
    """Only instructions of AVX-512 are, and not where vectors are wide and the processor has none of them."""
    text = "".join(LOOP.replace("NAME", name).replace("KIND", "vectorized") for name in REFERENCES)
    lowered = lowered_text(text, machine, tir)
    called = {line.split("@")[1].split("(")[0] for line in lowered.splitlines() if line.startswith("declare")}
    assert {name.split(".")[1] for name in called} == EVERYWHERE | more


ROOT = LOOP.replace("%y = math.NAME %x", "%half = arith.constant 0.5 : f32\n    %y = math.powf %x, %half")


def test_power_of_a_half_is_a_root(tir):
    """Rounded as a root is, with the special values of a power: 0 of -0, infinity of both infinities."""
    import ctypes

    text = ROOT.replace("NAME", "root").replace("KIND", "vectorized")
    compiled = compile_prim_funcs(tir(text), Target.parse("host"), cache=NO_CACHE)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2)(compiled.address("root_vectorized"))
    x = inputs(0)
    got = np.empty_like(x)
    assert call(x.ctypes.data, got.ctypes.data) == 0
    with np.errstate(all="ignore"):
        exact = np.where(np.isneginf(x), np.inf, np.sqrt(x + np.float32(0)).astype(np.float64))
    check("root", x, got, exact, 0.0)


SIGMOID = """
tir.prim_func @f(%X: !tir.buffer<[16384], f32>, %Y: !tir.buffer<[16384], f32>, %Z: !tir.buffer<[16384], f32>) {
  %n = arith.constant 16384 : index
  tir.for vectorized (%i) in (%n) {
    %x = tir.load %X[%i]
    %minus_x = arith.negf %x : f32
    %power = math.exp %minus_x : f32
    %one = arith.constant 1.0 : f32
    %divisor = arith.addf %one, %power : f32
    %y = arith.divf %one, %divisor : f32
    tir.store %y, %Y[%i]
    %z = arith.divf %x, %divisor : f32
    tir.store %z, %Z[%i]
  }
}"""


@pytest.mark.parametrize("machine", ["host", "x86-64"])
def test_quotients_of_sigmoid(machine: str, tir: Callable[[str], ModuleOp]):
    """A sigmoid is one function, also where its power is no f32; in silu power, sum and quotient are rounded."""
    import ctypes

    compiled = compile_prim_funcs(tir(SIGMOID), Target.parse(machine), cache=NO_CACHE)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(compiled.address("f"))
    near_the_ends = np.linspace(-105, -80, COUNT // 2), np.linspace(-20, 20, COUNT // 2)
    for x in (inputs(0), np.concatenate(near_the_ends).astype(np.float32)):
        y, z = np.empty_like(x), np.empty_like(x)
        assert call(*(each.ctypes.data for each in (x, y, z))) == 0
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            exact = 1 / (1 + np.exp(-wide))
            product = wide * exact
        check("sigmoid", x, y, exact)
        counts = ~(x < -87) & np.isfinite(x)  # further on exp(-x) has no f32
        check("silu", x, z[counts], product[counts], 4.0)
