"""Quantised checkpoints: the tensors of GPTQ, AWQ and compressed-tensors as packed weights.

`quantization_config` of `config.json` says which of them a folder has. All but `mxfp4`, which has blocks already, are
integers of 4 or 8 bits with a scale and a zero point for some inputs of an output in a row: exactly `u4_f32` or
`u8_f32` (`tir_dialect/block_formats.py`), which have a scale and a zero point for 32 of them.

| | integers | zero points | scales |
|---|---|---|---|
| GPTQ | `qweight [in / 8, out]` | `qzeros [groups, out / 8]`, one less in version 1 | `scales [groups, out]` |
| AWQ | `qweight [in, out / 8]` | `qzeros [groups, out / 8]` | `scales [groups, out]` |
| packed | `weight_packed [out, in / 8]` | `weight_zero_point [out / 8, groups]` | `weight_scale [out, groups]` |
| bytes | `weight [out, in]` | `weight_zero_point [out, groups]` | `weight_scale [out, groups]` |

The last two are of compressed-tensors (`pack-quantized`, `int-quantized`); bytes have signs. The others have words of
32 bits, here for numbers of 4, the lowest first, which AWQ interleaves. GPTQ's `g_idx` says the group of each input.
Where inputs of a group do not follow each other (`desc_act`), columns are packed group by group, and
`NAME.input_order` has the input of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relax_dialect.frontend.huggingface.folder import HuggingFaceImportError, ModelFolder
from tir_dialect.block_arrays import BlockArray, encode_integers
from tir_dialect.block_formats import FORMATS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from relax_dialect.nn.module import Elements

    Array = NDArray[Any]

BLOCK = 32
"""The inputs that have one scale in `u4_f32` and `u8_f32`."""

_SCALES = ("float16", "float32", "bfloat16")


def packed_tensors(folder: ModelFolder) -> Mapping[str, Elements]:
    """The tensors of a folder: those of a quantised layer as one, `NAME.weight`; `HuggingFaceImportError` for layers
    that are quantised in a way that is not known, or do not fit together.
    """
    config, found = folder.table("quantization_config"), _with_mxfp4(folder)
    if not config:
        named = next((name for name in folder.tensors if name.endswith((".qweight", ".weight_packed"))), None)
        if named is not None:
            raise folder.error(f"'{named}' is quantised, but config.json has no 'quantization_config'")
        return found
    method = config.get("quant_method")
    if method == "mxfp4":
        return found
    if not isinstance(method, str) or method not in _METHODS:
        raise folder.error(
            f"weights that {method!r} has quantised are not supported; known are {', '.join((*_METHODS, 'mxfp4'))}"
        )
    kinds, read = _METHODS[method](folder, config)
    for name in folder.tensors:
        owner, _, kind = name.rpartition(".")
        layer = _Layer(folder, owner)
        if kind not in kinds or (kind == "weight" and layer.optional("weight_scale") is None):
            continue
        if kind != "weight" and layer.optional("weight") is not None:
            raise layer.error("weight", f"is there beside '{kind}'")
        found[f"{owner}.weight"] = read(layer)
        if layer.input_order is not None:
            found[f"{owner}.input_order"] = layer.input_order
        for each in layer.used - {"weight"}:
            del found[f"{owner}.{each}"]
    return found


def _with_mxfp4(folder: ModelFolder) -> dict[str, Elements]:
    """The tensors, in which experts of MXFP4, `..._blocks` of numbers and `..._scales` of exponents, are block arrays.

    A byte of the file has two numbers that follow each other; in a block it has one of each half.
    """
    found: dict[str, Elements] = {}
    for name, array in folder.tensors.items():
        stem = name.removesuffix("_blocks")
        if name.endswith("_scales") and f"{name.removesuffix('_scales')}_blocks" in folder.tensors:
            continue
        if stem == name:
            found[name] = array
            continue
        scales = folder.tensors.get(f"{stem}_scales")
        if scales is None or array.dtype != np.uint8 or scales.dtype != np.uint8 or array.shape != (*scales.shape, 16):
            raise folder.error(f"'{name}' expected 16 bytes for each exponent of '{stem}_scales'")
        numbers = np.stack([array & 15, array >> 4], axis=-1).reshape(*scales.shape, 32)
        blocks = np.concatenate([scales[..., None], numbers[..., :16] | numbers[..., 16:] << 4], axis=-1)
        found[stem] = BlockArray(blocks.reshape(*scales.shape[:-1], -1), FORMATS["mxfp4"])
    return found


_IGNORED = ("input_scale", "input_zero_point", "output_scale", "output_zero_point")
"""Tensors about activations, which are not quantised."""


class _Layer:
    """The tensors of a quantised layer."""

    def __init__(self, folder: ModelFolder, owner: str):
        self._folder, self._owner = folder, owner
        self.used = {each for each in _IGNORED if f"{owner}.{each}" in folder.tensors}
        """The tensors that have been looked at."""
        self.input_order: Array | None = None
        """The input that each column of the packed weights multiplies, if it is not that of the same number."""

    def error(self, kind: str, message: str) -> HuggingFaceImportError:
        """What is wrong with a tensor."""
        return self._folder.error(f"'{self._owner}.{kind}' {message}")

    def optional(self, kind: str) -> Array | None:
        """A tensor, if it is there."""
        found = self._folder.tensors.get(f"{self._owner}.{kind}")
        if found is not None:
            self.used.add(kind)
        return found

    def get(self, kind: str, dtypes: Sequence[str], *shape: int | None) -> Array:
        """A tensor of one of some dtypes, and of a shape in which `None` is any size."""
        found = self.optional(kind)
        if found is None:
            raise self.error(kind, "is missing")
        is_of_shape = len(shape) == found.ndim and all(
            size in (None, own) for size, own in zip(shape, found.shape, strict=True)
        )
        if str(found.dtype) not in dtypes or not is_of_shape:
            wanted = ", ".join("_" if size is None else str(size) for size in shape)
            raise self.error(kind, f"expected {dtypes[0]}[{wanted}], got {found.dtype}{list(found.shape)}")
        return found

    def scales(self, kind: str, *shape: int | None) -> Array:
        """Scales, as `f32`."""
        found = self.get(kind, _SCALES, *shape).astype(np.float32)
        if not np.isfinite(found).all():
            raise self.error(kind, "expected finite numbers")
        return found

    def blocks(self, kind: str, integers: Array, scale: Array, zero: Array, group: Array, bits: int) -> BlockArray:
        """Rows of integers, whose scales and zero points are `[rows, groups]`; `group` has that of each column.

        Columns are ordered by their groups if those of a group are not beside each other.
        """
        if integers.shape[1] % BLOCK:
            raise self.error(kind, f"has rows of {integers.shape[1]}, expected a multiple of {BLOCK}")
        if group.size and not 0 <= group.min() <= group.max() < scale.shape[1]:
            raise self.error(kind, f"has groups from {group.min()} to {group.max()}, and scales of {scale.shape[1]}")
        groups = group.reshape(-1, BLOCK)
        if (groups != groups[:, :1]).any():
            self.input_order = np.argsort(group, kind="stable").astype(np.int64)
            groups, integers = group[self.input_order].reshape(-1, BLOCK), integers[:, self.input_order]
        if (groups != groups[:, :1]).any():
            raise self.error(
                kind,
                f"has groups of other sizes than multiples of {BLOCK} inputs, which is not supported: quantise with a "
                f"group_size that is a multiple of {BLOCK}",
            )
        first = groups[:, 0]
        return encode_integers(integers, scale[:, first], zero[:, first], bits)


def _even_groups(inputs: int, size: int) -> Array:
    """The group of each input, if they are of one size."""
    numbers: Array = np.arange(inputs)
    return numbers // size


_Read = Callable[[_Layer], BlockArray]
_Reader = tuple[tuple[str, ...], _Read]
"""The tensor that a quantised layer has, by its name, and what reads the layer."""


def unpacked(words: Array, bits: int) -> Array:
    """The numbers of 4 or 8 bits in words of 32 bits, the lowest first, along the last axis."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    if bits == 8:
        return octets
    return np.stack([octets & 15, octets >> 4], axis=-1).reshape(*words.shape[:-1], -1)


