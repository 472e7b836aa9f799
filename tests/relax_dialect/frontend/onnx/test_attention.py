"""The importer makes one operator of ONNX's Attention, with the values of the onnx package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(0)
HEADS = RNG.standard_normal((2, 4, 3, 8)).astype(np.float32)
FEW = RNG.standard_normal((2, 2, 5, 8)).astype(np.float32)
FLAT = RNG.standard_normal((2, 3, 16)).astype(np.float32)
LENGTHS = (3, 5)
"""What is a dimension with a name in dynamic models."""
SEEN = np.array([[True, False, True], [False, False, False], [True, True, True]])
FAR = np.where(SEEN, np.float32(0.25), np.float32(-np.inf))

CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "plain": ([HEADS, HEADS, HEADS], {}),
    "fewer heads": ([HEADS, FEW, FEW], {"scale": 0.5}),
    "causal": ([HEADS, HEADS, HEADS, SEEN], {"is_causal": 1}),
    "rows that see nothing": ([HEADS, HEADS, HEADS, FAR], {}),
    "integers": ([HEADS, HEADS, HEADS, np.int32([[0, 1, -2], [3, 0, 0], [-9, 2, 0]])], {}),
    "without heads": ([FLAT, FLAT, FLAT], {"q_num_heads": 4, "kv_num_heads": 4}),
    "caches": ([HEADS, HEADS, HEADS, None, HEADS, HEADS], {"is_causal": 1}),
    "limited": ([HEADS, HEADS, HEADS], {"softcap": 2.0}),
    "limited, masked": ([HEADS, HEADS, HEADS, SEEN], {"softcap": 0.5, "is_causal": 1}),
    "limited, biased": ([HEADS, FEW, FEW, FAR[:, [0, 1, 2, 0, 2]]], {"softcap": 2.0}),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dynamic: bool):
    arrays, attributes = CASES[name]
    outputs = ["y", "keys", "values"] if len(arrays) > 4 else ["y"]
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(arrays)]
    given = {key: array for key, array in zip(names, arrays, strict=True) if key}
    infos = [
        helper.make_tensor_value_info(
            key,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"s{size}" if dynamic and size in LENGTHS else size for size in array.shape],
        )
        for key, array in given.items()
    ]
    node = helper.make_node("Attention", names, outputs, **attributes)
    results = [helper.make_tensor_value_info(key, TensorProto.FLOAT, [None] * arrays[0].ndim) for key in outputs]
    model = helper.make_model(
        helper.make_graph([node], "g", infos, results), opset_imports=[helper.make_opsetid("", 23)], ir_version=10
    )
    checker.check_model(model)
    module = import_model(model)
    assert "relax.nn.attention" in str(module)
    made = VirtualMachine(build(module))["main"](*given.values())
    found = [made] if len(outputs) == 1 else list(made)
    for mine, theirs in zip(found, ReferenceEvaluator(model).run(None, given), strict=True):
        np.testing.assert_allclose(np.from_dlpack(mine), theirs, rtol=1e-4, atol=1e-5)
