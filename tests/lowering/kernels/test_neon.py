"""Tiles of sums on processors with 32 registers of 128 bits, whose multiply-adds take all factors from registers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.lowering.kernels.attention import test_attention as attention
from tests.lowering.kernels.conv import test_direct as direct
from tests.lowering.kernels.gemm.support import SUMS, compile_to_text, kernel
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

FUNCTIONS: dict[str, Callable[[], PrimFuncOp]] = {
    "product": lambda: kernel(SUMS["product"].text),
    "convolution in blocks of 8": lambda: direct.kernel("blocks of 8"),
    "attention": lambda: attention.kernel(attention.CASES["many features"].text),
    "attention of doubles": lambda: attention.kernel(attention.CASES["f64"].text),
}


def inner_loops(text: str) -> Iterator[str]:
    """The code of loops without a label inside."""
    for part in text.split("\n.LBB")[1:]:
        label, body = part.split(":", 1)
        if (back := re.search(rf"\n\t\w\S*\t(?:.*, )?\.LBB{label}\n", f"{body}\n")) is not None:
            yield body[: back.start()]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "machine"), [*((name, "neoverse-n1") for name in FUNCTIONS), ("convolution in blocks of 8", "cortex-a53")]
)
def test_sums_stay_in_their_registers(name: str, machine: str) -> None:
    """LLVM loads ahead, in its way for each machine: where registers do not suffice, it moves sums to and fro."""
    text = compile_to_text(FUNCTIONS[name](), Target.parse(f"{machine} cores=2"))
    loops = [loop for loop in inner_loops(text) if len(re.findall(r"\tfmla\t", loop)) >= 16]
    assert loops
    for loop in loops:
        assert re.search(r"fmla\tv\d+\.\d[sd], v\d+\.\d[sd], v\d+\.[sd]\[0\]", loop), "an element is a vector first"
        assert not re.search(r"\tmov\tv\d+\.16b|\t(?:ld|st)[rp]\t[dqs]\d.*\[sp", loop)
