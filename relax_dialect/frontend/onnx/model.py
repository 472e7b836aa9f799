"""Reading a model: the parsed file, checked, its nodes in order, and its tensors as arrays."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError, Message
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from relax_dialect.frontend.onnx.values import OnnxImportError, Refusal, element_type, to_numpy

DEFAULT_DOMAINS = ("", "ai.onnx")
"""The names of the standard's domain."""

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds."""

TRAINING = "ai.onnx.preview.training"
"""The domain of optimizers."""

ML = "ai.onnx.ml"
"""The domain of the operators of classical models."""

IMPLIED = {MICROSOFT: 1}
"""Versions of domains that models need not name, as ONNX Runtime does not ask for them."""


def sorted_model(model: ModelProto) -> ModelProto:
    """The model with its nodes in an order in which they can be computed, if there is one.

    The model itself if they are in order already. Whether nodes use each other in circles is for others to say.
    """
    if _is_sorted(model.graph):
        return model
    copied = ModelProto()
    copied.CopyFrom(model)
    _sort(copied.graph)
    return copied


def _is_sorted(graph: GraphProto) -> bool:
    """Whether no node uses an output of itself or of a later one."""
    later: set[str] = set()
    for node in reversed(graph.node):
        later.update(filter(None, node.output))
        if not later.isdisjoint(_used(node)):
            return False
    return all(_is_sorted(inner) for node in graph.node for inner in _graphs(node))


def _sort(graph: GraphProto) -> None:
    nodes = list(graph.node)
    for inner in (inner for node in nodes for inner in _graphs(node)):
        _sort(inner)
    makers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    before = {number: {makers[name] for name in _used(node) if name in makers} for number, node in enumerate(nodes)}
    try:
        order = [nodes[number] for number in TopologicalSorter(before).static_order()]
    except CycleError:
        return
    del graph.node[:]
    graph.node.extend(order)


def _used(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, also in its inner graphs."""
    yield from filter(None, node.input)
    for inner in _graphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        own.update(name for each in inner.node for name in each.output)
        yield from (name for each in inner.node for name in _used(each) if name not in own)
        yield from (output.name for output in inner.output if output.name not in own)


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.HasField("g"))


INITIALIZERS_ALONE = 4
"""From this version of the format on an initializer needs no input of its name; older models have such ones too."""

OLDEST_OPSET = 1
"""Of the nodes of versions before 7, `versions.modernized` says which are imported."""

MAX_CHECKED_ELEMENTS = 1 << 10
"""Elements of larger initializers are not handed to the checker of the onnx package, which copies them three times;
`Model.array` looks at each of them."""

MAX_CHECKED_BYTES = 1 << 30
"""Models that are larger even so are not handed to it at all."""

CHECK_ERRORS = (onnx.checker.ValidationError, onnx.defs.SchemaError, EncodeError, RuntimeError, ValueError)
"""What the checker of the onnx package raises: errors of its own, of serialization, and of the C++ library."""

UNCHECKED = frozenset({"LayerNormalization", "SimplifiedLayerNormalization", "GroupNormalization"})
"""Operators that the checker refuses in versions where they are used: ONNX Runtime writes the first two into the
default domain, where the standard has them not at all or not yet; the third changed its meaning later on.
"""


