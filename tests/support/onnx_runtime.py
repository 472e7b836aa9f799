"""ONNX Runtime as a reference, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from onnx import ModelProto

Array = np.ndarray[Any, Any]


def of_onnx_runtime(proto: ModelProto, feeds: dict[str, Array]) -> list[Array] | None:
    """What ONNX Runtime computes; `None` if it is not installed, or refuses the model."""
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    bare = ModelProto()
    bare.CopyFrom(proto)
    for output in bare.graph.output:
        output.ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(bare.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found: Any = session.run(None, feeds)
        return [np.asarray(each) for each in found]
    except Exception:  # Of any class that its bindings have.
        return None
