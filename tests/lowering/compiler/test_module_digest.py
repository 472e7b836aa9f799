"""What makes two modules the same for the cache, and what does not."""

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute

from lowering.compiler import program_cache
from lowering.compiler.program_cache import ModuleDigest, array_digests
from lowering.parsing import parse_module
from tir_dialect.weights import WeightAttr

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %x
  relax.return %1
}
"""


def digest(text: str, name: str = "<text>") -> bytes:
    return ModuleDigest(parse_module(text, name)).digest


def test_equal_texts_are_equal():
    assert digest(PROGRAM) == digest(PROGRAM)
    module = parse_module(PROGRAM)
    assert ModuleDigest(module).digest == ModuleDigest(module.clone()).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("relax.add", "relax.subtract"),
        ("%0, %x", "%x, %0"),
        ("%0, %x", "%0, %0"),
        ("4.0]]", "4.0000005]]"),
        ("1.0, 2.0", "-1.0, 2.0"),
        ("[n, 2], f32> {", "[n, _], f32> {"),
        ("@main", "@other"),
        ("%x", "%y"),
        ("n", "m"),
        ("%1\n}", "%1\n}\ntir.prim_func private @g() {}"),
    ],
)
def test_every_difference_counts(old: str, new: str):
    text = PROGRAM.replace(old, new) if old != "n" else PROGRAM.replace("[n", "[m").replace("[%n", "[%m")
    assert text != PROGRAM
    assert digest(PROGRAM) != digest(text)


def test_indices_count_since_errors_name_them():
    assert digest(PROGRAM, "a.mlir") == digest(PROGRAM, "a.mlir")
    assert digest(PROGRAM, "a.mlir") != digest(PROGRAM, "b.mlir")


def _noted(value: Attribute) -> bytes:
    module = ModuleOp([])
    module.attributes["note"] = value
    return ModuleDigest(module).digest


def test_attributes_are_told_apart():
    values = [
        StringAttr("a"),
        StringAttr("a' b"),
        ArrayAttr([StringAttr("a"), StringAttr("b")]),
        ArrayAttr([StringAttr("a,1'b")]),
        ArrayAttr([ArrayAttr([StringAttr("a")]), StringAttr("b")]),
        DictionaryAttr({"a": StringAttr("b")}),
        DictionaryAttr({"b": StringAttr("a")}),
        IntegerAttr(1, i32),
        IntegerAttr(1, i64),
        FloatAttr(0.0, f32),
        FloatAttr(-0.0, f32),
        FloatAttr(0.0, f64),
        FloatAttr(1.0, f64),
        FloatAttr(1.0 + 2**-52, f64),
        FloatAttr(float("nan"), f64),
        WeightAttr("a"),
        WeightAttr("b"),
    ]
    digests = [_noted(value) for value in values]
    assert len(set(digests)) == len(values)
    assert digests == [_noted(value) for value in values]


def _weighed(*arrays: np.ndarray) -> bytes:
    return _noted(ArrayAttr([WeightAttr("w", array) for array in arrays]))


def test_weights_count_by_their_elements():
    array = np.random.default_rng(0).standard_normal((300, 70), dtype=np.float32)
    other = array.copy()
    other[123, 45] = np.nextafter(other[123, 45], np.float32(9))
    swapped = array.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert _weighed(array) == _weighed(array.copy())
    assert _weighed(array) == _weighed(np.asfortranarray(array))
    different = [
        array,
        other,
        swapped,
        array.reshape(70, 300),
        array.view(np.int32),
        array[:-1],
        array.astype(np.float64),
    ]
    assert len({_weighed(each) for each in different}) == len(different)
    # Equal arrays in two positions are not one array: weights are compared by identity.
    assert _weighed(array, array) != _weighed(array, array.copy())


def test_each_array_is_there_once():
    first, second = np.zeros(3), np.ones(3)
    module = ModuleOp([])
    module.attributes["note"] = ArrayAttr([WeightAttr("a", first), WeightAttr("b", second), WeightAttr("c", first)])
    assert list(map(id, ModuleDigest(module).arrays)) == [id(first), id(second)]


@pytest.mark.parametrize("cores", [1, 3])
def test_large_arrays_in_pieces(cores: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(program_cache, "PIECE_BYTES", 1000)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(size) for size in (0, 1, 124, 125, 126, 5000)]
    found = array_digests(arrays)
    assert found == array_digests([array.copy() for array in arrays])
    assert len(set(found)) == len(arrays)
    for array in arrays[1:]:
        array[-1] += 1
    assert [a == b for a, b in zip(found, array_digests(arrays), strict=True)] == [True] + [False] * 5
