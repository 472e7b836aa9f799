"""Models as a whole: parameters, symbols, results, functions, and what is wrong with a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy


def model(nodes, inputs, outputs, initializers=(), opset=21, functions=(), opsets=()):
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers],
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(*each) for each in opsets)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def run(proto, *arrays, **options):
    results = VirtualMachine(build(import_model(proto, **options)))["main"](*arrays)
    return [to_numpy(each) for each in (results if not hasattr(results, "__dlpack__") else [results])]


F = TensorProto.FLOAT
X = np.arange(12, dtype=np.float32).reshape(3, 4)
SCALED = [
    helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
    helper.make_node("Add", ["p", "b"], ["y"], name="sum"),
]
WEIGHTS = [("w", np.eye(4, dtype=np.float32) * 2), ("b", np.ones(4, np.float32))]


def test_initializers_are_constants_and_inputs_parameters():
    proto = model(SCALED, [("x", F, [3, 4])], [("y", F, [3, 4])], WEIGHTS)
    assert np.array_equal(run(proto, X)[0], 2 * X + 1)


def test_outputs_need_no_shape():
    proto = model(SCALED, [("x", F, [3, 4])], [("y", F, None)], WEIGHTS)
    assert np.array_equal(run(proto, X)[0], 2 * X + 1)


def test_nodes_may_come_in_any_order():
    """ONNX Runtime sorts them too. The model that was given stays as it is."""
    inner = helper.make_graph(
        [helper.make_node("Neg", ["q"], ["r"]), helper.make_node("Add", ["p", "p"], ["q"])],
        "inner",
        [],
        [helper.make_tensor_value_info("r", F, [3, 4])],
    )
    other = helper.make_graph(
        [helper.make_node("Relu", ["p"], ["s"])], "other", [], [helper.make_tensor_value_info("s", F, [3, 4])]
    )
    branch = helper.make_node("If", ["c"], ["z"], name="branch", then_branch=inner, else_branch=other)
    nodes = [helper.make_node("Abs", ["z"], ["y"]), branch, helper.make_node("Exp", ["x"], ["p"])]
    proto = model(nodes, [("x", F, [3, 4]), ("c", TensorProto.BOOL, [])], [("y", F, [3, 4])])
    before = proto.SerializeToString()
    for taken, expected in ((True, 2 * np.exp(X)), (False, np.exp(X))):
        assert np.allclose(run(proto, X, np.array(taken))[0], expected)
    assert proto.SerializeToString() == before


def test_nodes_in_a_circle_are_malformed():
    nodes = [helper.make_node("Add", ["x", "z"], ["y"]), helper.make_node("Neg", ["y"], ["z"])]
    with pytest.raises(OnnxImportError, match=r"malformed.*topologically sorted"):
        import_model(model(nodes, [("x", F, [3, 4])], [("y", F, [3, 4])]))


def test_initializers_of_old_formats_need_no_input():
    proto = model(SCALED, [("x", F, [3, 4])], [("y", F, [3, 4])], WEIGHTS)
    proto.ir_version = 3
    assert np.array_equal(run(proto, X)[0], 2 * X + 1)


def test_named_dimensions_are_symbols():
    proto = model(SCALED, [("x", F, ["batch", 4])], [("y", F, ["batch", 4])], WEIGHTS)
    assert "[batch, 4]" in str(import_model(proto))
    function = VirtualMachine(build(import_model(proto)))["main"]
    for rows in (0, 1, 5):
        x = np.full((rows, 4), 3, np.float32)
        assert np.array_equal(to_numpy(function(x)), 2 * x + 1)


def test_dimensions_without_a_name_are_symbols_of_their_own():
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"])], [("x", F, [-1, "?", "?", 1])], [("y", F, [-1, "?", "?", 1])]
    )
    function = VirtualMachine(build(import_model(proto)))["main"]
    assert to_numpy(function(np.ones((2, 3, 4, 1), np.float32))).shape == (2, 3, 4, 1)


def test_dynamic_makes_every_dimension_a_symbol():
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [("x", F, [3, 4])], [("y", F, [3, 4])])
    function = VirtualMachine(build(import_model(proto, dynamic=True)))["main"]
    assert to_numpy(function(np.ones((5, 2), np.float32))).shape == (5, 2)


def test_names_of_nodes_are_locations():
    module = import_model(model(SCALED, [("x", F, [3, 4])], [("y", F, [3, 4])], WEIGHTS))
    locations = {op.name: str(op.location) for op in module.walk()}
    assert "product" in locations["relax.matmul"]
    assert "sum" in locations["relax.add"]


def test_several_outputs_are_a_tuple():
    nodes = [helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)]
    a, b = run(model(nodes, [("x", F, [3, 4])], [("a", F, [3, 2]), ("b", F, [3, 2])]), X)
    assert np.array_equal(np.concatenate([a, b], 1), X)


def test_functions_of_the_model_are_inlined():
    body = helper.make_function(
        "local",
        "Twice",
        ["v"],
        ["r"],
        [helper.make_node("Add", ["v", "v"], ["r"])],
        [helper.make_opsetid("", 21)],
    )
    proto = model(
        [helper.make_node("Twice", ["x"], ["y"], domain="local")],
        [("x", F, [3, 4])],
        [("y", F, [3, 4])],
        functions=[body],
        opsets=[("local", 1)],
    )
    assert np.array_equal(run(proto, X)[0], 2 * X)


def test_all_unsupported_nodes_are_reported_at_once():
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["r"], name="noise"),
        helper.make_node("Relu", ["r"], ["s"]),
        helper.make_node("ImageDecoder", ["s"], ["y"], name="more"),
    ]
    proto = model(nodes, [("x", F, [3, 4])], [("y", F, [3, 4])])
    with pytest.raises(OnnxImportError, match="2 nodes that cannot be imported") as caught:
        import_model(proto)
    assert [(node.name, node.op_type) for node in caught.value.nodes] == [
        ("noise", "ImageDecoder"),
        ("more", "ImageDecoder"),
    ]


def _saved(folder: Path, location: str) -> Path:
    proto = model(SCALED, [("x", F, [3, 4])], [("y", F, [3, 4])], WEIGHTS)
    path = folder / "model.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    if location != "weights.bin":
        changed = onnx.load(path, load_external_data=False)
        for tensor in changed.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location
        path.write_bytes(changed.SerializeToString())
    return path


def test_external_data_are_read(tmp_path: Path):
    assert np.array_equal(run(_saved(tmp_path, "weights.bin"), X)[0], 2 * X + 1)


def test_large_external_data_are_weights_by_name(tmp_path: Path):
    w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [3, 64])], [("y", F, [3, 64])], [("w", w)])
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert 'relax.constant "w" :' in str(import_model(path))
    x = np.ones((3, 64), np.float32)
    np.testing.assert_allclose(run(path, x)[0], x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "missing.bin", ""])
def test_external_data_stay_in_the_folder(tmp_path: Path, location: str):
    (tmp_path / "inner").mkdir()
    (tmp_path / "weights.bin").write_bytes(b"x" * 1000)
    with pytest.raises(OnnxImportError, match="not in the folder of the model"):
        import_model(_saved(tmp_path / "inner", location))


def test_external_data_lie_within_their_file(tmp_path: Path):
    path = _saved(tmp_path, "weights.bin")
    (tmp_path / "weights.bin").write_bytes(b"\0" * 8)
    with pytest.raises(OnnxImportError, match="does not lie within"):
        import_model(path)


def test_external_data_have_the_length_that_is_said(tmp_path: Path):
    path = _saved(tmp_path, "weights.bin")
    (tmp_path / "weights.bin").write_bytes(b"\0" * 1000)
    proto = onnx.load_model(path, load_external_data=False)
    proto.graph.initializer[0].external_data.add(key="length", value="8")
    onnx.save_model(proto, path)
    with pytest.raises(OnnxImportError, match="more elements than the bytes"):
        import_model(path)


def test_malformed_models_are_refused(tmp_path: Path):
    good = model(SCALED, [("x", F, [3, 4])], [("y", F, [3, 4])], WEIGHTS)
    for data in (b"", b"\xff" * 40, good.SerializeToString()[:-20], b"no model"):
        with pytest.raises(OnnxImportError):
            import_model(data)
    with pytest.raises(OnnxImportError, match="cannot be read"):
        import_model(tmp_path / "missing.onnx")


def test_broken_graphs_are_refused():
    cases = {
        "cycle": [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])],
        "undefined": [helper.make_node("Add", ["x", "nothing"], ["b"])],
        "twice": [helper.make_node("Relu", ["x"], ["b"]), helper.make_node("Abs", ["x"], ["b"])],
        "operands": [helper.make_node("Add", ["x"], ["b"])],
    }
    for nodes in cases.values():
        with pytest.raises(OnnxImportError):
            import_model(model(nodes, [("x", F, [3, 4])], [("b", F, [3, 4])]))


@pytest.mark.parametrize("kind", [TensorProto.COMPLEX64, TensorProto.COMPLEX128])
def test_element_types_without_dtype_are_refused(kind: int):
    proto = model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])])
    with pytest.raises(OnnxImportError, match="not supported"):
        import_model(proto)


def test_wrong_dtypes_are_refused():
    inputs = [("x", F, [2]), ("z", TensorProto.INT64, [2])]
    proto = model([helper.make_node("Add", ["x", "z"], ["y"], name="mixed")], inputs, [("y", F, [2])])
    with pytest.raises(OnnxImportError, match="mixed"):
        import_model(proto)
