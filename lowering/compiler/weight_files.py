"""Weights of a module in a file beside its text: safetensors."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.builtin import TensorType as BuiltinTensorType

from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import from_numpy, is_narrow, numpy_dtype, parse_dtype
from tir_dialect.weights import Weight, WeightAttr
from vm_dialect.files import open_regular
from vm_dialect.ops.constants import ConstantSymbolOp

if TYPE_CHECKING:
    from numpy.typing import NDArray


class WeightFileError(ValueError):
    """A file of weights cannot be read or written, or does not fit the module; the message says why."""


def save_weights(module: ModuleOp, path: str | Path) -> int:
    """Writes the weights that `module` names, and gives their number.

    Raises `WeightFileError` for a weight of which only the name is here.
    """
    import numpy as np

    library, arrays = _library(), dict[str, Any]()
    for op, weight in _weights(module):
        array = weight.array
        if array is None:
            raise WeightFileError(f"the elements of weight '{weight.name}' are not here; give them with --weights")
        if arrays.setdefault(weight.name, array) is not array:
            raise WeightFileError(f"expected one tensor of each name, got two of '{weight.name}' ('{op.name}' op)")
    try:
        library.numpy.save_file({name: _storable(np.ascontiguousarray(array)) for name, array in arrays.items()}, path)
    except (library.SafetensorError, OSError) as error:
        raise WeightFileError(f"cannot write weights to {path}: {error}") from error
    return len(arrays)


def load_weights(module: ModuleOp, path: str | Path) -> None:
    """Gives the weights that `module` names, and of which it has no elements, those of a file.

    Raises `WeightFileError` if the file cannot be read, lacks weights (all of them are named), or has one of another
    shape or dtype than the module declares.
    """
    library = _library()
    try:
        open_regular(path).close()
        with library.safe_open(path, framework="np") as file:
            _attach(module, file, path)
    except (library.SafetensorError, OSError) as error:
        raise WeightFileError(f"cannot read weights from {path}: {error}") from error


def _library() -> Any:
    """safetensors, which nothing else of the compiler needs."""
    try:
        import_module("safetensors.numpy")
    except ModuleNotFoundError as error:
        advice = "pip install safetensors"
        raise WeightFileError(f"files of weights need the package safetensors: {advice} ({error})") from error
    return import_module("safetensors")


def _attach(module: ModuleOp, file: Any, path: str | Path) -> None:
    wanted = [(op, weight.name) for op, weight in _weights(module) if weight.array is None]
    if missing := sorted({name for _, name in wanted}.difference(file.keys())):
        raise WeightFileError(f"{path} has no weight {', '.join(repr(name) for name in missing)}")
    arrays = {name: _read(file, name, path) for name in dict.fromkeys(name for _, name in wanted)}
    for op, name in wanted:
        array = _as_declared(arrays[name], op)
        _verify(op, name, array)
        op.properties["value"] = WeightAttr(name, array)


_SMALL_FLOATS = {
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
"""Dtypes of the file format that its library does not read into NumPy's arrays. The other narrow ones it does not have:
they are bytes in the file, and the module says what they are."""


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """The array, as bytes if the file format does not have its dtype."""
    is_known = not is_narrow(from_numpy(array.dtype)) or array.dtype.name in _SMALL_FLOATS.values()
    return array if is_known else array.view("u1")


def _as_declared(array: NDArray[Any], op: ConstantOp | ConstantSymbolOp) -> NDArray[Any]:
    """Bytes as the narrow elements that the module says they are, if the file format does not have these."""
    declared = op.result.type.dtype if isinstance(op, ConstantOp) else op.tensor_type.element_type
    if declared is None or array.dtype.name != "uint8" or not is_narrow(declared):
        return array
    dtype = numpy_dtype(declared)
    return array if dtype.name in _SMALL_FLOATS.values() else array.view(dtype)


def _read(file: Any, name: str, path: str | Path) -> NDArray[Any]:
    part = file.get_slice(name)
    kind = part.get_dtype()
    if kind in _SMALL_FLOATS:
        array = _raw(path, name).view(numpy_dtype(parse_dtype(_SMALL_FLOATS[kind]))).reshape(part.get_shape())
    elif kind.startswith(("F8", "F6", "F4")):
        raise WeightFileError(f"weight '{name}' has the dtype {kind}, which is not read from a file")
    else:
        array = file.get_tensor(name)
    array.flags.writeable = False
    return array


def _raw(path: str | Path, name: str) -> NDArray[Any]:
    """The bytes of a tensor: after the length of the header and the header, which says where they are."""
    import json

    import numpy as np

    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        start, end = json.loads(file.read(length))[name]["data_offsets"]
        file.seek(8 + length + start)
        return np.frombuffer(bytearray(file.read(end - start)), np.uint8)


def _weights(module: ModuleOp) -> Iterator[tuple[ConstantOp | ConstantSymbolOp, Weight]]:
    for op in module.walk():
        if isinstance(op, ConstantOp | ConstantSymbolOp) and isinstance(op.value, WeightAttr):
            yield op, op.value.data


def _verify(op: ConstantOp | ConstantSymbolOp, name: str, array: NDArray[Any]) -> None:
    shape, dtype = array.shape, from_numpy(array.dtype)
    if isinstance(op, ConstantOp):
        declared, got = op.result.type, TensorType(shape, dtype, op.result.type.device)
    else:
        declared, got = op.tensor_type, BuiltinTensorType(dtype, shape)
    if declared != got:
        raise WeightFileError(f"weight '{name}' expected {declared}, got {got}")
