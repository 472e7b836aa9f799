from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from vm_dialect.dtypes import ELEMENT_TYPES, element_type
from vm_dialect.messages import KINDS, kind_name
from vm_dialect.tensors import from_numpy, kind_of, new_tensor, numpy_dtype, tensor_at, to_numpy, to_value, view


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_arrays_and_tensors_share_memory(name: str):
    element = element_type(name)
    array = np.ones((2, 3), numpy_dtype(element))
    tensor = from_numpy(array)
    assert (tensor.dtype, tensor.shape) == (element.ffi_name, (2, 3))
    assert (tensor.dtype.type_code, tensor.dtype.bits) == (element.code, element.bits)
    back = to_numpy(tensor)
    assert back.dtype == array.dtype
    assert np.shares_memory(back, array)
    assert element_type(element.ffi_name) is element


def test_read_only_and_swapped_arrays_are_copied():
    array = np.arange(3.0)
    array.flags.writeable = False
    np.testing.assert_array_equal(to_numpy(from_numpy(array)), array)
    swapped = np.arange(3, dtype=">i4")
    assert from_numpy(swapped).dtype == "int32"
    np.testing.assert_array_equal(to_numpy(from_numpy(swapped)), swapped)


def test_dtypes_that_there_are_not():
    with pytest.raises(TypeError, match="arrays of dtype complex128 are not supported"):
        from_numpy(np.zeros(2, complex))
    with pytest.raises(ValueError, match="unknown element type 'f80', expected one of f16, bf16"):
        element_type("f80")


def test_views_keep_the_memory():
    storage = new_tensor((64,), element_type("ui8"))
    tensor = tensor_at(storage, 8, (2, 3), element_type("bf16"))
    to_numpy(tensor)[...] = 2
    flat = view(tensor, (6,))
    del storage, tensor
    np.testing.assert_array_equal(to_numpy(flat).astype(np.float32), np.full(6, 2))


class Foreign:
    """A tensor of another library."""

    def __init__(self) -> None:
        self.array = np.arange(3.0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_python_values_become_values():
    foreign = Foreign()
    tensor = to_value(foreign)
    assert np.shares_memory(to_numpy(tensor), foreign.array)
    assert to_value(np.int16(3)) == 3
    assert to_value(np.bool_(True)) is True
    assert to_value(ml_dtypes.bfloat16(0.5)) == 0.5
    assert list(to_value((1, [2.0]))[1]) == [2.0]
    assert to_value({"a": np.int8(1)})["a"] == 1
    assert to_value(len)("four") == 4
    assert to_value(None) is None
    for wrong in (1j, {1, 2}, np.complex64(1)):
        with pytest.raises(TypeError, match=r"expected an? .*, got "):
            to_value(wrong)


def test_kinds_have_the_names_of_native_code():
    values: list[tuple[Any, int]] = [
        (None, 0),
        (1, 1),
        (True, 2),
        (0.5, 3),
        (tvm_ffi.dtype("float32"), 5),
        (tvm_ffi.device("cpu"), 6),
        ("text", 65),
        (b"bytes", 66),
        (tvm_ffi.convert(len), 68),
        (tvm_ffi.Shape((1,)), 69),
        (from_numpy(np.zeros(1)), 70),
        (tvm_ffi.Array([1]), 71),
        (tvm_ffi.Map({1: 2}), 72),
    ]
    for value, index in values:
        assert kind_of(value) == KINDS[index] == kind_name(index)
    assert kind_of(object()) == kind_name(1000) == "object"
