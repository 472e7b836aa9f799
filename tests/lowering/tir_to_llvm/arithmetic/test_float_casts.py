"""Casts of floats that are vectors where LLVM has only scalars: values at all edges, and the code."""

import math

import numpy as np
import pytest

from lowering.llvm.compiler import emit_assembly
from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import parse
from tir_dialect.target import Target

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS = {f"{sign}i{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}

CAST = """
tir.prim_func @f(%X: !tir.buffer<[COUNT], SOURCE>, %Y: !tir.buffer<[COUNT], TARGET>) {
  %count = arith.constant COUNT : index
  tir.for vectorized (%i) in (%count) {
    %x = tir.load %X[%i]
    %y = arith.OP %x : SOURCE to TARGET
    tir.store %y, %Y[%i]
  }
}"""


def program(op: str, source: str, target: str, count: int) -> str:
    return CAST.replace("SOURCE", source).replace("TARGET", target).replace("COUNT", str(count)).replace("OP", op)


def edges(dtype: type) -> np.ndarray:
    """The ends of all integers with their neighbours, halves, and what is no number."""
    powers = 2.0 ** np.array([7, 8, 15, 16, 23, 24, 31, 32, 33, 52, 53, 62, 63, 64, 65])
    rng = np.random.default_rng(0)
    anything = rng.uniform(1, 2, 400) * 2.0 ** rng.integers(-3, 66, 400)
    near = [powers, powers - 1, powers + 1, powers - 0.5, powers + 0.5, [0.0, 0.4, 0.5, 0.99, 1.5, math.inf], anything]
    with np.errstate(over="ignore"):
        values = np.concatenate(near).astype(dtype)
        values = np.concatenate(
            [values, np.nextafter(values, dtype(0)), np.nextafter(values, dtype(math.inf)), [np.nan]]
        )
    return np.concatenate([values, -values]).astype(dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_integers_at_the_edges(source: str, target: str, same_as_interpreter) -> None:
    op, x = "fptoui" if target.startswith("u") else "fptosi", edges(FLOATS[source])
    result = np.zeros(len(x), INTEGERS[target].replace("u", ""))
    same_as_interpreter(program(op, source, target.replace("u", ""), len(x)), [x, result], {})


def rounded(count: int) -> str:
    return program("fptoui", "f32", "i8", count).replace(
        "%y = arith.fptoui %x :", "%r = math.roundeven %x : f32\n    %y = arith.fptoui %r :"
    )


def test_bytes_of_rounded_numbers(same_as_interpreter) -> None:
    quarters = np.arange(-2, 258, 0.25, dtype=np.float32)
    near = [quarters, np.nextafter(quarters, np.float32(-np.inf)), np.nextafter(quarters, np.float32(np.inf))]
    x = np.concatenate([*near, edges(np.float32)])
    same_as_interpreter(rounded(len(x)), [x, np.zeros(len(x), np.int8)], {})


@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("lanes", [8, 16])
def test_bytes_of_registers(lanes: int, rounds: bool, same_as_interpreter) -> None:
    """A register of AVX2, or of AVX-512, at a time."""
    x = edges(np.float32)
    x = np.concatenate([x, np.zeros(-len(x) % lanes, np.float32)]).reshape(-1, lanes)
    text = rounded(lanes) if rounds else program("fptoui", "f32", "i8", lanes)
    text = text.replace(f"<[{lanes}],", f"<[{len(x)}, {lanes}],").replace("[%i]", "[%row, %i]")
    text = text.replace(
        "tir.for vec", f"%rows = arith.constant {len(x)} : index\n  tir.for (%row) in (%rows) {{ tir.for vec"
    )
    same_as_interpreter(text.rstrip()[:-1] + "}}", [x, np.zeros(x.shape, np.int8)], {})


@pytest.mark.parametrize(
    ("level", "lanes", "narrows", "rounding"),
    [(3, 8, "vpackuswb", "vroundps"), (4, 16, "vpmovusdb", "vrndscaleps")],
)
@pytest.mark.parametrize("rounds", [True, False])
def test_bytes_are_rounded_and_saturated_by_instructions(
    level: int, lanes: int, narrows: str, rounding: str, rounds: bool
) -> None:
    target, text = Target.parse(f"x86-64-v{level}"), rounded(lanes)
    text = text if rounds else text.replace("%r :", "%x :")
    assembly = emit_assembly(lower_prim_funcs(list(parse(text).ops), LoweringOptions.of(target)), target)
    assert ("vcvtps2dq" if rounds else "vcvttps2dq") in assembly
    assert narrows in assembly
    assert rounding not in assembly


def test_halves_of_doubles(same_as_interpreter) -> None:
    """What lies between two numbers of f16, exactly and by as little as f64 tells apart; what is too large or small."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)[::7].astype(np.float64)
    halves = halves[np.isfinite(halves)]
    middles = (halves + np.nextafter(halves.astype(np.float16), np.float16(np.inf)).astype(np.float64)) / 2
    middles = middles[np.isfinite(middles)]
    others = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 65519.99, 65520.0, 1e300, -1e300, 1e-300, 2.0**-25])
    x = np.concatenate([middles, np.nextafter(middles, -math.inf), np.nextafter(middles, math.inf), others])
    same_as_interpreter(program("truncf", "f64", "f16", len(x)), [x, np.zeros(len(x), np.float16)], {})


@pytest.mark.parametrize("bits", [256, 512])
def test_no_lane_is_on_its_own(bits: int) -> None:
    """Machines with AVX2 and AVX-512 get nothing that LLVM makes of scalars, or calls a library for."""
    casts = [("fptosi", source, f"i{width}") for source in ("f32", "f64") for width in (8, 16, 64)]
    for op, source, target in [*casts, ("fptosi", "f64", "i32"), ("fptoui", "f64", "i64"), ("truncf", "f64", "f16")]:
        functions = list(parse(program(op, source, target, 64)).ops)
        text = llvm_text(lower_prim_funcs(functions, LoweringOptions(bits)))
        assert "i.sat." not in text
        assert not [line for line in text.splitlines() if "fptrunc" in line and "double" in line and "half" in line]
        is_split = target == "i64" and bits == 256
        assert ("@llvm.trunc" in text) == is_split
        assert (" fpto" in text) == (op != "truncf" and not is_split)
