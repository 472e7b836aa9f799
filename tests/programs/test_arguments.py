"""Arguments from Python: every mode, and a library, takes the same ones in any layout, and refuses the same."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.parsing import parse_module
from tests.support.programs import as_plain
from tests.support.rules import each
from vm_dialect import Executable, VirtualMachine, load_library
from vm_dialect.tensors import to_value

DTYPES = {
    "f32": np.float32,
    "i64": np.int64,
    "ui8": np.uint8,
    "i1": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "i4": ml_dtypes.int4,
}
"""Functions that double, one for each; the interpreter's `kind` of a doubled boolean is a boolean, too."""

WAYS = ("interpret", "bytecode", "native", "library")


def _function(name: str) -> str:
    return (
        f"relax.func @{name}[%n](%x: !relax.tensor<[n, 2], {name}>) -> !relax.tensor<[2, n], {name}> {{\n"
        "  %y = relax.permute_dims %x\n  relax.return %y\n}\n"
    )


PROGRAM = (
    "".join(map(_function, DTYPES))
    + """
relax.func @scalar(%x: !relax.tensor<[], f32>) -> !relax.tensor<[1], f32> {
  %y = relax.expand_dims %x axes = [0]
  relax.return %y
}
relax.func @pair(%x: !relax.tuple<!relax.tensor<[2], f32>, !relax.tensor<[2], i64>>) -> !relax.tensor<[2], f32> {
  %a = relax.tuple_get %x[0]
  %b = relax.tuple_get %x[1]
  %c = relax.astype %b dtype = f32
  %d = relax.add %a, %c
  relax.return %d
}
relax.func @number(%n: !relax.prim<i64>, %x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  relax.return %x
}
relax.func @label(%text: !relax.object, %x: !relax.tensor<[2], f32>) -> !relax.object {
  %y = relax.tuple(%text, %x)
  relax.return %y
}
relax.func @write[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %z = relax.call_tir_inplace @twice(%x, %y) inplace [0] : !relax.tensor<[n], f32>
  relax.return %z
}
tir.prim_func private @twice[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "twice" (%v = spatial %i in %n) {
      %x = tir.load %X[%v]
      %y = tir.load %Y[%v]
      %z = arith.addf %x, %y : f32
      tir.store %z, %X[%v]
    }
  }
}
"""
)


@cache
def _executable() -> Executable:
    return build(parse_module(PROGRAM))


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[str], Callable[..., Any]]]:
    """What gives a function by name, for each of `WAYS`."""
    from relax_dialect.interpreter import run

    module = parse_module(PROGRAM)
    path = tmp_path_factory.mktemp("library") / "m.so"
    _executable().export_library(path)
    return {
        "interpret": lambda name: lambda *args: run(module, name, args),
        "bytecode": VirtualMachine(build(module, mode="bytecode")).__getitem__,
        "native": VirtualMachine(_executable()).__getitem__,
        "library": load_library(path).__getitem__,
    }


def _layouts(values: np.ndarray) -> dict[str, Any]:
    """The same elements in other layouts."""
    frozen = values.copy()
    frozen.flags.writeable = False
    wide = np.zeros((2 * len(values), 5), values.dtype)
    wide[::2, 1:4:2] = values
    turned = values[::-1, ::-1].copy()
    unaligned = np.frombuffer(bytearray(b"\0" + values.tobytes()), values.dtype, offset=1).reshape(values.shape)
    layouts = {
        "plain": values,
        "read-only": frozen,
        "gaps": wide[::2, 1:4:2],
        "negative strides": turned[::-1, ::-1],
        "Fortran order": np.asfortranarray(values),
        "unaligned": unaligned,
        "list": values.tolist(),
        "list of rows": list(values),
        "tensor with gaps": to_value(wide[::2, 1:4:2]),
    }
    if values.dtype.itemsize > 1 and values.dtype.type.__module__ == "numpy":
        layouts["big-endian"] = values.astype(values.dtype.newbyteorder())
    return layouts


