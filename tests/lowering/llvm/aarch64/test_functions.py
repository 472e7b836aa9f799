"""Elementary functions of f32 in NEON code are at most 2 units in the last position off, as they are on x86-64."""

import numpy as np

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from tests.lowering.llvm.aarch64.support import TARGET, emulator_of
from tests.lowering.tir_to_llvm.math.functions import LOOP, REFERENCES, check, inputs


def test_functions():
    text = "".join(LOOP.replace("NAME", name).replace("KIND", "vectorized") for name in REFERENCES)
    kernels = compile_prim_funcs(parse_module(text), TARGET, cache=NO_CACHE)
    emulator = emulator_of(kernels)
    x = inputs(0)
    for name, reference in REFERENCES.items():
        _, data = emulator.call(kernels.symbols[f"{name}_vectorized"], (), [x, np.empty_like(x)], at_end=True)
        with np.errstate(all="ignore"):
            exact = np.float64(reference(x.astype(np.float64)))
        check(name, x, np.frombuffer(data, np.float32), exact)
