"""ONNX graphs in few lines: each operator gives the name of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET = 17


class Graph:
    """A graph in the making.

    ::

        g = Graph()
        x = g.input("x", ("n", 4))
        model = g.model(g.op("Relu", x))
    """

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._initializers: list[Any] = []

    def input(self, name: str, shape: Sequence[int | str], dtype: type = np.float32) -> str:
        """An input with dimensions that are numbers or names."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def weight(self, array: np.ndarray) -> str:
        """A constant."""
        from onnx import numpy_helper

        name = f"w{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        """A constant vector of `i64`."""
        return self.weight(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        """A constant `f32`."""
        return self.weight(np.array(value, np.float32))

    def ops(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """An operator with several results."""
        from onnx import helper

        names = [f"t{len(self._nodes)}_{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, f"{kind}_{len(self._nodes)}", **attributes))
        return names

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """An operator with one result."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def model(self, *outputs: str) -> ModelProto:
        """The model with these results, whose shapes follow from the graph."""
        from onnx import TensorProto, helper
        from onnx.shape_inference import infer_shapes

        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "network", self._inputs, infos, self._initializers)
        return infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8))
