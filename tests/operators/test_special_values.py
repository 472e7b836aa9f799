"""Floating-point operators at special values: zeros, infinities, NaN, denormals, the largest numbers, in native code.

Its results agree with the interpreter's in what is NaN, in signs, also of zeros, and in values but for a few
units in the last position, as do those of its kernels interpreted, and of native code without rewrites. Bytecode
calls the same kernels.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.ops import activation, binary, unary
from relax_dialect.ops.binary import BinaryOp
from relax_dialect.ops.unary import UnaryOp
from relax_dialect.scalars import Domain
from tests.operators.support import DTYPES, function
from tests.support.programs import as_arguments, as_plain, run_pipeline
from vm_dialect import VirtualMachine

FLOATS = ("f32", *(pytest.param(each, marks=pytest.mark.slow) for each in ("f64", "f16", "bf16")))
CANCELS = ("gelu", "gelu_tanh", "log_add_exp")
"""Results that are differences of numbers near 1."""

EXPONENTS = (0.0, -0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0, -3.0, 0.3, 100.0)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 3.0, 0.1)
BY_NUMBER = ("add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod", "maximum", "minimum")


def _of_floats(base: type[Any], *modules: Any) -> list[type[Any]]:
    kinds = (Domain.FLOAT, Domain.NUMERIC, Domain.ANY)
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, base) and "name" in vars(each) and each.SCALAR.domain in kinds]


def _constant(number: float, dtype: str) -> str:
    return f"%c = relax.constant dense<{number}> : tensor<{dtype}>"


SETS = ("alone", pytest.param("composed", marks=pytest.mark.slow))
"""Operators of parameters and numbers, and of the results of each other."""


def _functions(dtype: str, which: str = "alone") -> dict[str, tuple[str, str]]:
    x, y = f"%x: !relax.tensor<[n], {dtype}>", f"%y: !relax.tensor<[n], {dtype}>"
    if which == "composed":
        inner = ("exp", "log", "sqrt", "square", "negative", "reciprocal", "abs", "sign")
        pairs = [(outer, name) for name in inner for outer in inner if outer != "sign"]
        found = {f"{outer} {name}": (x, f"%a = relax.{name} %x; relax.{outer} %a") for outer, name in pairs}
        found["relu of clip"] = (x, "%a = relax.clip %x min = -inf max = 6.0; relax.nn.relu %a")
        return found
    found = {each.name: (x, f"{each.name} %x") for each in _of_floats(UnaryOp, unary, activation)}
    found |= {each.name: (f"{x}, {y}", f"{each.name} %x, %y") for each in _of_floats(BinaryOp, binary)}
    for number in EXPONENTS:
        found[f"power {number}"] = (x, f"{_constant(number, dtype)}; relax.power %x, %c")
    for number in NUMBERS:
        for name in BY_NUMBER:
            found[f"{name} {number}"] = (x, f"{_constant(number, dtype)}; relax.{name} %x, %c")
            found[f"{number} {name}"] = (x, f"{_constant(number, dtype)}; relax.{name} %c, %x")
    for name in ("subtract", "divide", "maximum"):
        found[f"{name} itself"] = (x, f"relax.{name} %x, %x")
    found["clip"] = (x, "relax.clip %x min = -1.0 max = 6.0")
    found["clip at zero"] = (x, "relax.clip %x min = 0.0 max = inf")
    found["leaky"] = (x, "relax.nn.leakyrelu %x alpha = 0.5")
    return found


def _values(dtype: str) -> np.ndarray:
    """Special values of both signs, and plain ones."""
    kind = DTYPES[dtype]
    limits: Any = ml_dtypes.finfo(kind)
    ends = (limits.max, limits.max / kind(2), limits.tiny, limits.smallest_subnormal)
    underflow = 1 - np.log(float(limits.tiny))  # the exponential of the negative number is denormal
    sizes = [0.0, 1.0, 0.5, 0.25, 1.5, 2.0, 3.0, 7.0, 100.25, 1e-3, underflow, *map(float, ends), float("inf")]
    return np.array([*sizes, *(-each for each in sizes), float("nan")]).astype(kind)


@cache
def _runners(dtype: str, which: str = "alone") -> dict[str, Callable[[str], Callable[..., object]]]:
    texts = [function(f"f{index}", *parts) for index, parts in enumerate(_functions(dtype, which).values())]
    module = parse_module("\n\n".join(texts))
    kernels = module.clone()
    run_pipeline(kernels, "legalize-ops")

    def interpreted(program: Any) -> Callable[[str], Callable[..., object]]:
        return lambda name: lambda *args: as_plain(run(program, name, args))

    def compiled(**options: Any) -> Callable[[str], Callable[..., object]]:
        machine = VirtualMachine(build(module.clone(), **options))
        return lambda name: lambda *args: as_plain(machine[name](*as_arguments(args)))

    return {
        "interpret": interpreted(module),
        "kernels": interpreted(kernels),
        "native": compiled(),
        "plain": compiled(opt_level=0),
    }


def _differing(name: str, dtype: str, got: np.ndarray, want: np.ndarray, args: Sequence[np.ndarray]) -> np.ndarray:
    """The positions where two results do not agree."""
    if want.dtype == bool:
        return np.flatnonzero(got != want)
    limits: Any = ml_dtypes.finfo(DTYPES[dtype])
    a, b = got.astype(np.float64), want.astype(np.float64)
    sizes = [np.where(np.isfinite(each), abs(each), 0) for each in (b, *(arg.astype(np.float64) for arg in args))]
    size = np.maximum.reduce(sizes) if name.rpartition(".")[2] in CANCELS else sizes[0]
    with np.errstate(all="ignore"):
        near = (a == b) | (abs(a - b) <= 16 * float(limits.eps) * size + 2 * float(limits.smallest_subnormal))
    same = near & (np.signbit(a) == np.signbit(b))
    return np.flatnonzero(~(same | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_all_modes_agree(dtype: str, which: str):
    runners, values = _runners(dtype, which), _values(dtype)
    wrong: list[str] = []
    for index, (name, (params, _)) in enumerate(_functions(dtype, which).items()):
        args = [np.repeat(values, values.size), np.tile(values, values.size)] if "%y" in params else [values]
        results = {mode: np.asarray(runner(f"f{index}")(*args)) for mode, runner in runners.items()}
        for mode, got in results.items():
            for place in _differing(name, dtype, got, results["interpret"], args)[:3]:
                where = ", ".join(str(arg[place]) for arg in args)
                wrong.append(f"{name} {mode}: f({where}) = {got[place]}, expected {results['interpret'][place]}")
    assert not wrong, "\n".join(wrong)


def test_values():
    """What the interpreter says is IEEE 754's, or NumPy's where there is no other definition."""
    inf, nan = float("inf"), float("nan")
    x = np.array([0.0, -0.0, inf, -inf, nan, 4.0, -4.0], np.float32)
    cases = {
        "power 0.5": [0.0, 0.0, inf, inf, nan, 2.0, nan],
        "power -0.5": [inf, inf, 0.0, 0.0, nan, 0.5, nan],
        "power 0.0": [1.0] * 7,
        "power -1.0": [inf, -inf, 0.0, -0.0, nan, 0.25, -0.25],
        "multiply 0.0": [0.0, -0.0, nan, nan, nan, 0.0, -0.0],
        "add 0.0": [0.0, 0.0, inf, -inf, nan, 4.0, -4.0],
        "subtract itself": [0.0, 0.0, nan, nan, nan, 0.0, 0.0],
        "divide itself": [nan, nan, nan, nan, nan, 1.0, 1.0],
        "maximum -0.0": [0.0, -0.0, inf, -0.0, nan, 4.0, -0.0],
        "minimum 0.0": [0.0, -0.0, 0.0, -inf, nan, 0.0, -4.0],
        "relax.sign": [0.0, 0.0, 1.0, -1.0, nan, 1.0, -1.0],
        "relax.nn.relu": [0.0, 0.0, inf, 0.0, nan, 4.0, 0.0],
        "floor_mod 3.0": [0.0, 0.0, nan, nan, nan, 1.0, 2.0],
        "floor_divide 3.0": [0.0, -0.0, nan, nan, nan, 1.0, -2.0],
    }
    names = list(_functions("f32"))
    for name, expected in cases.items():
        for mode, runner in _runners("f32").items():
            got = np.asarray(runner(f"f{names.index(name)}")(x))
            np.testing.assert_array_equal(got, np.array(expected, np.float32), err_msg=f"{name} {mode}")
            signs = np.signbit(got) == np.signbit(np.array(expected))
            assert (signs | np.isnan(got)).all(), f"{name} {mode}: {got}"
