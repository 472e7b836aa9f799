"""Every node of TensorIR that `docs/tensorir.md` lists: what it becomes, and what it computes."""

import re
import runpy
import textwrap
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.kernels import KernelOptions, compile_prim_funcs
from relax_dialect.frontend.tvmscript import parse
from tests.lowering.to_llvm.conftest import call
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.function import PrimFuncOp

PAGE = runpy.run_path(str(Path(__file__).parents[4] / "docs" / "tvm_tensorir.py"))
NODES = {**PAGE["STATEMENTS"], **PAGE["LOOPS"], **PAGE["EXPRESSIONS"]}
NAMES = {name: f"f{number}" for number, name in enumerate(NODES)}


@pytest.fixture(scope="module")
def functions() -> dict[str, PrimFuncOp]:
    """The function of each text."""
    head = "@T.prim_func\ndef {}(A: T.Buffer((8,)), B: T.Buffer((8,)), K: T.Buffer((8,), 'int32')):\n"
    texts = {name: head.format(NAMES[name]) + textwrap.indent(text, "  ") for name, (_, text) in NODES.items()}
    return {name: next(op for op in parse(text).ops if isinstance(op, PrimFuncOp)) for name, text in texts.items()}


@pytest.mark.parametrize("name", NODES)
def test_becomes_what_the_page_says(name: str, functions: dict[str, PrimFuncOp]):
    text = str(functions[name])
    for op in re.findall(r"`((?:tir|arith|vector)\.\w+)`", NODES[name][0]):
        assert f"{op} " in text, f"no {op} in\n{text}"


def test_computes_the_same_natively_and_interpreted(functions: dict[str, PrimFuncOp]):
    for func in functions.values():
        func.detach()
    kernels = compile_prim_funcs(ModuleOp([func.clone() for func in functions.values()]), options=KernelOptions())
    rng = np.random.default_rng(0)
    start = rng.normal(size=8).astype("f4"), rng.normal(size=8).astype("f4"), np.array([2, 1, 7, -4, 5, 0, 9, -1], "i4")
    for name, func in functions.items():
        wanted, found = ([array.copy() for array in start] for _ in range(2))
        compile_prim_func(func)(wanted, {})
        assert call(kernels, func, found, {}) == 0
        assert any((have != old).any() for have, old in zip(wanted, start, strict=True)) or name == "Evaluate", name
        for want, have in zip(wanted, found, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=name)
