"""Our elementary functions of f64: at most 2 units in the last position off, everywhere."""

import ctypes
import math
from collections.abc import Callable, Iterable
from math import inf

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.tir_to_llvm.arithmetic.math_ops import FUSED
from tests.lowering.tir_to_llvm.math.functions import LOOP as LOOP_OF_F32
from tests.lowering.tir_to_llvm.math.functions import REFERENCES as FUNCTIONS
from tests.lowering.tir_to_llvm.math.test_expansion import POWER as POWER_OF_F32
from tests.lowering.tir_to_llvm.math.test_expansion import lowered_text
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(2)

COUNT = 16384
MACHINES = ("host", "x86-64-v3", "x86-64-v2")
"""The second has no tables in registers, the last no fused multiply-add."""

LOOP, POWER = LOOP_OF_F32.replace("f32", "f64"), POWER_OF_F32.replace("f32", "f64")
ATAN2 = POWER.replace("power_", "atan2_").replace("powf", "atan2")


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of extended numbers by its series of positive terms."""
    size = np.minimum(np.abs(x), 7)
    total, term = np.zeros_like(x), size.copy()
    for number in range(200):
        total = total + term
        term = term * (2 * size * size / (2 * number + 3))
    result = 2 / np.sqrt(np.arctan(np.longdouble(1)) * 4) * np.exp(-size * size) * total
    return np.copysign(np.where(np.isnan(x), x, np.where(size < 7, result, 1)), x)


REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {**FUNCTIONS, "erf": erf}
EDGES = [0.0, -0.0, inf, -inf, math.nan, 1.0, -1.0, 5e-324, -5e-324, 2.0**-1022, 1.7e308, -1.7e308, 0.5, -0.5, 2.0]
EDGES += [709.78271289338, 709.7827128933841, -708.4, -744.44, -745.13, -745.14, -746.5, 710.4758, 710.476, 1023.99999]
EDGES += [1024.0, -1074.0, -1075.5, 5.92, 5.93, 19.06, 19.07, 37.5, -37.5, 2.0**30, 2.0**60, 2.0**-27, 2.0**-54]
EDGES += [6381956970095103.0, -1e22, 2.0**200]  # large angles


def inputs(seed: int) -> np.ndarray:
    """Numbers of every size, special ones, and those near multiples of a right angle and near 1."""
    rng = np.random.default_rng(seed)
    right_angles = rng.integers(-(2**29), 2**29, 500) * np.longdouble("1.5707963267948966192313216916397514")
    parts = [
        np.array(EDGES),
        np.float64(right_angles),
        rng.uniform(-1, 1, COUNT // 4),
        rng.uniform(-8, 8, COUNT // 8),
        rng.uniform(-760, 760, COUNT // 8),
        np.exp(rng.uniform(-40, 21, COUNT // 8)) * rng.choice([-1, 1], COUNT // 8),
        1 + rng.uniform(-1, 1, COUNT // 8) * 10.0 ** rng.uniform(-16, -1, COUNT // 8),
    ]
    known = np.concatenate(parts)
    anything = rng.integers(0, 1 << 64, COUNT - len(known), dtype=np.uint64).view(np.float64)
    return np.concatenate([known, anything])


def check(name: str, x: object, got: np.ndarray, exact: np.ndarray) -> None:
    """At most two units in the last position; special values exactly."""
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float64)
        special = ~np.isfinite(expected)
        np.testing.assert_array_equal(got[special], expected[special])
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))
        unit = np.spacing(np.maximum(np.abs(expected[~special]), 2.0**-1022)).astype(np.longdouble)
        error = np.abs(got[~special] - exact[~special]) / unit
    assert error.max(initial=0) <= 2, f"{name} is {error.max():.2f} units off"


@pytest.fixture(scope="module", params=MACHINES)
def kernels(request: pytest.FixtureRequest) -> Kernels:
    tir = request.getfixturevalue("tir")
    loops = (LOOP.replace("NAME", name) for name in REFERENCES)
    text = "".join(each.replace("KIND", kind) for each in (*loops, POWER, ATAN2) for kind in ("serial", "vectorized"))
    return compile_prim_funcs(tir(text.replace("for serial", "for")), Target.parse(request.param), cache=NO_CACHE)


def check_function(name: str, kind: str, kernels: Kernels, arguments: Iterable[np.ndarray]) -> None:
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(kernels.address(f"{name}_{kind}"))
    for x in arguments:
        got = np.empty_like(x)
        assert call(x.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            exact = REFERENCES[name](x.astype(np.longdouble))
        check(name, x, got, exact)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("name", REFERENCES)
def test_error(name: str, kind: str, kernels: Kernels):
    check_function(name, kind, kernels, map(inputs, range(3)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        *(("tanh", 0.17, 0.18), ("tanh", 0.51, 0.53), ("asinh", 0.35, 0.4), ("acosh", 1.03, 1.032)),
        *(("atan", 1.0, 1.04), ("asin", 0.5, 0.6), ("asin", 0.8, 1.0), ("expm1", 0.33, 0.4), ("sinh", 1.38, 1.45)),
        *(("log2", 1.39, 1.42), ("log10", 1.29, 1.34), ("erf", 0.2, 0.3), ("atanh", 0.11, 0.13)),
    ],
)
def test_error_where_it_is_greatest(name: str, low: float, high: float, kernels: Kernels):
    rng = np.random.default_rng(0)
    check_function(name, "vectorized", kernels, (rng.uniform(low, high, COUNT) for _ in range(8)))


def bases_and_exponents() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    edges = np.array([*EDGES, 3.0, -3.0, 1e300, 2.0**52 + 1, 2.0**53 - 1, 1 - 2.0**53, 2.0**53, 1 + 2.0**-52])
    grid = np.meshgrid(edges, edges)
    pairs = [tuple(np.resize(part.ravel(), COUNT) for part in grid)]
    subnormal = rng.integers(1, 1 << 52, COUNT, dtype=np.uint64).view(np.float64)
    near = 1 + rng.uniform(-1, 1, COUNT) * 10.0 ** rng.uniform(-16, -1, COUNT)
    for bases in (np.exp(rng.uniform(-700, 700, COUNT)), rng.uniform(0.5, 2, COUNT), near, subnormal):
        # Results of nearly all sizes, subnormal ones included.
        with np.errstate(all="ignore"):
            pairs.append((bases, rng.uniform(-745, 709.7, COUNT) / np.log(bases)))
    pairs.append((rng.uniform(-20, 20, COUNT), rng.integers(-200, 200, COUNT).astype(np.float64)))
    return pairs


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_error_of_powers(kind: str, kernels: Kernels):
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(kernels.address(f"power_{kind}"))
    for x, y in bases_and_exponents():
        got = np.empty_like(x)
        assert call(x.ctypes.data, y.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            exact = np.longdouble(x) ** np.longdouble(y)
        check("powf", (x, y), got, exact)


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_error_of_angles_of_points(kind: str, kernels: Kernels):
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(kernels.address(f"atan2_{kind}"))
    rng = np.random.default_rng(1)
    grid = np.meshgrid(np.array(EDGES), np.array(EDGES))
    pairs = [tuple(np.resize(part.ravel(), COUNT) for part in grid), (inputs(0), rng.permutation(inputs(1)))]
    pairs += [(rng.uniform(-1, 1, COUNT), rng.uniform(-1, 1, COUNT)) for _ in range(4)]
    for y, x in pairs:
        got = np.empty_like(x)
        assert call(y.ctypes.data, x.ctypes.data, got.ctypes.data) == 0
        with np.errstate(all="ignore"):
            check("atan2", (y, x), got, np.arctan2(np.longdouble(y), np.longdouble(x)))


SIGMOID = """
tir.prim_func @sigmoid(%X: !tir.buffer<[16384], f64>, %Y: !tir.buffer<[16384], f64>) {
  %n = arith.constant 16384 : index
  tir.for vectorized (%i) in (%n) {
    %x = tir.load %X[%i]
    %power = math.exp %x : f64
    %one = arith.constant 1.0 : f64
    %divisor = arith.addf %one, %power : f64
    %y = arith.divf %one, %divisor : f64
    tir.store %y, %Y[%i]
  }
}"""


@pytest.mark.parametrize("machine", MACHINES)
def test_error_of_sigmoid(machine: str, tir: Callable[[str], ModuleOp]):
    """Also where the power is infinite."""
    compiled = compile_prim_funcs(tir(SIGMOID), Target.parse(machine), cache=NO_CACHE)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2)(compiled.address("sigmoid"))
    for x in (inputs(0), np.linspace(-40, 746, COUNT)):
        y = np.empty_like(x)
        assert call(x.ctypes.data, y.ctypes.data) == 0
        with np.errstate(all="ignore"):
            check("sigmoid", x, y, 1 / (1 + np.exp(np.longdouble(x))))


LARGE_ONLY = {"cos", "sin", "tan"}
"""Functions that the C library has for large arguments."""


@pytest.mark.parametrize("machine", ["x86-64-v4", "x86-64-v3", "neoverse-n1", "x86-64-v2"])
def test_no_function_of_one_number_is_called(machine: str, tir: Callable[[str], ModuleOp]):
    """But for large angles, or where processors have no fused multiply-add."""
    loops = [LOOP.replace("NAME", name) for name in REFERENCES]
    text = "".join(each.replace("KIND", "vectorized") for each in (*loops, POWER, ATAN2))
    lowered = lowered_text(text, machine, tir)
    called = {line.split("@")[1].split("(")[0] for line in lowered.splitlines() if line.startswith("declare")}
    words = {each for name in called for each in name.split(".")}
    fused = {name.removeprefix("math.").replace("powf", "pow") for name in FUSED}
    library = {*REFERENCES, "pow", "atan2"}
    assert words & library == (fused if machine == "x86-64-v2" else LARGE_ONLY)


@pytest.mark.parametrize(
    ("name", "instructions"), [("log", ("getexp.pd", "getmant.pd", "vpermi2var.pd")), ("exp", ("scalef.pd",))]
)
def test_registers_of_avx512(name: str, instructions: tuple[str, ...], tir: Callable[[str], ModuleOp]):
    """Exponents and mantissas in one instruction each, coefficients from tables: no division, no integer arithmetic."""
    loop = LOOP.replace("NAME", name).replace("KIND", "vectorized")
    lowered, other = (lowered_text(loop, machine, tir) for machine in ("x86-64-v4", "x86-64-v3"))
    for each in instructions:
        assert each in lowered
        assert each not in other
    assert " fdiv " not in lowered
    assert " shl " not in lowered
