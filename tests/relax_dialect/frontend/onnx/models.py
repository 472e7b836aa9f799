"""Small models for tests, and their outputs by the importer and by the onnx package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

Array = np.ndarray[Any, Any]

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def info(name: str, array: Array, dims: Sequence[int | str | None] | None = None) -> Any:
    """What a model says of an input that is like an array."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, list(array.shape) if dims is None else list(dims))


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Array] | None = None,
    opset: int = 21,
) -> ModelProto:
    """A model of nodes."""
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def unknown(names: Sequence[str], *ranks: int) -> list[Any]:
    """Outputs of which only the rank is said."""
    return [helper.make_tensor_value_info(name, FLOAT, [None] * rank) for name, rank in zip(names, ranks, strict=True)]


def reference(proto: ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What the onnx package computes."""
    found = ReferenceEvaluator(proto).run(None, dict(feeds))
    return [np.asarray(each) for each in found]


def run(proto: ModelProto, *arrays: Array, **options: Any) -> list[Array]:
    """What the imported and compiled model computes."""
    return results(VirtualMachine(build(import_model(proto, **options)))["main"], *arrays)


def results(function: Any, *arrays: Array) -> list[Array]:
    """The outputs of a compiled model."""
    found = function(*arrays)
    return [to_numpy(each) for each in ([found] if hasattr(found, "__dlpack__") else found)]


def assert_same(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Equal dtypes and shapes, and values up to rounding."""
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(ours, theirs)
