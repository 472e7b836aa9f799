import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.cli.values import (
    NamedValue,
    as_argument,
    describe,
    leaves,
    literal,
    random_array,
    read_array,
    results_folder,
    write_results,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("specification", "dtype", "shape"),
    [
        ("f32[3,4]", np.float32, (3, 4)),
        (" f64[ 2 , 0 ] ", np.float64, (2, 0)),
        ("bf16[5]", ml_dtypes.bfloat16, (5,)),
        ("i64[]", np.int64, ()),
        ("ui8[7]<255", np.uint8, (7,)),
        ("i1[9]", np.bool_, (9,)),
        ("float32[1]", np.float32, (1,)),
    ],
)
def test_random_array(specification: str, dtype: type, shape: tuple[int, ...]):
    array = random_array(specification, RNG)
    assert (array.dtype, array.shape) == (np.dtype(dtype), shape)


def test_random_integers_keep_below_their_limit():
    assert set(random_array("i32[1000]<3", RNG).tolist()) == {0, 1, 2}
    assert random_array("i32[1000]", RNG).max() == 9


@pytest.mark.parametrize("specification", ["f32", "f32(3)", "f32[n]", "f32[-1]", "[3]", "f32[3]<x", ""])
def test_bad_specification(specification: str):
    with pytest.raises(ToolError, match=r"expected a specification like f32\[3,4\]"):
        random_array(specification, RNG)


def test_arrays_that_are_too_large():
    for specification in ("f32[9999999,9999999]", "i8[99999999999999999999]"):
        with pytest.raises(ToolError, match=rf"cannot make {re.escape(specification)}: "):
            random_array(specification, RNG)


def test_unknown_element_type():
    with pytest.raises(ValueError, match="unknown element type 'f31'"):
        random_array("f31[3]", RNG)


@pytest.mark.parametrize("specification", ["f32[2,3]", "bf16[4]", "i1[3]", "f16[0]", "i64[]"])
def test_arrays_survive_files(specification: str, tmp_path: Path):
    array = random_array(specification, RNG)
    (path,) = write_results(
        [NamedValue("output", array), NamedValue("output_1", 3)], results_folder(str(tmp_path / "deep" / "er"))
    )
    again = read_array(str(path))
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("specification", ["f8E4M3FN[2,3]", "i4[5]", "f8E5M2[3]", "bf16[3]"])
def test_types_that_files_cannot_name(specification: str, tmp_path: Path):
    array = random_array(specification, RNG)
    (path,) = write_results([NamedValue("output", array)], tmp_path)
    again = read_array(f"{path}:{specification.partition('[')[0]}")
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_elements_of_one_byte_need_a_type(tmp_path: Path):
    (path,) = write_results([NamedValue("output", random_array("f8E4M3FN[3]", RNG))], tmp_path)
    with pytest.raises(ToolError, match=r"output\.npy has elements of one byte without a type: say which, as in"):
        read_array(str(path))
    with pytest.raises(ToolError, match=r"cannot take elements of .*output\.npy, which are \|V1, as f32"):
        read_array(f"{path}:f32")


def test_nothing_in_a_file_is_executed(tmp_path: Path):
    path = tmp_path / "evil.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(
        ToolError, match=r"cannot read .*evil\.npy: Object arrays cannot be loaded when allow_pickle=False"
    ):
        read_array(str(path))


@pytest.mark.parametrize("array", [np.zeros(2, np.complex64), np.array(["a"])])
def test_elements_that_programs_do_not_have(array: np.ndarray, tmp_path: Path):
    np.save(tmp_path / "x.npy", array)
    message = rf"x\.npy has elements of {array.dtype}, expected integers, floats or truth values"
    with pytest.raises(ToolError, match=message):
        read_array(str(tmp_path / "x.npy"))


@pytest.mark.parametrize("contents", [b"", b"\x93NUMPY", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff\xff{"])
def test_damaged_file(contents: bytes, tmp_path: Path):
    path = tmp_path / "x.npy"
    path.write_bytes(contents)
    with pytest.raises(ToolError, match=r"cannot read .*x\.npy"):
        read_array(str(path))


def test_file_cut_short(tmp_path: Path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(100))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ToolError, match="cannot read"):
        read_array(str(path))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("True", True),
        ("true", True),
        ("false", False),
        ("null", None),
        ("None", None),
        ('"a b"', "a b"),
        ("(1, 2.5)", (1, 2.5)),
        ("[2, 3]", (2, 3)),
        ("(1, [2])", (1, (2,))),
    ],
)
def test_literal(text: str, value: object):
    assert literal(text) == value


def test_a_list_is_a_shape():
    assert isinstance(literal("[2, 3]"), tvm_ffi.Shape)


@pytest.mark.parametrize("text", ["x", "{1: 2}", "1 +", "__import__('os')", "['a']", "b'x'", "(" * 1000])
def test_bad_literal(text: str):
    with pytest.raises(ToolError, match="expected a value like 3"):
        literal(text)


def test_text_without_quotes():
    with pytest.raises(ToolError, match=r"got hi\nhint: a text has quotes of its own: '\"hi\"'$"):
        literal("hi")


def test_leaves_of_nested_results():
    array = np.float32([1, 2])
    result = (as_argument(array), (1, "text"), tvm_ffi.Shape((2, 3)), tvm_ffi.Array([7]))
    found = list(leaves(result))
    assert [each.source for each in found] == ["output_0", "output_1_0", "output_1_1", "output_2", "output_3_0"]
    assert isinstance(found[0].value, np.ndarray)
    assert found[0].value.tolist() == [1, 2]
    assert [each.value for each in found[1:]] == [1, "text", (2, 3), 7]
    assert [each.source for each in leaves(array)] == ["output"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32([[1, 2]]), "f32[1, 2]  min 1  max 2  mean 1.5"),
        (np.zeros((0, 3)), "f64[0, 3]"),
        (np.array([True]), "i1[1]"),
        (3, "int 3"),
        ("a", "str a"),
    ],
    ids=str,
)
def test_describe(value: object, text: str):
    assert describe(value) == text