def test_layouts_and_sequences(functions: dict[str, Callable[[str], Callable[..., Any]]]) -> None:
    for name, dtype in DTYPES.items():
        values = np.arange(6).reshape(3, 2).astype(dtype)
        repeated = np.broadcast_to(values[0], (3, 2))
        for layout, given in {**_layouts(values), "stride 0": repeated, "empty": values[:0][::-1]}.items():
            expected = (repeated if layout == "stride 0" else values[:0] if layout == "empty" else values).T
            for way in WAYS:
                got = np.asarray(as_plain(functions[way](name)(given)))
                assert got.dtype == expected.dtype, (name, layout, way)
                np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64), f"{layout} {way}")


def test_numbers_are_tensors_of_rank_0_where_a_tensor_is_expected(
    functions: dict[str, Callable[[str], Callable[..., Any]]],
) -> None:
    for way in WAYS:
        for given in (2, 2.0, True, np.float32(2), np.array(2, ">f4")):
            got = np.asarray(as_plain(functions[way]("scalar")(given)))
            np.testing.assert_array_equal(got, np.asarray([given], np.float32), way)
        pair = functions[way]("pair")([np.ones(4, ">f4")[::2], (3, 4)])
        np.testing.assert_array_equal(np.asarray(as_plain(pair)), np.array([4, 5], np.float32), way)
        second = functions[way]("number")(np.int32(3), [1, 2])
        np.testing.assert_array_equal(np.asarray(as_plain(second)), np.array([1, 2], np.float32), way)


REFUSED = [
    ("f32", np.ones((1, 2)), TypeError, "f32: argument #0 (x): expected dtype float32, got float64"),
    ("f32", np.ones((1, 2), "c8"), TypeError, "f32: argument #0 (x): expected dtype float32, got complex64"),
    ("f32", np.array([["a"]]), TypeError, "f32: argument #0 (x): expected dtype float32, got <U1"),
    ("f32", [np.ones(2), np.ones(2)], TypeError, "f32: argument #0 (x): expected dtype float32, got float64"),
    ("f32", [[1, 2], [3]], TypeError, "f32: argument #0 (x): expected rows of one length, got a list of several"),
    ("f32", [["1", "2"]], TypeError, "f32: argument #0 (x): expected dtype float32, got string"),
    ("f32", [1, 2], TypeError, "f32: argument #0 (x): expected rank 2, got 1"),
    ("f32", [[1e300, 0]], ValueError, "f32: argument #0 (x): expected numbers that fit into float32"),
    ("f32", None, TypeError, "f32: argument #0 (x): expected a tensor, got null"),
    ("scalar", np.float64(1), TypeError, "scalar: argument #0 (x): expected dtype float32, got float64"),
    ("ui8", [[1, 256]], ValueError, "ui8: argument #0 (x): expected numbers that fit into uint8"),
    ("ui8", [[1, -1]], ValueError, "ui8: argument #0 (x): expected numbers that fit into uint8"),
    ("ui8", [[1, 2**70]], ValueError, "ui8: argument #0 (x): expected numbers that fit into uint8"),
    ("i4", [[7, 8]], ValueError, "i4: argument #0 (x): expected numbers that fit into int4"),
    ("i64", [[1, 2.5]], TypeError, "i64: argument #0 (x): expected dtype int64, got float"),
    ("i1", [[1, 0]], TypeError, "i1: argument #0 (x): expected dtype bool, got int"),
    ("pair", [[1, 2], [1.5, 2]], TypeError, "pair: argument #0 (x) field 1: expected dtype int64, got float"),
    ("pair", [[1, 2]], TypeError, "pair: argument #0 (x): expected a tuple of 2 fields, got 1"),
]


def test_what_is_refused_names_the_argument(functions: dict[str, Callable[[str], Callable[..., Any]]]) -> None:
    for name, given, kind, message in REFUSED:
        for way in WAYS:
            with pytest.raises(kind, match=f"^{re.escape(message)}($|\n)"):
                functions[way](name)(given)


def test_a_dtype_that_can_be_converted(functions: dict[str, Callable[[str], Callable[..., Any]]]) -> None:
    """A note says how; nobody converts what is no number."""
    for way in WAYS[1:]:
        with pytest.raises(TypeError) as refused:
            functions[way]("f32")(np.ones((1, 2)))
        assert refused.value.__notes__[-1] == "to convert it, give x.astype('float32')", way
        with pytest.raises(TypeError) as refused:
            functions[way]("f32")(np.array([["a"]]))
        assert not any("convert" in note for note in getattr(refused.value, "__notes__", [])), way


