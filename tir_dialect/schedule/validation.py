"""Translation validation of schedules: a step is accepted if the function computes what it did before, at some sizes.

After A. Pnueli, M. Siegel, E. Singerman, "Translation validation", TACAS 1998; here by running both functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tir_dialect import dtypes
from tir_dialect.analysis.dims import layout_symbols
from tir_dialect.interpreter import Run, compile_prim_func
from tir_dialect.interpreter.run import Argument
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.handles import ScheduleError
from tir_dialect.types import BufferType

UNSAFE = "unsafe_"
"""How the names of primitives begin that change what a function computes."""

Sizes = Mapping[str, int]
"""Values of symbols."""

PATTERNS = ((3, 5, 4, 7), (8, 4, 16, 2), (7, 9, 2, 5), (1,), (0,))
"""Values of the symbols in order, repeated, within their bounds: odd ones, multiples of usual factors, units, none."""

ROUNDINGS = 1024
"""How many units in the last position of the largest result a floating-point result may differ, as sums in another
order do; arguments are small integers, of which most sums and products are exact.
"""


@dataclass(frozen=True)
class Sample:
    """A call of the original function: the values of its symbols, its arguments, and what it leaves in them."""

    sizes: Sizes
    arguments: Sequence[Argument]
    results: Sequence[Argument]


class Validator:
    """Compares functions under transformation with what they were at first, at some sizes.

    `sizes` are values of the symbols, of one run at least (else ValueError); without any, small ones within their
    bounds, 0 and 1 among them.
    """

    def __init__(self, sizes: Sequence[Sizes] | None = None):
        if sizes is not None and not sizes:
            raise ValueError("validate: expected True, or values of the symbols for one run at least, got none")
        self._sizes = sizes
        self._originals: dict[str, list[Sample]] = {}

    def check(self, step: str, before: Mapping[str, PrimFuncOp], after: Mapping[str, PrimFuncOp]) -> None:
        """ScheduleError if one of the functions `after` the step computes otherwise than it did at first.

        One that is changed by an `unsafe_` primitive, or has parameters of other types, is the original of later steps.
        """
        for name, function in before.items():
            changed = after[name]
            if step.startswith(UNSAFE) or function.body.block.arg_types != changed.body.block.arg_types:
                self._originals.pop(name, None)
            elif (wrong := self._difference(step, function, changed)) is not None:
                raise ScheduleError(step, f"after this step {wrong}")

    def _difference(self, step: str, before: PrimFuncOp, after: PrimFuncOp) -> str | None:
        """What `after` computes otherwise, in words; ScheduleError if the original runs at none of the sizes."""
        if before.is_structurally_equivalent(after):
            return None
        name = before.sym_name.data
        if name not in self._originals:
            self._originals[name] = self._samples(step, before)
        runs = [compile_prim_func(after, parallel_order=order) for order in (iter, reversed)]
        found = (_difference(after, run, sample) for sample in self._originals[name] for run in runs)
        return next(filter(None, found), None)

    def _samples(self, step: str, func: PrimFuncOp) -> list[Sample]:
        run, failures = compile_prim_func(func), list[str]()
        samples: list[Sample] = []
        for sizes in self._sizes or default_sizes(func):
            if missing := [name for name in func.symbol_names if name not in sizes]:
                raise ScheduleError(step, f"@{func.sym_name.data} cannot be validated with no value of {missing[0]}")
            try:
                # Small integers, in arrays of the parameters' shapes and dtypes, and as scalars.
                rng = np.random.default_rng(0)
                arguments: list[Argument] = []
                for param in func.params:
                    type_ = param.type
                    shape = [dim.evaluate(sizes) for dim in type_.shape] if isinstance(type_, BufferType) else []
                    dtype = dtypes.numpy_dtype(type_.dtype if isinstance(type_, BufferType) else type_)
                    least = 0 if dtype.kind in "ub" else -4
                    values = rng.integers(least, 5, shape).astype(dtype)
                    arguments.append(values if isinstance(type_, BufferType) else values.item())
                results = _run(run, func, arguments, sizes)
            except Exception as error:  # of any kind: the kernel may call Python functions
                failures.append(f"{type(error).__name__}: {error}")
                continue
            samples.append(Sample(sizes, arguments, results))
        if not samples:
            message = f"@{func.sym_name.data} cannot be validated, it runs at none of the sizes: {failures[0]}"
            raise ScheduleError(step, message)
        return samples


def default_sizes(func: PrimFuncOp) -> list[dict[str, int]]:
    """Small values for the symbols of a function, within their bounds."""
    found: list[dict[str, int]] = []
    for pattern in PATTERNS:
        sizes: dict[str, int] = {}
        for index, symbol in enumerate(func.symbols):
            lower, upper = symbol.interval
            value = max(pattern[index % len(pattern)], lower)
            sizes[symbol.symbol.data] = value if upper is None else min(value, upper)
        if sizes not in found:
            found.append(sizes)
    return found


def _run(run: Run, func: PrimFuncOp, arguments: Sequence[Argument], sizes: Sizes) -> list[Argument]:
    """What a run leaves in copies of the arguments."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    layouts = {each.name for each in layout_symbols([param.type for param in func.params])}
    run(copies, {name: sizes[name] for name in func.symbol_names if name not in layouts})
    return copies


def _difference(func: PrimFuncOp, run: Run, sample: Sample) -> str | None:
    where = ", ".join(f"{name} = {value}" for name, value in sample.sizes.items())
    where = f" for {where}" if where else ""
    try:
        found = _run(run, func, sample.arguments, sample.sizes)
    except Exception as error:  # the original did not raise
        return f"the function fails{where}: {type(error).__name__}: {error}"
    for param, want, have in zip(func.params, sample.results, found, strict=True):
        if isinstance(want, np.ndarray) and isinstance(have, np.ndarray) and isinstance(param.type, BufferType):
            wrong = np.argwhere(~_equal(want, have, param.type.dtype))
            if len(wrong):
                index = tuple(wrong[0].tolist())
                at = ", ".join(map(str, index))
                return f"{param.name_hint}[{at}] becomes {have[index]} instead of {want[index]}{where}"
    return None


def _equal(want: np.ndarray[Any, Any], have: np.ndarray[Any, Any], dtype: Attribute) -> np.ndarray[Any, Any]:
    """Element by element: whether they are the same, but for rounding."""
    if not dtypes.is_float(dtype):
        return want == have
    wide, other = want.astype(np.float64), have.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    tolerance = ROUNDINGS * dtypes.epsilon(dtype) * (finite.max() if finite.size else 0.0)
    return np.isclose(other, wide, rtol=0.0, atol=tolerance, equal_nan=True)
