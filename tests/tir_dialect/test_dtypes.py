import math
import subprocess
import sys

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import Float80Type, IndexType, IntegerType, Signedness, i1

from tir_dialect import dtypes
from vm_dialect.dtypes import ELEMENT_TYPES

ROWS = pytest.mark.parametrize("row", dtypes.DTYPES, ids=lambda row: row.name)


@ROWS
def test_row_agrees_with_the_type(row: dtypes.DType):
    assert str(row.type) == row.name == dtypes.dtype_name(row.type)
    assert dtypes.is_dtype(row.type)
    assert dtypes.lookup(row.type) is row
    assert dtypes.parse_dtype(row.name) == row.type
    assert dtypes.parse_dtype(row.numpy_name) == row.type


@ROWS
def test_row_agrees_with_numpy(row: dtypes.DType):
    numpy = dtypes.numpy_dtype(row.type)
    assert numpy.name == row.numpy_name
    assert numpy.itemsize == row.bytes == dtypes.byte_size(row.type)
    assert dtypes.from_numpy(numpy) == row.type


@ROWS
def test_row_agrees_with_dlpack(row: dtypes.DType):
    ffi = tvm_ffi.dtype(row.numpy_name)
    assert row.dlpack == (ffi.type_code, ffi.bits)
    assert dtypes.from_dlpack(*row.dlpack) == row.type


@ROWS
def test_exactly_one_class(row: dtypes.DType):
    classes = (dtypes.is_float(row.type), dtypes.is_integer(row.type), dtypes.is_bool(row.type))
    assert sum(classes) == 1
    assert dtypes.is_unsigned(row.type) == row.name.startswith("ui")


@ROWS
def test_scalars_are_signless(row: dtypes.DType):
    scalar = dtypes.scalar_type(row.type)
    if row.is_unsigned:
        assert scalar == IntegerType(row.bits)
    else:
        assert scalar == row.type


def test_all_of_them():
    names = """f16 bf16 f32 f64 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1
        f8E4M3FN f8E5M2 f8E4M3 f8E3M4 f8E4M3B11FNUZ f8E4M3FNUZ f8E5M2FNUZ f8E8M0FNU
        f6E2M3FN f6E3M2FN f4E2M1FN i4 i2 ui4 ui2"""
    assert [row.name for row in dtypes.DTYPES] == names.split()
    assert dtypes.byte_size(i1) == 1


def test_arrays_give_their_type():
    assert dtypes.from_numpy(np.zeros(2, np.float32).dtype) == dtypes.parse_dtype("f32")
    assert dtypes.from_numpy(np.arange(3).dtype) == dtypes.parse_dtype("i64")


@pytest.mark.parametrize(
    "type",
    [
        IndexType(),
        Float80Type(),
        IntegerType(3),
        IntegerType(8, Signedness.SIGNED),
        IntegerType(1, Signedness.UNSIGNED),
    ],
)
def test_unsupported_types_are_named(type: IndexType | Float80Type | IntegerType):
    assert not dtypes.is_dtype(type)
    for function in (dtypes.lookup, dtypes.byte_size, dtypes.scalar_type, dtypes.numpy_dtype, dtypes.is_float):
        with pytest.raises(ValueError, match=f"unsupported dtype {type}: expected one of f16, bf16"):
            function(type)


def test_unsupported_spellings_are_named():
    with pytest.raises(ValueError, match="unsupported dtype 'float8': expected one of f16"):
        dtypes.parse_dtype("float8")
    with pytest.raises(ValueError, match="unsupported NumPy dtype 'complex64'"):
        dtypes.from_numpy(np.dtype(np.complex64))
    with pytest.raises(ValueError, match="unsupported NumPy dtype '>f4'"):
        dtypes.from_numpy(np.dtype(">f4"))
    with pytest.raises(ValueError, match=r"unsupported DLPack dtype \(code 2, 8 bits\)"):
        dtypes.from_dlpack(2, 8)


@pytest.mark.parametrize(("older", "name"), [("e4m3_float8", "f8E4M3FN"), ("e5m2_float8", "f8E5M2")])
def test_older_names_of_tvm(older: str, name: str):
    assert dtypes.parse_dtype(older) == dtypes.parse_dtype(name)


@ROWS
def test_the_machine_has_the_same_rows(row: dtypes.DType):
    element = ELEMENT_TYPES[row.name]
    assert (element.ffi_name, (element.code, element.bits)) == (row.numpy_name, row.dlpack)
    assert (element.itemsize, element.is_narrow) == (row.bytes, row.is_narrow)


def test_numbers_are_rounded_as_ml_dtypes_round_them():
    numbers = {"f8E4M3FN": 448.0, "f4E2M1FN": 6.0, "f8E5M2": math.inf, "f8E8M0FNU": math.nan}
    for name, number in numbers.items():
        value = {"f8E4M3FN": 460.0, "f8E8M0FNU": 0.0}.get(name, 1e9)
        assert str(dtypes.rounded(value, dtypes.parse_dtype(name))) == str(number)


def test_import_is_light():
    code = "import sys, tir_dialect.dtypes; print('ml_dtypes' in sys.modules, 'numpy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["False", "False"]
