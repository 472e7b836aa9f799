"""Small models for tests, and their outputs by the importer and by the onnx package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

Array = np.ndarray[Any, Any]

Case = tuple[str, list[Any], dict[str, Any], Callable[..., Any]]
"""An operator of ONNX Runtime's domain, its operands (`None` where one is absent), its attributes, and a formula for
its result, or for all of them as a list (`None` for one that is not wanted).
"""

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


def assert_same_for_batches(cases: Mapping[str, Case], symbols: Mapping[int, str]) -> None:
    """Compiles all cases as one model, and compares all items of the batch and the first two with the formulas.

    Of the first two dimensions of an operand one follows the batch if `symbols` has a name for its size: the first of
    these sizes is that of the batch, others are multiples. Other operands are constants.
    """
    nodes: list[NodeProto] = []
    inputs: list[Any] = []
    outputs: list[Any] = []
    constants: dict[str, Array] = {}
    arrays: list[Array] = []
    for at, (name, (operator, operands, attributes, formula)) in enumerate(cases.items()):
        own = ["" if each is None else f"x{at}_{index}" for index, each in enumerate(operands)]
        wanted = _listed(formula(*operands))
        made = ["" if each is None else f"y{at}_{index}" for index, each in enumerate(wanted)]
        nodes.append(helper.make_node(operator, own, made, name, domain="com.microsoft", **attributes))
        outputs += [unknown([key], each.ndim)[0] for key, each in zip(made, wanted, strict=True) if each is not None]
        for key, each in zip(own, operands, strict=True):
            axis = _batch_axis(each, symbols)
            if axis is not None:
                dims = [symbols[size] if dim == axis else size for dim, size in enumerate(each.shape)]
                inputs.append(info(key, each, dims))
                arrays.append(each)
            elif each is not None:
                constants[key] = np.asarray(each)
    function = VirtualMachine(build(import_model(model(nodes, inputs, outputs, constants))))["main"]
    batch = next(iter(symbols))
    for items in (batch, 2):

        def some(operand: Any, items: int = items) -> Any:
            axis = _batch_axis(operand, symbols)
            return operand if axis is None else operand.take(range(operand.shape[axis] * items // batch), axis)

        found = iter(results(function, *map(some, arrays)))
        for name, (_, operands, _, formula) in cases.items():
            for each in _listed(formula(*map(some, operands))):
                if each is not None:
                    np.testing.assert_allclose(
                        next(found), each, rtol=2e-4, atol=2e-5, err_msg=f"{name}, {items} items"
                    )


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _batch_axis(operand: Any, symbols: Mapping[int, str]) -> int | None:
    """The dimension that follows the batch, if one does."""
    return next((axis for axis, size in enumerate(np.shape(operand)[:2]) if size in symbols), None)
