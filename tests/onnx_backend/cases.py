"""The backend tests of the onnx package: models with inputs and expected outputs, written to files.

Kinds are those without downloads: `node`, `simple`, `pytorch-operator`, `pytorch-converted`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


@dataclass(frozen=True)
class Case:
    """One test."""

    name: str
    kind: str
    source: Any
    """The test as the onnx package describes it."""

    @property
    def model(self) -> onnx.ModelProto:
        """The model."""
        if self.source.model_dir is None:
            return self.source.model
        return onnx.load(Path(self.source.model_dir) / "model.onnx")

    @property
    def data(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        """Inputs and expected outputs."""
        if self.source.model_dir is None:
            yield from ((_values(inputs), _values(outputs)) for inputs, outputs in self.source.data_sets)
            return
        for folder in sorted(glob(f"{self.source.model_dir}/test_data_set*")):
            yield _files(folder, "input"), _files(folder, "output")

    @property
    def tolerance(self) -> tuple[float, float]:
        """The relative and the absolute one."""
        return self.source.rtol, self.source.atol


class Ragged(ValueError):
    """A sequence whose items have several shapes, or an optional value that is absent: no array."""


def _values(values: Sequence[Any]) -> list[Any]:
    if any(
        each is None or (isinstance(each, list | tuple) and len({np.shape(item) for item in each}) > 1)
        for each in values
    ):
        raise Ragged("sequences of items of several shapes and absent values are not taken as inputs")
    return [np.array(numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else each) for each in values]


def _files(folder: str, what: str) -> list[Any]:
    found: list[Any] = []
    for index in range(len(glob(f"{folder}/{what}_*.pb"))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(Path(folder, f"{what}_{index}.pb").read_bytes())
        found.append(np.array(numpy_helper.to_array(tensor)))
    return found


def load_cases(kinds: Sequence[str] = KINDS) -> list[Case]:
    """All tests of some kinds, by kind and name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for kind in kinds for case in _cases(kind, load_model_tests(kind=kind))]


def load_nodes(file: str) -> list[Case]:
    """The tests of kind `node` in a file of the onnx package that has not been imported: it computes their values then,
    which takes ten seconds for all files.
    """
    known = len(node._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(f"{node.__name__}.{file}")
    return _cases("node", node._NodeTestCases[known:])


def _cases(kind: str, tests: Iterable[Any]) -> list[Case]:
    return [Case(test.name, kind, test) for test in sorted(tests, key=lambda test: test.name)]


def differs(actual: Sequence[Any], expected: Sequence[Any], tolerance: tuple[float, float]) -> str | None:
    """What is wrong with outputs, or `None`."""
    if len(actual) != len(expected):
        return f"expected {len(expected)} outputs, got {len(actual)}"
    for index, (ours, given) in enumerate(zip(actual, expected, strict=True)):
        theirs = np.asarray(given)
        if theirs.dtype.kind in "OU":
            if not np.array_equal(ours, theirs.astype(object)):
                return f"output {index}: strings differ"
            continue
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            return f"output {index}: expected {theirs.dtype}{theirs.shape}, got {ours.dtype}{ours.shape}"
        exact = theirs.dtype.kind not in "fcV"  # bfloat16 is a V
        rtol, atol = (0.0, 0.0) if exact else (max(each, _rounding(theirs.dtype)) for each in tolerance)
        if not np.allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=not exact):
            return f"output {index}: values differ"
    return None


def _rounding(dtype: np.dtype[Any]) -> float:
    """The distance of neighbours of 1: the expected `bfloat16` are rounded after each step, ours at the end."""
    return float(ml_dtypes.finfo(dtype).eps) if dtype == ml_dtypes.bfloat16 else 0.0
