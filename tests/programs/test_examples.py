"""The example programs: interpreter, bytecode and native code agree with NumPy, one artefact for all shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from examples import packed_functions
from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run as interpret
from vm_dialect import VirtualMachine

EXAMPLES = Path(__file__).parents[2] / "examples"
MODES = ("interpret", "bytecode", "native")
SIZES = (0, 1, 2, 5, 16, 33, 64)


@dataclass(frozen=True)
class Program:
    file: str
    entry: str
    inputs: Callable[[np.random.Generator, int], Sequence[np.ndarray]]
    reference: Callable[..., np.ndarray]


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def shape_example(x: np.ndarray) -> np.ndarray:
    flat = x.reshape(-1)
    return np.exp(np.unique(flat[: (flat.size + 1) // 2]))


PROGRAMS = (
    Program(
        "user_facing.mlir",
        "relax_func",
        lambda rng, s: (random(rng, s, 3), random(rng, 3, s + 1)),
        lambda x, w: 2 * np.exp((x @ w).reshape(-1)),
    ),
    Program(
        "cross_level.mlir",
        "relax_func",
        lambda rng, s: (random(rng, s, 2 * s + 1), random(rng, 2 * s + 1, 7)),
        lambda x, y: np.tile(2 * (x @ y), (1, 2)),
    ),
    Program("mvp.mlir", "myfunc", lambda rng, s: (random(rng, s, 5),), lambda x: np.exp(x).reshape(-1)),
    Program(
        "data_dependent.mlir",
        "main",
        lambda rng, s: (rng.integers(0, 5, s).astype(np.float32),),
        lambda x: np.exp(np.unique(x)),
    ),
    Program("shape_function.mlir", "shape_example", lambda rng, s: (random(rng, s, 2, 2),), shape_example),
)


@cache
def runner(file: str, entry: str, mode: str) -> Callable[..., object]:
    module = parse_module((EXAMPLES / file).read_text(), file)
    if mode == "interpret":
        return lambda *args: interpret(module, entry, args)
    return VirtualMachine(build(module, mode=mode))[entry]


@pytest.fixture(autouse=True)
def _packed_functions() -> None:
    packed_functions.register()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_agrees_with_numpy(program: Program, mode: str, size: int) -> None:
    inputs = program.inputs(np.random.default_rng(size), size)
    expected = program.reference(*inputs)
    result = runner(program.file, program.entry, mode)(*[tvm_ffi.from_dlpack(x) for x in inputs])
    actual = np.from_dlpack(result)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-5)