def _unfit_to_write() -> dict[str, np.ndarray]:
    frozen = np.ones(2, np.float32)
    frozen.flags.writeable = False
    return {
        "is read-only": frozen,
        "has gaps between its elements": np.ones(4, np.float32)[::2],
        "is in the byte order of other machines": np.ones(2, ">f4"),
    }


def test_what_is_written_is_the_callers_array(functions: dict[str, Callable[[str], Callable[..., Any]]]) -> None:
    for way in WAYS:
        function = functions[way]("write")
        x = np.ones(2, np.float32)
        function(x, [3, 4])
        np.testing.assert_array_equal(x, [4, 5], way)
        for why, unfit in _unfit_to_write().items():
            message = f"write: argument #0 (x): is written, so that it cannot be copied, but {why}: pass a new array"
            with pytest.raises(ValueError, match=re.escape(message)):
                function(unfit, x)
            np.testing.assert_array_equal(unfit, [1, 1])
        with pytest.raises(TypeError, match=r"argument #0 \(x\): expected a tensor, got tuple: the function wr"):
            function([1, 2], x)
        np.testing.assert_array_equal(x, [4, 5], way)


def test_copies_are_logged(
    functions: dict[str, Callable[[str], Callable[..., Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for way in WAYS:
        caplog.clear()
        functions[way]("f32")(np.ones((2, 2), ">f4"))
        functions[way]("f32")(np.ones((2, 2), np.float32))
        expected = ["f32: argument #0 (x): is in the byte order of other machines: copied"]
        assert [record.getMessage() for record in caplog.records] == expected, way


def test_a_native_function_is_not_called_again_for_its_own_errors() -> None:
    """A failure inside of a function is not taken for one of its arguments."""
    calls: list[int] = []

    def fail(x: tvm_ffi.Tensor) -> None:
        calls.append(1)
        raise ValueError("main: argument #0 (x): not now")

    tvm_ffi.register_global_func("tests.arguments.fail", fail, override=True)
    module = parse_module("""
    relax.func @main(%x: !relax.tuple<!relax.tensor<[2], f32>>) -> !relax.object impure {
      %a = relax.tuple_get %x[0]
      %y = relax.call_packed "tests.arguments.fail"(%a) : !relax.object
      relax.return %y
    }""")
    function = VirtualMachine(build(module))["main"]
    with pytest.raises(ValueError, match="not now"):
        function(tvm_ffi.Array([tvm_ffi.from_dlpack(np.ones(2, np.float32))]))
    assert calls == [1]


def test_texts_by_name(functions: dict[str, Callable[[str], Callable[..., Any]]]) -> None:
    """Also with more of them than fit into a value; what is no value of the machine is told by the argument."""
    for way in WAYS[1:]:
        label = functions[way]("label")
        for text in ("", "a b", "a text of more than seven bytes \N{GREEK SMALL LETTER ALPHA}"):
            for found in (label(x=[1, 2], text=text), label({"text": text, "x": [1, 2]}), label(text, x=[1, 2])):
                assert str(found[0]) == text, way
        with pytest.raises(
            TypeError, match=r"^label: argument #0 \(text\): arrays of dtype complex128 are not supported"
        ):
            label(text=np.array(1j), x=[1, 2])


def test_libraries_know_their_functions(tmp_path: Path) -> None:
    _executable().export_library(tmp_path / "m.so")
    library = load_library(tmp_path / "m.so")
    assert "f32" in library
    assert "f64" not in library
    np.testing.assert_array_equal(as_plain(library["f32"](x=[[1, 2]])), np.array([[1], [2]], np.float32))
    with pytest.raises(KeyError, match="no function f64, the library has: f32, i64"):
        library["f64"]
    with pytest.raises(ValueError, match="no library of export_library"):
        load_library("libm.so.6")


@each(
    [("{", "Expecting"), ('{"f": [["f33"], []]}', "'f33' is no kind"), ('{"f": 1}', "no signatures"), ("[1]", "no sig")]
)
def test_damaged_signatures_are_refused(text: str, message: str) -> None:
    from vm_dialect.arguments import read_signatures

    with pytest.raises(ValueError, match=re.escape(message)):
        read_signatures(text)
