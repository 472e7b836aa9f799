"""Functions of one operator each, compiled once, run on many shapes in every mode and compared with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.deferred import bindings
from lowering.parsing import parse_module
from lowering.relax.functions.bind_params import bind_symbols
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp
from tests.operators.erasure import erase
from tests.operators.sharding import check_sharded
from tests.support.programs import EVERY, MODES, Tolerance, as_arguments, as_plain, assert_same, run_with_copies
from tests.support.sweeps import lesser_machines
from vm_dialect import VirtualMachine

DTYPES: Mapping[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "i1": np.bool_,
}
"""NumPy's dtypes by their names in the text of the IR."""

TOLERANCES: Mapping[str, Tolerance] = {
    "f16": Tolerance(2e-3, 1e-3),
    "bf16": Tolerance(1.6e-2, 1e-2),
    "f32": Tolerance(2e-5, 2e-6),
    "f64": Tolerance(1e-12, 1e-13),
}
"""A few units in the last position; integers are compared exactly."""

SIZES = (0, 1, 2, 7)


def symbols_of(text: str) -> list[str]:
    """The symbols in the shapes and prims of a parameter list, in order."""
    dims = [*re.findall(r"<\[([^\]]*)\]", text), *re.findall(r"prim<i64, ([^>]*)>", text)]
    return list(dict.fromkeys(name for dim in dims for name in re.findall(r"[a-z]\w*", dim)))


def function(name: str, params: str, body: str) -> str:
    """The text of a function whose last op, `body`, is what it returns; ops before it end in `;`."""
    *before, last = body.split(";")
    count = last.count("=", 0, last.index("relax.")) if "%" in last.split("relax.")[0] else 0
    symbols = ", ".join(f"%{symbol}" for symbol in symbols_of(params))
    lines = [f"relax.func @{name}{f'[{symbols}]' if symbols else ''}({params}) -> !relax.object {{"]
    lines += [f"  {line.strip()}" for line in before]
    if count:
        results = last.split("=")[0]
        lines += [f"  {last.strip()}", f"  %result = relax.tuple({results.strip()})"]
    else:
        lines += [f"  %result = {last.strip()}"]
    return "\n".join([*lines, "  relax.return %result", "}"])


Runners: TypeAlias = Mapping[str, Callable[[str], Callable[..., object]]]
"""For each mode, and native code for each machine, what gives a function by name."""


class Knowledge:
    """How much is known about the tensors that functions take: one of the keys of `tests.operators.erasure.LEVELS`.

    What is `written` has symbols for sizes. Where these are `known`, each function is compiled for the sizes of its
    first call, and not called with others. What is `sharded` is interpreted by several workers.
    """

    level: ClassVar[str] = "written"


class Programs:
    """Functions by name, each `(parameters, body)`; they become one module, and one artefact for each mode.

    The functions named in `seldom`, which only slow tests call, are a module of their own.
    """

    def __init__(self, functions: Mapping[str, tuple[str, str]], seldom: Collection[str] = ()):
        self._functions = {name: parts for name, parts in functions.items() if name not in seldom}
        self._seldom = Programs({name: functions[name] for name in seldom}) if seldom else None
        self._runners: dict[str, Runners] = {}
        self._of_first_call: dict[str, Runners] = {}

    @property
    def text(self) -> str:
        """The module, with as much known of the parameters as `Knowledge` says."""
        erased = {name: erase(*parts, Knowledge.level) for name, parts in self._functions.items()}
        return "\n\n".join(function(name, *parts) for name, parts in erased.items())

    @property
    def runners(self) -> Runners:
        """For each mode, what gives a function by name."""
        found = self._runners.get(self.text)
        if found is None:
            found = self._runners[self.text] = self._build(parse_module(self.text))
        return found

    def _for_sizes_of(self, name: str, args: Sequence[Any]) -> Runners | None:
        """What `runners` is, of one function for the sizes of its first call; nothing for later calls."""
        if name in self._of_first_call:
            return None
        module = parse_module(function(name, *self._functions[name]))
        func = next(op for op in module.ops if isinstance(op, FuncOp))
        values: dict[str, int] = {}
        for argument, info in zip(as_arguments(args), func.function_type.params, strict=True):
            values |= bindings(argument, info)
        bind_symbols(func, values)
        self._of_first_call[name] = found = self._build(module)
        return found

    def _build(self, module: ModuleOp) -> Runners:
        verify_module(module)
        machines = {mode: VirtualMachine(build(module, mode=mode)) for mode in MODES if mode != "interpret"}
        for lesser in lesser_machines(str(module), EVERY):
            machines[f"native for {lesser}"] = VirtualMachine(build(module, target=lesser))

        def interpreted(name: str) -> Callable[..., object]:
            return lambda *args: as_plain(run(module, name, args))

        def compiled(machine: VirtualMachine) -> Callable[[str], Callable[..., object]]:
            return lambda name: lambda *args: as_plain(machine[name](*as_arguments(args)))

        return {"interpret": interpreted, **{mode: compiled(machine) for mode, machine in machines.items()}}

    def check(self, name: str, args: Sequence[Any], expected: object, tolerance: Tolerance | None = None) -> None:
        """Runs a function in every mode: each result has to be `expected`, and the arguments stay what they were."""
        if self._seldom is not None and name not in self._functions:
            self._seldom.check(name, args, expected, tolerance)
            return
        if Knowledge.level == "sharded":
            check_sharded(function(name, *self._functions[name]), args, expected, tolerance or tolerance_of(expected))
            return
        runners = self._for_sizes_of(name, args) if Knowledge.level == "known" else self.runners
        if runners is None:
            return
        for mode, of_mode in runners.items():
            result, after = run_with_copies(of_mode(name), args)
            chosen = tolerance or tolerance_of(expected)
            assert_same(result, expected, chosen, f"{name} {mode} {[getattr(arg, 'shape', arg) for arg in args]}")
            assert_same(after, tuple(args), Tolerance(0, 0), f"{name} {mode} changed its arguments")


def slow_ones(names: Iterable[str], seldom: Collection[str]) -> list[Any]:
    """Names as parameters of a test, slow where they are called seldom."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in seldom)) for name in names]


def tolerance_of(expected: object) -> Tolerance:
    """The tolerance for the dtype of a result, the largest for a tuple."""
    if isinstance(expected, tuple):
        return max((tolerance_of(field) for field in expected), key=lambda each: each.relative)
    names = [name for name, dtype in DTYPES.items() if isinstance(expected, np.ndarray) and expected.dtype == dtype]
    return TOLERANCES.get(names[0] if names else "", Tolerance(0, 0))


def random(dtype: str, *shape: int, seed: int = 0, low: float = -4, high: float = 4) -> np.ndarray:
    """Numbers between `low` and `high`, halves among them, so that ties occur; of integers, whole numbers."""
    rng = np.random.default_rng((seed, *shape))
    if dtype == "i1":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype[0] in "iu":
        return np.asarray(rng.integers(0 if dtype[0] == "u" else int(low), int(high) + 1, shape), DTYPES[dtype])
    return np.asarray(np.round(rng.uniform(low, high, shape) * 8) / 8, DTYPES[dtype])


def wide(x: np.ndarray) -> np.ndarray:
    """Floats as `f64`, for a reference that is more exact than what is tested."""
    return x.astype(np.float64) if x.dtype.kind not in "iub" else x
