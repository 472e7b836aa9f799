"""Tensor expressions made into functions and run on NumPy arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tir_dialect import te
from tir_dialect.interpreter import run_prim_func

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {
    f"{kind}{bits}": np.dtype(f"{name}{bits}")
    for kind, name in (("i", "int"), ("ui", "uint"))
    for bits in (8, 16, 32, 64)
}


def numpy_type(dtype):
    return np.dtype({**FLOATS, **INTEGERS, "i1": np.bool_}[dtype])


def values_of(dtype, seed, shape):
    """Random values, with the extremes of an integer dtype among them."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in FLOATS:
        return (rng.standard_normal(shape) * 3).astype(FLOATS[dtype])
    info = np.iinfo(INTEGERS[dtype])
    values = rng.integers(-20 if info.min < 0 else 0, 20, shape).astype(INTEGERS[dtype])
    values.flat[:2] = [info.min, info.max][: values.size]
    return values


def evaluate(inputs, outputs, *arrays, **symbols):
    """The outputs of the function over `inputs`; their shapes follow from the symbols."""
    outs = outputs if isinstance(outputs, tuple) else (outputs,)
    func = te.create_prim_func([*inputs, *outs])
    func.verify()
    results = [np.zeros([dim.evaluate(symbols) for dim in out.shape], numpy_type(str(out.dtype))) for out in outs]
    run_prim_func(func, [*arrays, *results], {s: v for s, v in symbols.items() if s in func.symbol_names})
    return tuple(results) if isinstance(outputs, tuple) else results[0]


def close(got, want, dtype):
    tolerance = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-13}.get(dtype, 0)
    np.testing.assert_allclose(
        got.astype(np.float64), np.asarray(want).astype(np.float64), rtol=tolerance, atol=tolerance
    )
