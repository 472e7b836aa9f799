"""Operators of `ai.onnx.ml` against the onnx package, in every mode, with any number of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.interpreter import run as interpret
from relax_dialect.ops.structure import STRINGS
from relax_dialect.scope import find_function
from tests.relax_dialect.frontend.onnx.models import info, reference, results
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(0)
ML = "ai.onnx.ml"

Nodes = list[tuple[str, dict[str, Any], int]]


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X = f32(5, 3)
HOLES = np.where(RNG.random((5, 3)) < 0.4, np.nan, X).astype(np.float32)


def tree_nodes(seed: int, modes: list[str], trees: int = 4, depth: int = 3) -> dict[str, Any]:
    """Complete trees with random features and numbers."""
    rng = np.random.default_rng(seed)
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    made: dict[str, list[Any]] = {name: [] for name in [*names, "missing_value_tracks_true"]}
    for tree in range(trees):
        inner = 2**depth - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            row = (
                tree,
                node,
                0 if leaf else int(rng.integers(3)),
                0.0
                if leaf
                else float(np.float32(rng.choice([0.5, -0.5, 0.0]) if rng.random() < 0.3 else rng.normal())),
                "LEAF" if leaf else str(rng.choice(modes)),
                0 if leaf else 2 * node + 1,
                0 if leaf else 2 * node + 2,
                int(rng.integers(2)),
            )
            for name, each in zip(made, row, strict=True):
                made[name].append(each)
    return {f"nodes_{name}": each for name, each in made.items()}


def leaves(kind: str, targets: int, trees: int = 4, depth: int = 3, several: int = 1, positive: bool = False) -> Any:
    rows = [
        (tree, node, (node + extra) % targets, abs(v) if positive else v)
        for tree in range(trees)
        for node in range(2**depth - 1, 2 ** (depth + 1) - 1)
        for extra, v in enumerate(f32(several).tolist())
    ]
    names = [f"{kind}_{name}" for name in ("treeids", "nodeids", "ids", "weights")]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


ALL_MODES = [f"BRANCH_{mode}" for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
LEQ = ["BRANCH_LEQ"]


def classifier(labels: int, transform: str, targets: int | None = None, several: int = 1, modes: Any = None) -> Any:
    return {
        **tree_nodes(1, modes or LEQ),
        **leaves("class", targets or labels, several=several),
        "classlabels_int64s": [3 * each + 1 for each in range(labels)],
        "post_transform": transform,
    }


def svm(classes: int, kernel: str, proba: bool, transform: str = "NONE", strings: bool = False) -> dict[str, Any]:
    per_class = [2, 3, 2, 1][:classes]
    pairs = classes * (classes - 1) // 2
    return {
        ("classlabels_strings" if strings else "classlabels_ints"): [
            f"c{each}" if strings else each for each in range(classes)
        ],
        "coefficients": f32((classes - 1) * sum(per_class)).tolist(),
        "kernel_params": [0.5, 0.3, 3.0],
        "kernel_type": kernel,
        "post_transform": transform,
        **({"prob_a": f32(pairs).tolist(), "prob_b": f32(pairs).tolist()} if proba else {}),
        "rho": f32(pairs).tolist(),
        "support_vectors": f32(sum(per_class) * 3).tolist(),
        "vectors_per_class": per_class,
    }


def regressor(kernel: str, one_class: int = 0, supports: int = 4) -> dict[str, Any]:
    return {
        "coefficients": f32(supports or 3).tolist(),
        "kernel_params": [0.5, 0.3, 3.0],
        "kernel_type": kernel,
        "n_supports": supports,
        "one_class": one_class,
        "rho": f32(1).tolist(),
        **({"support_vectors": f32(supports * 3).tolist()} if supports else {}),
    }


def linear(classes: int, rows: int, transform: str) -> dict[str, Any]:
    return {
        "classlabels_ints": [2 * each + 1 for each in range(classes)],
        "coefficients": f32(rows * 3).tolist(),
        "intercepts": f32(rows).tolist(),
        "post_transform": transform,
        "multi_class": 0,
    }


def tensor(*values: Any, dtype: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor("t", dtype, [len(values)], list(values))


ENSEMBLE = {
    "n_targets": 2,
    "nodes_featureids": [0, 0, 0],
    "nodes_splits": tensor(0.3, 0.1, -0.4),
    "nodes_modes": helper.make_tensor("t", TensorProto.UINT8, [3], bytes([0, 5, 2]), raw=True),
    "nodes_truenodeids": [1, 0, 1],
    "nodes_falsenodeids": [2, 2, 3],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falseleafs": [0, 1, 1],
    "leaf_targetids": [0, 1, 0, 1],
    "leaf_weights": tensor(5.23, 12.12, -12.23, 7.21),
    "tree_roots": [0],
}
MEMBERS = {
    **ENSEMBLE,
    "nodes_modes": helper.make_tensor("t", TensorProto.UINT8, [3], bytes([0, 6, 6]), raw=True),
    "membership_values": tensor(1.2, 3.7, 8.0, 9.0, float("nan"), 12.0, 7.0, float("nan")),
}
MEMBER_ROWS = np.array([[0.1, 1, 2], [12.0, 0, 0], [7.0, 0, 0], [-5, 1, 1], [np.nan, 0, 0]], np.float32)

CASES: dict[str, tuple[str, list[np.ndarray], dict[str, Any], int, int]] = {
    "scaler": ("Scaler", [X], {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}, 1, 1),
    "scaler of one": ("Scaler", [X], {"offset": [1.0], "scale": [0.5]}, 1, 1),
    **{f"normalizer {norm}": ("Normalizer", [X], {"norm": norm}, 1, 1) for norm in ("MAX", "L1", "L2")},
    "binarizer": ("Binarizer", [X], {"threshold": 0.2}, 1, 1),
    "imputer": ("Imputer", [HOLES], {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": np.nan}, 1, 1),
    "imputer of one": ("Imputer", [np.round(X)], {"imputed_value_floats": [9.0], "replaced_value_float": 1.0}, 1, 1),
    "features": ("ArrayFeatureExtractor", [X, np.array([[2, 0]])], {}, 1, 1),
    "features of a row": ("ArrayFeatureExtractor", [X[0], np.array([2, 0, 2])], {}, 1, 1),
    "vectorizer": ("FeatureVectorizer", [X, f32(5, 2), f32(5)], {"inputdimensions": [2, 4, 1]}, 1, 1),
    "one hot": ("OneHotEncoder", [np.array([[1, 7], [9, 3]])], {"cats_int64s": [7, 1, 3], "zeros": 1}, 1, 1),
    "encoder": (
        "LabelEncoder",
        [np.array([3, 1, -7, 100, 2])],
        {"keys_int64s": [1, 2, 3, -7], "values_floats": [0.5, 2.5, 3.5, 1.0], "default_float": -2.0},
        1,
        4,
    ),
    "encoder of floats": (
        "LabelEncoder",
        [np.array([[3, 1.5], [np.inf, 0]], np.float32)],
        {"keys_floats": [1.5, 3.0, np.inf], "values_int64s": [10, 2**40, 7], "default_int64": -5},
        1,
        2,
    ),
    "encoder of tensors": (
        "LabelEncoder",
        [np.array([3, 1, 0])],
        {
            "keys_tensor": tensor(1, 3, dtype=TensorProto.INT64),
            "values_tensor": tensor(7, 8, dtype=TensorProto.INT16),
            "default_tensor": tensor(-1, dtype=TensorProto.INT16),
        },
        1,
        4,
    ),
    "linear regressor": (
        "LinearRegressor",
        [X],
        {"coefficients": f32(6).tolist(), "intercepts": [0.5, 1.0], "targets": 2, "post_transform": "NONE"},
        1,
        1,
    ),
    **{
        f"linear classifier {rows} {transform}": ("LinearClassifier", [X], linear(classes, rows, transform), 2, 1)
        for classes, rows in ((3, 3), (2, 1))
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    },
    "linear classifier of one": ("LinearClassifier", [X], linear(1, 1, "LOGISTIC"), 2, 1),
    **{
        f"tree regressor {aggregate}": (
            "TreeEnsembleRegressor",
            [HOLES],
            {
                **tree_nodes(0, ALL_MODES),
                **leaves("target", 2, several=2),
                "n_targets": 2,
                "aggregate_function": aggregate,
                "base_values": [0.5, -1.0],
            },
            1,
            3,
        )
        for aggregate in ("SUM", "MIN", "MAX")
    },
    **{
        f"tree classifier {labels} {post}": (
            "TreeEnsembleClassifier",
            [HOLES],
            classifier(labels, post),
            2,
            3,
        )
        for labels in (2, 3)
        for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    },
    "tree classifier shares": ("TreeEnsembleClassifier", [X], classifier(3, "NONE", several=3, modes=ALL_MODES), 2, 3),
    **{
        f"tree classifier of one class {transform}": (
            "TreeEnsembleClassifier",
            [X],
            classifier(2, transform, targets=1),
            2,
            3,
        )
        for transform in ("NONE", "LOGISTIC", "SOFTMAX")
    },
    "tree ensemble": ("TreeEnsemble", [HOLES], ENSEMBLE, 1, 5),
    "tree ensemble average": ("TreeEnsemble", [X.astype(np.float64)], {**ENSEMBLE, "aggregate_function": 0}, 1, 5),
    "tree ensemble of sets": ("TreeEnsemble", [MEMBER_ROWS], MEMBERS, 1, 5),
    **{
        f"svm regressor {kernel}": ("SVMRegressor", [X], regressor(kernel), 1, 1)
        for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")
    },
    "svm regressor of one class": ("SVMRegressor", [X], regressor("RBF", 1), 1, 1),
    "svm regressor without vectors": ("SVMRegressor", [X], regressor("LINEAR", supports=0), 1, 1),
    **{
        f"svm classifier {classes} {kernel} {proba}": ("SVMClassifier", [X], svm(classes, kernel, proba), 2, 1)
        for classes, kernel, proba in (
            (2, "RBF", False),
            (2, "LINEAR", True),
            (3, "POLY", False),
        )
    },
    "svm classifier logistic": ("SVMClassifier", [X], svm(2, "RBF", False, "LOGISTIC"), 2, 1),
    "svm classifier without vectors": (
        "SVMClassifier",
        [X],
        {"classlabels_ints": [0, 1, 2], "coefficients": f32(9).tolist(), "rho": [0.3], "kernel_type": "LINEAR"},
        2,
        1,
    ),
}
"""Operator, operands, attributes, number of outputs, version of the domain."""


def made(name: str) -> tuple[ModelProto, dict[str, np.ndarray]]:
    operator, operands, attributes, count, version = CASES[name]
    names, outputs = [f"x{at}" for at in range(len(operands))], [f"y{at}" for at in range(count)]
    node = helper.make_node(operator, names, outputs, domain=ML, **attributes)
    rows = len(operands[0]) if operator != "ArrayFeatureExtractor" or operands[0].ndim > 1 else -1
    inputs = [
        info(each, array, ["n" if size == rows and not at and array.dtype != np.int64 else size
                           for at, size in enumerate(array.shape)])
        for each, array in zip(names, operands, strict=True)
    ]  # fmt: skip
    kinds = [helper.make_tensor_value_info(each, TensorProto.UNDEFINED, None) for each in outputs]
    graph = helper.make_graph([node], "graph", inputs, kinds)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), dict(zip(names, operands, strict=True))


@pytest.mark.sampled(36)
@pytest.mark.parametrize("name", CASES)
def test_operators(name: str):
    proto, feeds = made(name)
    module = import_model(proto)
    expected = reference(proto, feeds)
    found = interpret(module, "main", list(feeds.values()))
    ways = {"interpret": [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]}
    for mode in ("bytecode", "native"):
        ways[mode] = results(VirtualMachine(build(module, mode=mode))["main"], *feeds.values())
    for way, outputs in ways.items():
        for ours, theirs in zip(outputs, expected, strict=True):
            assert ours.shape == theirs.shape, way
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5, err_msg=way)


def test_probabilities_of_many_classes():
    """The package has a mistake for more than two; what is looked for is the least value of a quadratic form."""
    attributes = {**svm(4, "LINEAR", True), "vectors_per_class": [1, 1, 1, 1], "support_vectors": f32(12).tolist()}
    attributes["coefficients"] = f32(12).tolist()
    node = helper.make_node("SVMClassifier", ["x"], ["label", "scores"], domain=ML, **attributes)
    module = import_model(strings_model(node, outputs=["label", "scores"]))
    kernels = X @ np.reshape(attributes["support_vectors"], (4, 3)).T
    weights, pairs = np.reshape(attributes["coefficients"], (3, 4)), [(i, j) for i in range(4) for j in range(i + 1, 4)]
    expected = []
    for row in kernels:
        r = np.zeros((4, 4))
        for at, (i, j) in enumerate(pairs):
            score = attributes["rho"][at] + weights[j - 1, i] * row[i] + weights[i, j] * row[j]
            r[i, j] = 1 - 1 / (1 + np.exp(-(score * attributes["prob_a"][at] + attributes["prob_b"][at])))
            r[j, i] = 1 - r[i, j]
        form = np.diag((r**2).sum(0)) - r * r.T
        equations = np.block([[form, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
        expected.append(np.linalg.solve(equations, [0, 0, 0, 0, 1])[:4])
    for mode in ("bytecode", "native"):
        _, scores = results(VirtualMachine(build(module, mode=mode))["main"], X)
        np.testing.assert_allclose(scores, expected, atol=5e-3)


def strings_model(*nodes: Any, outputs: list[str], constants: list[Any] | None = None) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    kinds = [helper.make_tensor_value_info(each, TensorProto.UNDEFINED, None) for each in outputs]
    graph = helper.make_graph(list(nodes), "graph", inputs, kinds, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def named(module: Any, outputs: list[np.ndarray], names: list[str]) -> list[np.ndarray]:
    """Results with the strings that they stand for."""
    func = find_function(module, "main")
    assert func is not None
    said = func.attributes[STRINGS].data
    return [
        np.array([each.data for each in said[name]])[array] if name in said else array
        for name, array in zip(names, outputs, strict=True)
    ]


def test_labels_that_are_strings_are_places_in_a_list_of_the_function():
    attributes = svm(3, "RBF", False, strings=True)
    proto = strings_model(
        helper.make_node("SVMClassifier", ["x"], ["label", "scores"], domain=ML, **attributes),
        helper.make_node("LabelEncoder", ["label"], ["number"], domain=ML,
                         keys_strings=["c2", "c0"], values_int64s=[20, 10], default_int64=-1),
        helper.make_node("LabelEncoder", ["number"], ["word"], domain=ML,
                         keys_int64s=[20, 10], values_strings=["two", "none"], default_string="other"),
        helper.make_node("Unsqueeze", ["word", "axis"], ["column"]),
        outputs=["label", "scores", "number", "column"],
        constants=[helper.make_tensor("axis", TensorProto.INT64, [1], [1])],
    )  # fmt: skip
    module = import_model(proto)
    expected = reference(proto, {"x": X})
    found = results(VirtualMachine(build(module))["main"], X)
    for ours, theirs in zip(named(module, found, [each.name for each in proto.graph.output]), expected, strict=True):
        if theirs.dtype.kind == "U":
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_maps_are_matrices_whose_columns_are_named():
    proto = strings_model(
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, **linear(3, 3, "SOFTMAX")),
        helper.make_node("ZipMap", ["scores"], ["map"], domain=ML, classlabels_int64s=[1, 3, 5]),
        outputs=["label", "map"],
    )
    module = import_model(proto)
    _, scores = results(VirtualMachine(build(module))["main"], X)
    np.testing.assert_allclose(scores.sum(1), np.ones(5), rtol=1e-5)
    func = find_function(module, "main")
    assert func is not None
    assert [each.data for each in func.attributes[STRINGS].data["map"]] == ["1", "3", "5"]


def test_an_element_without_a_category():
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_int64s=[1, 2], zeros=0)
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 1)]
    module = import_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    for mode in ("bytecode", "native"):
        main = VirtualMachine(build(module, mode=mode))["main"]
        np.testing.assert_array_equal(results(main, np.array([2, 1]))[0], [[0, 1], [1, 0]])
        with pytest.raises(ValueError, match="'OneHotEncoder': expected a category for each element"):
            main(np.array([2, 3]))


REFUSED = [
    ({"nodes_truenodeids": [1, 0, 0]}, {}, "tree 0 has no node 7"),
    ({"nodes_featureids": [3, 0, 0]}, {}, "a tree asks for a feature that the 3 of the operand do not have"),
    ({"nodes_modes": ["BRANCH", "LEAF", "LEAF"]}, {}, "the mode BRANCH of a node does not exist"),
    ({"nodes_modes": ["LEAF"]}, {}, "the attributes of nodes have several lengths"),
    ({"target_ids": [0, 1]}, {}, "a leaf has a target that the 1 of the model do not have"),
]


@pytest.mark.parametrize(("change", "_", "message"), REFUSED)
def test_trees_that_cannot_be(change: dict[str, Any], _: Any, message: str):
    tree: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [7 if "no node" in message else 2, 0, 0],
        "nodes_missing_value_tracks_true": [0, 0, 0],
        "target_ids": [0, 0],
        "target_nodeids": [1, 2],
        "target_treeids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **{**tree, **change})
    with pytest.raises(OnnxImportError, match=message):
        import_model(strings_model(node, outputs=["y"]))
