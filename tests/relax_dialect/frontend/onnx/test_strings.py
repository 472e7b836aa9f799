"""Inputs of strings: tables whose columns are categories, against the onnx package, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import xdsl_relax as xr
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import reference

ML = "ai.onnx.ml"
COLOURS = np.array([["red", "s"], ["blue", "m"], ["pink", "l"], ["blue", ""]], object)
OTHER_COLUMN = np.array([["m"], ["x"], ["blue"], ["s"]], object)


def strings_model(nodes: list[Any], outputs: dict[str, int], constants: list[Any] | None = None) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.STRING, ["n", 2]),
        helper.make_tensor_value_info("z", TensorProto.STRING, ["n", 1]),
    ]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(nodes, "graph", inputs, made, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def columns(label: Any) -> ModelProto:
    """What scikit-learn's converters write for columns of categories: parts of columns, moved, encoded and compared."""
    at = [helper.make_tensor(f"at{index}", TensorProto.INT64, [1], [index]) for index in range(2)]
    nodes = [
        helper.make_node("ArrayFeatureExtractor", ["x", "at0"], ["colour"], domain=ML),
        helper.make_node("OneHotEncoder", ["colour"], ["hot"], domain=ML, cats_strings=["blue", "red"], zeros=1),
        helper.make_node("Gather", ["x", "at1"], ["size"], axis=1),
        helper.make_node("Concat", ["size", "z"], ["both"], axis=0),
        helper.make_node("Cast", ["both"], ["cast"], to=TensorProto.STRING),
        helper.make_node("LabelEncoder", ["cast"], ["number"], domain=ML,
                         keys_strings=["s", "m", "l"], values_int64s=[3, 5, 7], default_int64=-1),
        helper.make_node("Identity", ["size"], ["same"]),
        helper.make_node("Equal", ["same", "missing"], ["is_missing"]),
        helper.make_node("Where", ["is_missing", "small", "size"], ["filled"]),
        helper.make_node("LabelEncoder", ["filled"], ["word"], domain=ML,
                         keys_strings=["s", "m"], values_strings=["small", "middle"], default_string="large"),
        helper.make_node("Constant", [], ["small"], value_string="s"),
    ]  # fmt: skip
    outputs = {"hot": TensorProto.FLOAT, "number": TensorProto.INT64, "is_missing": TensorProto.BOOL}
    missing = helper.make_tensor("missing", TensorProto.STRING, [1], [b""])
    return strings_model([nodes[-1], *nodes[:-1]], {**outputs, "word": label}, [missing, *at])


def test_columns_of_categories_in_every_mode(tmp_path: Path):
    proto = columns(TensorProto.STRING)
    module = import_model(proto)
    models = [xr.compile(module.clone(), mode=mode) for mode in ("native", "bytecode")]
    models[1].save(tmp_path / "model.rvm")
    models.append(xr.compile(str(tmp_path / "model.rvm")))
    for rows in (4, 1, 0):
        x, z = COLOURS[:rows], OTHER_COLUMN[:rows]
        expected = reference(proto, {"x": x, "z": z}) if rows else None
        words = ["small", "middle", "large"]
        for call in (*models, lambda *given: xr.interpret(module, *given)):
            found = call(x, z)
            assert [len(each) for each in found] == [rows, 2 * rows, rows, rows]
            if expected is not None:
                for ours, theirs in zip(found[:3], expected[:3], strict=True):
                    np.testing.assert_array_equal(ours, theirs)
                np.testing.assert_array_equal(np.array(words, object)[found[3]], expected[3])
    with_names = models[0](x=COLOURS.tolist(), z=OTHER_COLUMN.astype("S"))
    np.testing.assert_array_equal(with_names["hot"], models[0](COLOURS, OTHER_COLUMN)[0])


REFUSED = {
    r"Unique.*not compute with strings.*extract_model\) and compute it before": (
        [helper.make_node("Unique", ["x"], ["y"])], {"y": TensorProto.STRING},
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_done_with_strings(message: str):
    with pytest.raises(OnnxImportError, match=message):
        import_model(strings_model(*REFUSED[message]))


def test_an_operator_that_an_exporter_left():
    """As tf2onnx leaves operators of TensorFlow that it cannot convert, in the domain of ONNX."""
    node = helper.make_node("Log1p", ["x"], ["y"], name="left")
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    with pytest.raises(OnnxImportError, match=r"Log1p \(left\): ONNX has no such operator in version 21.*converter"):
        import_model(strings_model([node], {"y": TensorProto.FLOAT}))
    graph = helper.make_graph([node], "graph", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    node.domain = "mine"
    graph.node[0].domain = "mine"
    with pytest.raises(OnnxImportError, match=r"mine.Log1p \(left\): the operator is not supported"):
        import_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))
