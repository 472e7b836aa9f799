"""Element types of ONNX, and what can be wrong with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from xdsl.ir import Attribute

from tir_dialect.dtypes import ElementType, from_numpy, numpy_dtype, range_in_i64


@dataclass(frozen=True)
class UnsupportedNode:
    """A node that cannot be imported."""

    name: str
    """The node's name, or that of its first output if it has none."""

    op_type: str
    """The operator, with its domain unless that is the default one."""

    reason: str

    def __str__(self) -> str:
        return f"{self.op_type} ({self.name}): {self.reason}"


class OnnxImportError(ImportError):
    """A model that cannot be imported: it is malformed, or has nodes that are not supported.

    `nodes` are the unsupported ones, all that were found; it is empty if something else is wrong.
    """

    def __init__(self, message: str, nodes: Sequence[UnsupportedNode] = ()):
        super().__init__(message)
        self.nodes = tuple(nodes)

    @classmethod
    def unsupported(cls, nodes: Sequence[UnsupportedNode]) -> OnnxImportError:
        """The error that lists nodes."""
        what = "a node that is" if len(nodes) == 1 else f"{len(nodes)} nodes that are"
        return cls("\n  ".join([f"the model has {what} not supported:", *map(str, nodes)]), nodes)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""


class NeedsControlFlow(Exception):
    """The graph has branches or loops, so that it cannot be one dataflow region."""


class UseFunction(Exception):
    """A converter leaves a node to the body that the standard gives its operator."""


@cache
def element_type(elem_type: int) -> ElementType:
    """The dtype with a number of `TensorProto.DataType`; `Refusal` if there is none for it."""
    import numpy as np

    names = onnx.TensorProto.DataType
    if elem_type not in names.values() or elem_type == onnx.TensorProto.UNDEFINED:
        raise Refusal(f"the element type {elem_type} does not exist")
    try:
        return from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type)))
    except (KeyError, TypeError, ValueError):
        raise Refusal(f"elements of type {names.Name(elem_type).lower()} are not supported") from None


def onnx_type(dtype: Attribute) -> int:
    """The number of a dtype in `TensorProto.DataType`."""
    return onnx.helper.np_dtype_to_tensor_dtype(to_numpy(dtype))


def to_numpy(dtype: Attribute) -> Any:
    """NumPy's dtype."""
    return numpy_dtype(dtype)


def integer_limits(dtype: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype below 64 bits."""
    low, high = range_in_i64(dtype) or (0, None)
    if high is None:
        raise Refusal(f"quantised numbers of {dtype} are not supported; the dtype has to have less than 64 bits")
    return low, high
