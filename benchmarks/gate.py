"""Kernels of two source trees against each other: a change may not make them slower.

`python -m benchmarks.gate OLD [--new NEW] [--only REGEX] [--rounds 9]`: OLD and NEW are checkouts (NEW is this one
without the option). Each tree has a process with one thread; both build the same programs and call them in turns, and
processor time is counted, so that neither drift of the machine nor other processes move a ratio. A ratio above 1 means
that NEW is faster. The exit status is 1 if the geometric mean is under 0.98, if a ratio is under 0.93, or if results
differ by more than rounding. Equal code may differ by a tenth between two processes, by where its memory lies: a ratio
under 0.93 is measured again in some pairs of new processes, and their median counts.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import attention, compute, convolution, elementwise, gemv, matmul, normalization, reductions

LEAST_MEAN, LEAST_ROW = 0.98, 0.93
MORE_PAIRS = 3
"""Pairs of processes in which a slow row is measured again."""
TURN = 0.006
"""Seconds of a turn."""


@dataclass(frozen=True)
class Kernel:
    """A program, as text or as a serialised ONNX model, and its arguments."""

    name: str
    program: str | bytes
    arrays: Sequence[np.ndarray]


def kernels() -> Iterator[Kernel]:
    """Those of the benchmarks of single operators."""
    convolutions = [convolution.case(*sizes) for sizes in (*convolution.RESNET, *convolution.MOBILENET)]
    families: dict[str, Sequence[compute.Case]] = {
        "matmul": matmul.cases(),
        "gemv": gemv.cases(),
        "attention": [attention.case(*shape) for shape in attention.SHAPES],
        "convolution": [*convolutions, *convolution.kinds()],
    }
    for family, cases in families.items():
        for case in cases:
            yield Kernel(f"{family}: {case.name}", case.program(), case.call_arrays)
    for family, listed in (
        ("elementwise", elementwise.CASES),
        ("normalization", normalization.CASES),
        ("reductions", reductions.CASES),
    ):
        for each in listed:
            yield Kernel(f"{family}: {each.name}", each.text, each.arguments(np.random.default_rng(0)))


class Tree:
    """The process that works with the packages of a checkout."""

    def __init__(self, root: Path):
        self.root = root
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("tree_worker.py"))],
            env={**os.environ, **threads, "PYTHONPATH": str(root.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def build(self, kernel: Kernel) -> list[np.ndarray] | str:
        """The results of a call, or why there are none; what is timed from now on."""
        return self._turn("build", kernel.program, list(kernel.arrays))

    def seconds(self) -> float:
        """Of one call."""
        return self._turn("time", TURN)

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _turn(self, *request: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)


def ratio(old: Tree, new: Tree, rounds: int) -> tuple[float, float]:
    """Seconds of the new tree, and how many times as many the old one takes: the best rounds of both."""
    olds: list[float] = []
    news: list[float] = []
    for _ in range(rounds):
        olds.append(old.seconds())
        news.append(new.seconds())
    return min(news), min(olds) / min(news)


def difference(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> float:
    """The largest one, relative to the largest value."""
    found = 0.0
    for left, right in zip(expected, got, strict=True):
        wide = left.astype("f8"), right.astype("f8")
        scale = max(1.0, float(np.abs(wide[0]).max(initial=0)))
        found = max(found, float(np.abs(wide[0] - wide[1]).max(initial=0)) / scale)
    return found


def ratio_of_new_pairs(roots: tuple[Path, Path], kernel: Kernel, rounds: int) -> tuple[float, float]:
    """The same as `ratio`, in the median of some pairs of processes that do nothing else."""
    found: list[tuple[float, float]] = []
    for _ in range(MORE_PAIRS):
        pair = Tree(roots[0]), Tree(roots[1])
        for tree in pair:
            tree.build(kernel)
        found.append(ratio(*pair, rounds))
        for tree in pair:
            tree.close()
    return sorted(found, key=lambda each: each[1])[MORE_PAIRS // 2]


def compare(old: Tree, new: Tree, kernel: Kernel, rounds: int) -> tuple[float, str] | str:
    """The ratio of a kernel and its row, or why it has none."""
    expected, got = old.build(kernel), new.build(kernel)
    if isinstance(got, str):
        return f"{kernel.name}: {got}"
    if isinstance(expected, str):
        return 1.0, f"| {kernel.name} | | new: {expected[:60]} |"
    coarse = any(array.dtype.itemsize == 2 for array in expected)
    if (apart := difference(expected, got)) > (1e-2 if coarse else 1e-4):
        return f"{kernel.name}: results differ by {apart:.2g} of the largest value"
    seconds, found = ratio(old, new, rounds)
    if found < LEAST_ROW:
        seconds, found = ratio_of_new_pairs((old.root, new.root), kernel, 2 * rounds)
    return found, f"| {kernel.name} | {seconds * 1e6:.0f} us | {found:.2f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description="Kernels of two trees, in turns.")
    parser.add_argument("old", type=Path)
    parser.add_argument("--new", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="a regular expression for names")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    old, new = Tree(options.old), Tree(options.new)
    ratios: list[float] = []
    slow: list[str] = []
    faults: list[str] = []
    print("| kernel | now | old / now |\n|---|---|---|")
    for kernel in kernels():
        if not options.only.search(kernel.name):
            continue
        found = compare(old, new, kernel, options.rounds)
        if isinstance(found, str):
            faults.append(found)
            print(f"| {found} | | |", flush=True)
            continue
        ratios.append(found[0])
        print(found[1], flush=True)
        if found[0] < LEAST_ROW:
            slow.append(found[1])
    old.close()
    new.close()
    mean = math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))
    print(f"\n{len(ratios)} kernels, geometric mean {mean:.3f}, least {min(ratios, default=1):.2f}")
    print(*(f"slower: {row}" for row in slow), *(f"wrong: {fault}" for fault in faults), sep="\n")
    return int(bool(slow or faults) or mean < LEAST_MEAN)


if __name__ == "__main__":
    sys.exit(main())