def _bits(folder: ModelFolder, config: Mapping[str, Any], keys: Sequence[str], known: Sequence[int]) -> int:
    found = next((config[key] for key in keys if key in config), None)
    if found not in known or isinstance(found, bool):
        raise folder.error(
            f"'{keys[0]}' of 'quantization_config' expected {' or '.join(map(str, known))}, got {found!r}"
        )
    return int(cast("int", found))


def _groups(folder: ModelFolder, config: Mapping[str, Any]) -> int | None:
    """The inputs of a group; `None` if all are one."""
    found = config.get("group_size", config.get("q_group_size", 128))
    if isinstance(found, bool) or not isinstance(found, int) or not (found == -1 or 0 < found < 1 << 31):
        raise folder.error(f"'group_size' of 'quantization_config' expected a number of inputs or -1, got {found!r}")
    return None if found == -1 else found


def _require_none(folder: ModelFolder, config: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if config.get(key):
            raise folder.error(f"'{key}' of 'quantization_config' is not supported, got {str(config[key])[:60]}")


def _one_of(folder: ModelFolder, config: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
    """A text in lower case, the first one if there is none."""
    found = config.get(key)
    text = known[0] if found is None else str(found).lower()
    if text not in known:
        raise folder.error(f"'{key}' of 'quantization_config' expected {' or '.join(known)}, got {found!r}")
    return text


def _gptq(folder: ModelFolder, config: Mapping[str, Any]) -> _Reader:
    bits, size = _bits(folder, config, ("bits",), (4, 8)), _groups(folder, config)
    key = "checkpoint_format" if "checkpoint_format" in config else "format"
    version = _one_of(folder, config, key, ("gptq", "gptq_v2"))
    _one_of(folder, config, "pack_dtype", ("int32",))
    _require_none(folder, config, "dynamic", "rotation", "adapter", "is_marlin_format")
    each = 32 // bits
    # Version 1 subtracts one from each zero point, in whole words.
    less = np.uint32(0 if version == "gptq_v2" else 0x11111111 if bits == 4 else 0x01010101)

    def read(layer: _Layer) -> BlockArray:
        words = layer.get("qweight", ("int32",), None, None)
        inputs, outputs = words.shape[0] * each, words.shape[1]
        scales = layer.scales("scales", None, outputs)
        zeros = layer.get("qzeros", ("int32",), len(scales), -(-outputs // each))
        if layer.optional("g_idx") is None:
            group = _even_groups(inputs, size or max(inputs, 1))
        else:
            group = layer.get("g_idx", ("int32", "int64"), inputs)
        zero = unpacked(zeros.view(np.uint32) + less, bits)[:, :outputs]
        integers = unpacked(words.T, bits)
        return layer.blocks("g_idx" if "g_idx" in layer.used else "qweight", integers, scales.T, zero.T, group, bits)

    return ("qweight",), read


AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Which number of a word each of eight outputs is."""


def _awq(folder: ModelFolder, config: Mapping[str, Any]) -> _Reader:
    bits, size = _bits(folder, config, ("bits", "w_bit"), (4,)), _groups(folder, config)
    _one_of(folder, config, "version", ("gemm",))

    def read(layer: _Layer) -> BlockArray:
        words = layer.get("qweight", ("int32",), None, None)
        inputs, outputs = words.shape[0], words.shape[1] * 8
        group = _even_groups(inputs, size or max(inputs, 1))
        scales = layer.scales("scales", None, outputs)
        zeros = layer.get("qzeros", ("int32",), len(scales), words.shape[1])
        integers, zero = (_in_order(unpacked(each, bits)) for each in (words, zeros))
        return layer.blocks("qweight", integers.T, scales.T, zero.T, group, bits)

    return ("qweight",), read


def _in_order(numbers: Array) -> Array:
    words = numbers.reshape(numbers.shape[0], -1, 8)
    return words[:, :, list(AWQ_ORDER)].reshape(numbers.shape)


def _compressed(folder: ModelFolder, config: Mapping[str, Any]) -> _Reader:
    formats: list[Any] = [config.get("format")]
    groups = config.get("config_groups")
    if isinstance(groups, dict):
        schemes = cast("Mapping[str, Any]", groups).values()
        formats += [cast("Mapping[str, Any]", each).get("format") for each in schemes if isinstance(each, dict)]
    known = (None, "pack-quantized", "int-quantized", "mixed-precision")
    if unknown := [each for each in formats if each not in known]:
        raise folder.error(f"the format {unknown[0]!r} of compressed-tensors is not supported; known are {known[1:3]}")
    _require_none(folder, config, "kv_cache_scheme", "transform_config")
    sparsity = config.get("sparsity_config")
    if isinstance(sparsity, dict) and cast("Mapping[str, Any]", sparsity).get("format", "dense") != "dense":
        raise folder.error("sparse weights of compressed-tensors ('sparsity_config') are not supported")

    def read(layer: _Layer) -> BlockArray:
        return _int_quantized(layer) if layer.optional("weight_packed") is None else _pack_quantized(layer)

    return ("weight_packed", "weight"), read


def _pack_quantized(layer: _Layer) -> BlockArray:
    words = layer.get("weight_packed", ("int32",), None, None)
    shape = layer.get("weight_shape", ("int64", "int32"), 2).tolist()
    rows, inputs = words.shape[0], int(shape[1])
    bits = next((bits for bits in (4, 8) if words.shape[1] == -(-inputs * bits // 32)), None)
    if bits is None or shape[0] != rows or inputs <= 0:
        raise layer.error(
            "weight_packed", f"of {list(words.shape)} words has no weights of 4 or 8 bits of the shape {shape}"
        )
    scale = _row_scales(layer, rows)
    half, zero = 1 << (bits - 1), np.zeros_like(scale)
    if layer.optional("weight_zero_point") is not None:
        zeros = layer.get("weight_zero_point", ("int32",), -(-rows * bits // 32), scale.shape[1])
        zero = unpacked(zeros.T, bits).T[:rows].astype(np.float32) - half
    return _rows(layer, "weight_packed", unpacked(words, bits)[:, :inputs], scale, zero + half, bits)


def _int_quantized(layer: _Layer) -> BlockArray:
    numbers = layer.get("weight", ("int8",), None, None)
    scale = _row_scales(layer, len(numbers))
    zero = np.zeros_like(scale)
    if layer.optional("weight_zero_point") is not None:
        zero = _spread(layer, "weight_zero_point", ("int8",), len(numbers)).astype(np.float32)
    if zero.shape[1] not in (1, scale.shape[1]):
        raise layer.error("weight_zero_point", f"has {zero.shape[1]} groups, and the scales {scale.shape[1]}")
    zero = np.broadcast_to(zero, scale.shape)
    return _rows(layer, "weight", numbers.view(np.uint8) ^ 128, scale, zero + np.float32(128), 8)


def _row_scales(layer: _Layer, rows: int) -> Array:
    found = _spread(layer, "weight_scale", _SCALES, rows).astype(np.float32)
    if not np.isfinite(found).all():
        raise layer.error("weight_scale", "expected finite numbers")
    return found


def _spread(layer: _Layer, kind: str, dtypes: Sequence[str], rows: int) -> Array:
    """Parameters of each row and group; one for all may be a scalar or a vector of one."""
    found = layer.optional(kind)
    if found is not None and found.size == 1 and str(found.dtype) in dtypes:
        return np.broadcast_to(found.reshape(1, 1), (rows, 1))
    return layer.get(kind, dtypes, rows, None)


def _rows(layer: _Layer, kind: str, integers: Array, scale: Array, zero: Array, bits: int) -> BlockArray:
    inputs, groups = integers.shape[1], scale.shape[1]
    own = layer.optional("weight_g_idx")
    if own is not None:
        return layer.blocks(
            "weight_g_idx", integers, scale, zero, layer.get("weight_g_idx", ("int32", "int64"), inputs), bits
        )
    if not groups or inputs % groups:
        raise layer.error(kind, f"has rows of {inputs}, which are not {groups} groups")
    return layer.blocks(kind, integers, scale, zero, _even_groups(inputs, inputs // groups), bits)


_METHODS: Mapping[str, Callable[[ModelFolder, Mapping[str, Any]], _Reader]] = {
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed,
}
"""By `quant_method` of `quantization_config`."""