@dataclass(frozen=True)
class Model:
    """A parsed model, and the folder in which its other files are."""

    proto: ModelProto
    folder: Path | None

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each domain of operators."""
        return opsets(self.proto.opset_import)

    def array(self, tensor: TensorProto) -> NDArray[Any]:
        """The elements of a tensor; those in a file are memory-mapped, strings are objects. Raises `Refusal`."""
        shape = tuple(tensor.dims)
        if tensor.data_type == TensorProto.STRING:
            try:
                made = np.empty(len(tensor.string_data), object)
                made[:] = [each.decode() for each in tensor.string_data]
                return made.reshape(shape)
            except ValueError as error:
                raise Refusal(f"the tensor {tensor.name} is malformed: {error}") from None
        dtype = to_numpy(element_type(tensor.data_type))
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, np.dtype(dtype), shape)
        try:
            return np.asarray(numpy_helper.to_array(tensor)).astype(dtype, copy=False).reshape(shape)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise Refusal(f"the tensor {tensor.name} is malformed: {error}") from None

    def _external(self, tensor: TensorProto, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self._path(tensor.name, entries.get("location", ""))
        count = int(np.prod([int(dim) for dim in shape], dtype=object)) if shape else 1
        try:
            offset, size = int(entries.get("offset", "0")), path.stat().st_size
            if min(shape, default=0) < 0 or offset < 0 or offset + count * dtype.itemsize > size:
                raise Refusal(f"the tensor {tensor.name} does not lie within the {size} bytes of its file")
            if int(entries.get("length", count * dtype.itemsize)) < count * dtype.itemsize:
                raise Refusal(f"the tensor {tensor.name} has more elements than the bytes of its file that it names")
            if count == 0:
                return np.empty(shape, dtype)
            mapped = np.memmap(path, dtype, "r", offset, (count,)).reshape(shape)
            return mapped if mapped.flags.aligned else np.array(mapped)
        except (OSError, ValueError) as error:
            raise Refusal(f"the tensor {tensor.name} cannot be read from its file: {error}") from None

    def _path(self, name: str, location: str) -> Path:
        """The file of external data; it has to be in the folder of the model, also after links are followed."""
        if self.folder is None:
            raise Refusal(f"the tensor {name} is in another file, but the model was not read from one")
        try:
            root, path = self.folder.resolve(), (self.folder / location).resolve()
            is_file = path.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a name that no file can have
            raise Refusal(
                f"the tensor {name} is in the file {_shortened(location)}, which has no place: {error}"
            ) from None
        if not location or root not in path.parents or not is_file:
            raise Refusal(
                f"the tensor {name} is in the file {_shortened(location)}, which is not in the folder of the model"
            )
        return path


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."


def opsets(imports: Any) -> dict[str, int]:
    """The version of each domain, the default one under the empty name."""
    named = {"" if each.domain in DEFAULT_DOMAINS else each.domain: int(each.version) for each in imports}
    return IMPLIED | named


def load_model(source: str | os.PathLike[str] | bytes | ModelProto) -> Model:
    """A model from a file, its bytes, or parsed; raises `OnnxImportError` if it is no model, or too new or old."""
    if isinstance(source, ModelProto):
        model = Model(source, None)
    else:
        folder, data = None, source
        if not isinstance(data, bytes):
            path = Path(data)
            try:
                if not stat.S_ISREG(path.stat().st_mode):
                    raise OnnxImportError(f"the model cannot be read: {path} is no regular file")
                folder, data = path.parent, path.read_bytes()
            except OSError as error:
                raise OnnxImportError(f"the model cannot be read: {error}") from error
        if not data:
            raise OnnxImportError("the model is malformed: it is empty")
        proto = ModelProto()
        try:
            proto.ParseFromString(data)
        except DecodeError as error:
            reason = "it is not an ONNX file, or was cut off"
            if data.startswith(b"version https://git-lfs"):
                reason = "it is a pointer of Git LFS instead of the file: run `git lfs pull`"
            raise OnnxImportError(f"the model is malformed: {reason}") from error
        model = Model(proto, folder)
    newest = onnx.defs.onnx_opset_version()
    version = model.opsets.get("")
    if not model.proto.opset_import:
        raise OnnxImportError("the model is malformed: it does not say which operators it uses (opset_import)")
    if version is not None and not OLDEST_OPSET <= version <= newest:
        raise OnnxImportError(
            f"the model uses version {version} of the operators; {OLDEST_OPSET} to {newest} are supported: convert it "
            "with onnx.version_converter"
        )
    return replace(model, proto=sorted_model(model.proto))


def check_model(model: Model) -> None:
    """Raises `OnnxImportError` if a model is malformed, as the onnx package sees it, which names one mistake."""
    try:
        bare = _without_elements(model.proto)
    except UnicodeDecodeError as error:
        raise OnnxImportError(f"the model is malformed: a name is no text: {error}") from error
    if bare.ByteSize() <= MAX_CHECKED_BYTES:
        check = cast("Callable[[ModelProto], None]", onnx.checker.check_model)
        try:
            check(bare)
        except CHECK_ERRORS as error:
            raise OnnxImportError(f"the model is malformed: {str(error).strip()}") from error


def _without_elements(model: ModelProto) -> ModelProto:
    """The model as the checker takes it: large and external data are looked at when they are read, inputs and outputs
    need no shape, initializers no inputs, and operators that it does not know are of another domain. What is large is
    never copied.
    """
    shaped = all(map(_has_shape, (*model.graph.input, *model.graph.output)))
    named = {each.domain for each in model.opset_import}
    has_domains = all(node.domain in named or node.domain not in IMPLIED for node in _nodes(model.graph))
    is_plain = shaped and has_domains and not any(map(_stays_outside, model.graph.initializer))
    if is_plain and model.ir_version >= INITIALIZERS_ALONE and not any(map(_is_unchecked, _nodes(model.graph))):
        return model
    bare = ModelProto()
    _copy_fields(model, bare, "graph")
    _copy_fields(model.graph, bare.graph, "initializer")
    bare.ir_version = max(bare.ir_version, INITIALIZERS_ALONE)
    for info in (*bare.graph.input, *bare.graph.output):
        if not _has_shape(info):
            info.type.tensor_type.shape.SetInParent()
    for domain in IMPLIED.keys() - named:
        bare.opset_import.add(domain=domain, version=IMPLIED[domain])
    for tensor in model.graph.initializer:
        if _stays_outside(tensor):
            bare.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=[0], raw_data=b"")
        else:
            bare.graph.initializer.add().CopyFrom(tensor)
    for node in filter(_is_unchecked, _nodes(bare.graph)):
        node.domain = "unchecked"
    bare.opset_import.add(domain="unchecked", version=1)
    return bare


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph and of those in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


def _is_unchecked(node: NodeProto) -> bool:
    return node.op_type in UNCHECKED and node.domain in DEFAULT_DOMAINS


def _stays_outside(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > MAX_CHECKED_ELEMENTS


def _copy_fields(source: Any, target: Any, left_out: str) -> None:
    """Copies what a message has, but for one field."""
    for field, value in source.ListFields():
        if field.name == left_out:
            continue
        if not isinstance(value, Message) and not hasattr(value, "extend"):
            setattr(target, field.name, value)
        else:
            getattr(target, field.name).MergeFrom(value)


def _has_shape(info: ValueInfoProto) -> bool:
    return info.type.WhichOneof("value") != "tensor_type" or info.type.tensor_type.HasField("shape")
