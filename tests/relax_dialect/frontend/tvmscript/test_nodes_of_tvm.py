"""Every node of TensorIR that `docs/reference/tensorir.md` lists: what it becomes, and what it computes."""

import re
import runpy
import textwrap
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from relax_dialect.frontend.tvmscript import parse
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import VirtualMachine

PAGE = runpy.run_path(str(Path(__file__).parents[4] / "docs" / "generate" / "tvm_tensorir.py"))
NODES = {**PAGE["STATEMENTS"], **PAGE["LOOPS"], **PAGE["EXPRESSIONS"], **PAGE["BUFFERS"]}
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
    for field in re.findall(r"`(strides|align|scope)`", NODES[name][0]):
        assert re.search(rf"!tir.buffer<[^>]*{field} = ", text), f"no {field} in\n{text}"


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_computes_the_same_as_interpreted(mode: Literal["native", "bytecode"], functions: dict[str, PrimFuncOp]):
    machine = VirtualMachine(build(ModuleOp([func.clone() for func in functions.values()]), mode=mode))
    rng = np.random.default_rng(0)
    start = rng.normal(size=8).astype("f4"), rng.normal(size=8).astype("f4"), np.array([2, 1, 7, -4, 5, 0, 9, -1], "i4")
    for name, func in functions.items():
        wanted, found = ([array.copy() for array in start] for _ in range(2))
        compile_prim_func(func)(wanted, {})
        machine[NAMES[name]](*found)
        assert any((have != old).any() for have, old in zip(wanted, start, strict=True)) or name == "Evaluate", name
        for want, have in zip(wanted, found, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=name)
