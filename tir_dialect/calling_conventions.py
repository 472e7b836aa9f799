"""The memory layouts and type codes of TVM's calling conventions.

There are two conventions. In that of tvm-ffi (TVM 0.21 and later), arguments are an array of `TVMFFIAny` of 16 bytes: a
type index, four bytes of zeros, and eight bytes of payload. In the older one they are an array of `TVMValue`, eight
bytes of payload each, and an array of `int32` type codes. A tensor is a `DLTensor` in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute

from tir_dialect.dtypes import parse_dtype

TENSOR_BYTES = 48
"""The size of a `DLTensor`."""
ANY_BYTES = 16
"""The size of a `TVMFFIAny`."""
VALUE_BYTES = 8
"""The size of a `TVMValue`."""
TENSOR_OBJECT_HEADER = 24
"""Where the `DLTensor` of a tensor object of tvm-ffi begins."""


@dataclass(frozen=True)
class Field:
    """A field of a struct: its offset, and its dtype, unless that is the dtype of the value stored."""

    name: str
    struct_bytes: int
    offset: int
    dtype: Attribute | None = None
    is_address: bool = False
    """Whether it is the address of the struct itself, which takes no memory."""


FIELDS: Mapping[int, Field] = MappingProxyType(
    {
        0: Field("tensor", TENSOR_BYTES, 0, i64, is_address=True),
        1: Field("tensor_data", TENSOR_BYTES, 0, i64),
        2: Field("tensor_shape", TENSOR_BYTES, 24, i64),
        3: Field("tensor_strides", TENSOR_BYTES, 32, i64),
        4: Field("tensor_ndim", TENSOR_BYTES, 16, i32),
        5: Field("tensor_type_code", TENSOR_BYTES, 20, parse_dtype("uint8")),
        6: Field("tensor_type_bits", TENSOR_BYTES, 21, parse_dtype("uint8")),
        7: Field("tensor_type_lanes", TENSOR_BYTES, 22, parse_dtype("uint16")),
        8: Field("tensor_byte_offset", TENSOR_BYTES, 40, parse_dtype("uint64")),
        9: Field("tensor_device_id", TENSOR_BYTES, 12, i32),
        10: Field("tensor_device_type", TENSOR_BYTES, 8, i32),
        12: Field("value", VALUE_BYTES, 0),
        13: Field("any_type_index", ANY_BYTES, 0, i32),
        14: Field("any_padding", ANY_BYTES, 4, i32),
        15: Field("any_payload", ANY_BYTES, 8),
        17: Field("integer", 8, 0, i64),
    }
)
"""The fields by the numbers of TVM's `TVMStructFieldKind`, which texts have."""

STACK_BYTES: Mapping[str, int] = MappingProxyType(
    {"array": TENSOR_BYTES, "tvm_ffi_any": ANY_BYTES, "arg_value": VALUE_BYTES, "arg_tcode": 4, "shape": 8}
)
"""The size of what `T.tvm_stack_alloca` makes room for, by TVM's names."""


class Convention(Enum):
    """A calling convention; the value is its name in IR."""

    ANY = "tvm_ffi"
    """`f(self, values: TVMFFIAny*, count, result: TVMFFIAny*)`, all addresses but the count."""
    VALUES = "tvm_values"
    """`f(values: TVMValue*, kinds: int32*, count, result: TVMValue*, result_kind: int32*)`."""


CONVENTION = "calling_convention"
"""The attribute of a `tir.prim_func` that has one of TVM's conventions."""


class Kind(IntEnum):
    """Type indices of `TVMFFIAny`."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    POINTER = 4
    DTYPE = 5
    DEVICE = 6
    TENSOR = 7
    TEXT = 8
    FIRST_OBJECT = 64
    TENSOR_OBJECT = 70


class OldKind(IntEnum):
    """Type codes of `TVMValue`."""

    INT = 0
    UINT = 1
    FLOAT = 2
    POINTER = 3
    NULL = 4
    DTYPE = 5
    DEVICE = 6
    TENSOR = 7
    OBJECT = 8
    TEXT = 11
    TENSOR_OBJECT = 13
    BOOL = 15


TO_KIND: Mapping[OldKind, Kind] = MappingProxyType(
    {
        OldKind.INT: Kind.INT,
        OldKind.UINT: Kind.INT,
        OldKind.FLOAT: Kind.FLOAT,
        OldKind.POINTER: Kind.POINTER,
        OldKind.NULL: Kind.NONE,
        OldKind.DTYPE: Kind.DTYPE,
        OldKind.DEVICE: Kind.DEVICE,
        OldKind.TENSOR: Kind.TENSOR,
        OldKind.TEXT: Kind.TEXT,
        OldKind.TENSOR_OBJECT: Kind.TENSOR,
        OldKind.BOOL: Kind.BOOL,
    }
)
"""The kinds of the older convention in that of tvm-ffi; their payloads are the same."""
