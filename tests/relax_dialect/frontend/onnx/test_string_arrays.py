"""Operators that compute with strings, against the onnx package or ONNX Runtime's definition, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import xdsl_relax as xr
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import reference

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
WORDS = np.array([["Red ball", "s"], ["blue", "M"], ["pink  ball", "l"], ["Blue", ""]], object)
COLUMN = np.array([["s"], ["x"], ["blue"], ["é"]], object)


def _model(nodes: list[Any], outputs: dict[str, int], constants: list[Any] | None = None) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.STRING, ["n", 2]),
        helper.make_tensor_value_info("z", TensorProto.STRING, ["n", 1]),
    ]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(nodes, "graph", inputs, made, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _everywhere(proto: ModelProto, *inputs: np.ndarray) -> list[Any]:
    """What all modes give."""
    module = import_model(proto)
    results = [xr.interpret(module, *inputs)]
    results += [xr.compile(module.clone(), mode=mode)(*inputs) for mode in ("bytecode", "native")]
    results = [[*each] if isinstance(each, tuple) else [each] for each in results]
    for other in results[1:]:
        for ours, theirs in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    return results[0]


STRING, INT64, BOOL, FLOAT = TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
MOVED = (
    [
        helper.make_node("StringConcat", ["x", "z"], ["both"]),
        helper.make_node("Transpose", ["both"], ["turned"], perm=[1, 0]),
        helper.make_node("Concat", ["x", "z"], ["row"], axis=1),
        helper.make_node("Equal", ["x", "z"], ["same"]),
        helper.make_node("Where", ["same", "x", "both"], ["chosen"]),
        helper.make_node("StringSplit", ["both"], ["parts", "counts"]),
        helper.make_node("RegexFullMatch", ["x"], ["is_word"], pattern="[a-z]*"),
        helper.make_node("LabelEncoder", ["turned"], ["number"], domain=ML,
                         keys_strings=["ss", "Ms", "blue"], values_int64s=[3, 5, 7], default_int64=-1),
    ],
    {"turned": STRING, "row": STRING, "same": BOOL, "chosen": STRING, "parts": STRING, "counts": INT64,
     "is_word": BOOL, "number": INT64},
)  # fmt: skip


def test_strings_are_moved_compared_and_encoded(tmp_path: Path):
    proto = _model(*MOVED)
    for found, expected in zip(
        _everywhere(proto, WORDS, COLUMN), reference(proto, {"x": WORDS, "z": COLUMN}), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    model = xr.compile(proto)
    model.save(tmp_path / "model.rvm")
    loaded = xr.compile(str(tmp_path / "model.rvm"), trust=True)
    np.testing.assert_array_equal(loaded(WORDS[:1], COLUMN[:1])["row"], np.hstack([WORDS, COLUMN])[:1])
    np.testing.assert_array_equal(loaded(WORDS[:0], COLUMN[:0])["row"], np.empty((0, 3), object))
    with pytest.raises(ValueError, match=r"export_library: relax.strings.*written in Python"):
        model.save(tmp_path / "model.so")


@pytest.mark.parametrize("case", ["LOWER", "UPPER", "NONE"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalised_strings(case: str, sensitive: int):
    flat = helper.make_tensor("flat", INT64, [1], [-1])
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["row"]),
        helper.make_node("StringNormalizer", ["row"], ["y"], case_change_action=case, is_case_sensitive=sensitive,
                         stopwords=["Blue", "s", "m", ""]),
    ]  # fmt: skip
    (found,) = _everywhere(_model(nodes, {"y": STRING}, [flat]), WORDS, COLUMN)
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[case]
    kept = ["Red ball", "blue", "M", "pink  ball", "l"] if sensitive else ["Red ball", "pink  ball", "l"]
    assert found.tolist() == [change(each) for each in kept]


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"separators": [" "], "mincharnum": 2}, [["Red", "ball"], ["-", "-"]]),
        ({"separators": [" ", "l+"], "mark": 1, "mincharnum": 1},
         [["\x02", "Red", "ba", "\x03"], ["\x02", "s", "\x03", "-"]]),
        ({"tokenexp": "[a-z]+", "mincharnum": 1}, [["ed", "ball"], ["s", "-"]]),
        ({"separators": [""], "mincharnum": 1}, [[*"Red ball"], ["s", *"-------"]]),
    ],
)  # fmt: skip
def test_tokens(attributes: dict[str, Any], tokens: list[list[str]]):
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, pad_value="-", **{"mark": 0, **attributes})
    (found,) = _everywhere(_model([node], {"y": STRING}), WORDS[:1], COLUMN[:1])
    assert found[0].tolist() == tokens


def test_counted_words():
    """As the text vectorizers of scikit-learn are written: tokens of lower case, counted."""
    nodes = [
        helper.make_node("Squeeze", ["z", "axis"], ["row"]),
        helper.make_node("StringNormalizer", ["row"], ["low"], case_change_action="LOWER"),
        helper.make_node("Tokenizer", ["low"], ["tokens"], domain=MICROSOFT, pad_value="#", mark=0, mincharnum=1,
                         tokenexp="[a-z]+"),
        helper.make_node("TfIdfVectorizer", ["tokens"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2,
                         max_skip_count=0, pool_strings=["ball", "red", "red", "ball"], ngram_counts=[0, 2],
                         ngram_indexes=[0, 1, 2]),
    ]  # fmt: skip
    axis = helper.make_tensor("axis", INT64, [1], [1])
    texts = np.array([["Red ball, red BALL"], ["a ball"], ["ball red"]], object)
    (found,) = _everywhere(_model(nodes, {"y": FLOAT}, [axis]), np.repeat(texts, 2, 1), texts)
    np.testing.assert_array_equal(found, [[2, 2, 2], [1, 0, 0], [1, 1, 0]])


REFUSED = {
    "which Python's regular expressions lack": helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=r"\pL+"),
    "is no regular expression": helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a"),
    "either separators or an expression": helper.make_node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, mark=0),
    "does not compute with strings": helper.make_node("Unique", ["x"], ["y"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str):
    with pytest.raises(OnnxImportError, match=message):
        import_model(_model([REFUSED[message]], {"y": STRING}))


def test_wrong_arguments():
    model = xr.compile(_model(*MOVED), mode="bytecode")
    with pytest.raises(ValueError, match="expected strings of rank 2"):
        model(WORDS[0], COLUMN)
    with pytest.raises(ValueError, match="expected n = 4"):
        model(WORDS, COLUMN[:1])
    with pytest.raises((TypeError, ValueError)):
        model(np.ones((4, 2)), COLUMN)
