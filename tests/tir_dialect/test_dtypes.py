import subprocess
import sys

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import Float80Type, IndexType, IntegerType, Signedness, i1

from tir_dialect import dtypes

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
    names = "f16 bf16 f32 f64 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1"
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
        IntegerType(4),
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


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float6_e2m3fn", "float4_e2m1fn", "f8E5M2", "int4", "uint2", "i4"])
def test_narrow_dtypes_are_refused_with_the_reason(name: str):
    with pytest.raises(ValueError, match="machines do not compute with narrower ones: keep them as ui8"):
        dtypes.parse_dtype(name)


def test_import_is_light():
    code = "import sys, tir_dialect.dtypes; print('ml_dtypes' in sys.modules, 'numpy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["False", "False"]
