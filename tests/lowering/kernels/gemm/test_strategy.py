"""Which generators make the code of a contraction, and what is said about it."""

from __future__ import annotations

import pytest

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import SUMS, Sum, kernel, known
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

NARROW, WIDE = Target.parse("x86-64-v3 cores=1"), Target.parse("x86-64-v4 cores=1")


def names(text: str, target: Target = NARROW) -> list[str]:
    explanation = schedule(kernel(text), target)
    assert explanation is not None
    return [each.split()[0] for each in explanation.split(", else ")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("product", ["gemv", "small-m", "small-n", "skinny", "packed"]),
        ("left transposed", ["gemv", "small-m", "operand-swap", "skinny", "packed"]),
        ("right transposed", ["small-n", "long-dot", "dot", "skinny", "packed"]),
        ("row vector", ["gemv"]),
    ],
)
def test_symbolic_sizes_have_several_generators(case: str, expected: list[str]) -> None:
    assert names(SUMS[case].text) == expected


@pytest.mark.parametrize(
    ("m", "k", "n", "expected"),
    [
        (1, 512, 4096, ["gemv"]),
        (4, 512, 4096, ["small-m"]),
        (4096, 512, 3, ["small-n"]),
        (300, 512, 48, ["skinny"]),
        (512, 512, 512, ["packed"]),
    ],
)
def test_known_sizes_have_one_generator(m: int, k: int, n: int, expected: list[str]) -> None:
    assert names(known(m, k, n)) == expected


def test_the_last_candidate_has_no_condition() -> None:
    assert schedule(kernel(known(512, 512, 512)), WIDE) == "packed in tiles of 14 x 32"
    assert schedule(kernel(known(1, 512, 4096)), NARROW) == "gemv since M = 1"


def test_bytes_in_dot_product_groups() -> None:
    text = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], i8>, %y: !relax.tensor<[k, n], i8>) {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}"""
    vnni, amx = Target.parse("znver4 cores=1"), Target.parse("sapphirerapids cores=1")
    assert names(text, vnni) == names(text, amx) == ["dot-product"]
    assert names(text, Target.parse("x86-64-v3 cores=1")) == ["dot-product"]  # of 16 bits
    assert names(text, Target.parse("x86-64-v2 cores=1")) == ["gemv", "skinny", "packed"]


def test_nothing_is_said_without_a_contraction() -> None:
    func = kernel("""
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.nn.relu %x
  relax.return %0
}""")
    assert schedule(func, NARROW) is None


def test_a_kernel_does_not_contain_what_is_said_of_it() -> None:
    """Caches of compiled code know kernels by their text."""
    func: PrimFuncOp = kernel(Sum("mk,kn->mn").text)
    before = set(func.attributes)
    assert schedule(func, NARROW) is not None
    assert set(func.attributes) == before
