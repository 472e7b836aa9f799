"""Weights of a module in a file beside its text: safetensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from vm_dialect.ops.values import ConstantSymbolOp

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


def load_weights(module: ModuleOp, path: str | Path, *, mapped: bool = False) -> None:
    """Gives the weights that `module` names, and of which it has no elements, those of a file.

    With `mapped` they are in the memory of the file, of which only what is looked at is read; the file must not change.

    Raises `WeightFileError` if the file cannot be read, lacks weights (all of them are named), or has one of another
    shape or dtype than the module declares.
    """
    library = _library()
    try:
        open_regular(path).close()
        with library.safe_open(path, framework="np") as file:
            _attach(module, _Mapped(file, path) if mapped else file, path)
    except (library.SafetensorError, OSError) as error:
        raise WeightFileError(f"cannot read weights from {path}: {error}") from error


def attach_arrays(module: ModuleOp, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Gives weights that the module only names their elements; `WeightFileError` for one of another shape or dtype.

    Names that are not among the arrays stay as they are.
    """
    for op, weight in list(_weights(module)):
        if weight.array is None and weight.name in arrays:
            _verify(op, weight.name, arrays[weight.name])
            op.properties["value"] = WeightAttr(weight.name, arrays[weight.name])


class _Mapped:
    """A file whose tensors are mapped into memory, with the methods of one that is open."""

    def __init__(self, file: Any, path: str | Path):
        """`file` is open: what is wrong with its header has been found."""
        import json
        import mmap

        self._file = file
        with open_regular(path) as bytes_of_file:
            self._memory = mmap.mmap(bytes_of_file.fileno(), 0, access=mmap.ACCESS_READ)
        self._begin = 8 + int.from_bytes(self._memory[:8], "little")
        self._header = json.loads(self._memory[8 : self._begin])

    def keys(self) -> Sequence[str]:
        return self._file.keys()

    def get_slice(self, name: str) -> Any:
        return self._file.get_slice(name)

    def get_tensor(self, name: str) -> NDArray[Any]:
        import numpy as np

        entry = self._header[name]
        dtype = numpy_dtype(parse_dtype(_DTYPES[entry["dtype"]]))
        begin, end = entry["data_offsets"]
        array = np.frombuffer(self._memory, dtype, (end - begin) // dtype.itemsize, self._begin + begin)
        array = array.reshape(entry["shape"])
        return array if array.flags.aligned else array.copy()


_DTYPES = {
    "BOOL": "i1",
    "U8": "ui8",
    "I8": "i8",
    "U16": "ui16",
    "I16": "i16",
    "U32": "ui32",
    "I32": "i32",
    "U64": "ui64",
    "I64": "i64",
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
}
"""Dtypes of the file format as we write them."""


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
    elif kind.startswith(("F8_", "F6_", "F4")):
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
