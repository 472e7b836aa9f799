"""Random nodes of old versions of ONNX's operators: those of which an input was an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.fuzz.onnx_nodes import Nodes

Array = np.ndarray[Any, Any]

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6)


class Old(Nodes):
    """A graph of one node of an old version."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.opset = 0
        self.is_symbolic = self.chance(0.5)
        self.lists: set[str] = set()
        """Inputs whose length the rank of the result may depend on."""

    def version(self, *choices: int) -> int:
        """Chooses the version of the operator set."""
        self.opset = int(self.pick(choices))
        return self.opset

    def shape(self, least: int = 0, most: int = 4, sizes: Sequence[int] = SIZES) -> list[int]:
        """A shape of a rank between two."""
        return self.picks(int(self.rng.integers(least, most + 1)), sizes)

    def values(self, *shape: int, dtype: str | None = None) -> Array:
        """Floats with signs, or small integers."""
        kind = dtype or self.pick(["float32"] * 5 + ["float64", "int32", "int64"])
        drawn = self.rng.standard_normal(shape) * 3
        return np.asarray(drawn).astype(kind)

    def axis(self, rank: int, *, negative: bool = True, end: int = 0) -> int:
        """An axis of a tensor, perhaps from the end; up to the rank itself with `end=1`."""
        axis = int(self.rng.integers(0, max(1, rank + end)))
        return axis - rank if negative and axis < rank and self.chance(0.4) else axis

    def axes(self, rank: int, *, negative: bool = True) -> list[int]:
        """Some axes in any order."""
        count = int(self.rng.integers(0 if self.chance(0.1) else 1, rank + 1)) if rank else 0
        chosen = [int(each) for each in self.rng.permutation(rank)[:count]]
        return [each - rank if negative and self.chance(0.3) else each for each in chosen]

    def given(self, values: Any, dtype: str = "int64") -> str:
        """Mostly a constant, else an input, whose length is known."""
        name = self.data(np.array(values, dtype), constant=0.7)
        self.lists.add(name)
        return name

    def model(self) -> ModelProto:
        """The model; in half of them dimensions have names."""
        inputs = [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                [
                    f"{name}_{at}" if self.is_symbolic and name not in self.lists else size
                    for at, size in enumerate(array.shape)
                ],
            )
            for name, array in self.feeds.items()
        ]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        if self.opset < 9:
            inputs += [helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)) for each in constants]
        outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, initializer=constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


# Attributes that are inputs today


def squeeze(g: Old) -> None:
    """`Squeeze` and `Unsqueeze`, of which axes are attributes up to version 12."""
    version, kind = g.version(1, 11, 13), g.pick(["Squeeze", "Unsqueeze"])
    shape = g.shape(0, 4, (0, 1, 1, 1, 2, 3))
    rank = len(shape)
    if kind == "Squeeze":
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        axes: list[int] | None = [int(each) for each in g.rng.permutation(ones)[: g.pick((1, 2, 3))]]
        if g.chance(0.2) or not axes:
            axes, g.is_symbolic = None, False
    else:
        count = g.pick((1, 1, 2, 3))
        rank += count
        axes = [int(each) for each in g.rng.permutation(rank)[:count]]
    if axes is not None and version >= 11:
        axes = [each - rank if g.chance(0.3) else each for each in axes]
    x = g.data(g.values(*shape))
    if version < 13:
        g.add(kind, [x], axes=axes)
    else:
        g.add(kind, [x] if axes is None else [x, g.fixed(axes)])


def reduction(g: Old) -> None:
    """Of which axes are attributes, for sums up to version 12, for the others up to 17."""
    version = g.version(1, 11, 13, 18)
    kind = g.pick(["Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"])
    shape = g.shape(0, 4, SIZES if kind not in ("Max", "Min", "Mean") else SIZES[1:])
    values = g.values(*shape, dtype=g.pick(["float32", "float32", "float64", "int32", "int64"]))
    values = np.abs(values) if kind.startswith("Log") or kind == "L2" else values
    values = values.astype("float32") if kind in ("Mean", "L2", "LogSum", "LogSumExp") else values
    x, axes = g.data(values), g.axes(len(shape), negative=version >= 11) if g.chance(0.8) else None
    attributes: dict[str, Any] = {"keepdims": g.pick((None, 0, 1))}
    if version < 13 or (version < 18 and kind != "Sum"):
        g.add(f"Reduce{kind}", [x], axes=axes or None, **attributes)
        return
    attributes["noop_with_empty_axes"] = g.pick((None, None, 1))
    g.add(f"Reduce{kind}", [x] if axes is None else [x, g.given(axes)], **attributes)


def slicing(g: Old) -> None:
    """With starts and ends far outside; steps since version 10."""
    version = g.version(1, 10, 11, 13)
    shape = g.shape(1, 4)
    axes = g.axes(len(shape), negative=version >= 10) or [0]
    far = (-(2**63), -100, 100, 2**63 - 1, 2**31 - 1)
    starts, ends = ([int(g.pick((*range(-7, 8), *far))) for _ in axes] for _ in range(2))
    is_said = g.chance(0.8)
    if not is_said:
        axes = list(range(len(axes)))
    x = g.data(g.values(*shape))
    if version < 10:
        g.add("Slice", [x], starts=starts, ends=ends, axes=axes if is_said else None)
        return
    steps = [int(g.pick((-3, -2, -1, 1, 2, 3, *far[2:4]))) for _ in axes]
    dtype = g.pick(["int64", "int64", "int32"])
    if dtype == "int32":
        starts, ends, steps = (np.clip(each, -(2**31), 2**31 - 1).tolist() for each in (starts, ends, steps))
    inputs = [x, g.given(starts, dtype), g.given(ends, dtype), g.given(axes, dtype) if is_said else ""]
    if g.chance(0.6):
        inputs.append(g.given(steps, dtype))
    while not inputs[-1]:
        inputs.pop()
    g.add("Slice", inputs)


def padding(g: Old) -> None:
    """`paddings` in version 1, `pads` in 2, an input since 11."""
    version = g.version(1, 2, 11, 13, 18, 19)
    shape = g.shape(1, 4, (1, 2, 3, 4, 5, 0))
    mode = g.pick([None, "constant", "constant", "reflect", "edge"] + ["wrap"] * (version >= 19))
    least = -1 if g.chance(0.3) else 0
    pads = [int(g.rng.integers(least, 4)) for _ in range(2 * len(shape))]
    if mode in ("reflect", "edge", "wrap"):
        pads = [min(pad, max(shape[at % len(shape)] - 1, 0)) for at, pad in enumerate(pads)]
    dtype = "float32" if version < 11 else g.pick(["float32", "int32", "int64", "float64"])
    x = g.data(g.values(*shape, dtype=dtype))
    value = g.pick([None, 1.5, -2.0])
    if version == 1:
        g.add("Pad", [x], paddings=pads, mode=mode, value=value)
    elif version == 2:
        g.add("Pad", [x], pads=pads, mode=mode, value=value)
    else:
        inputs = [x, g.given(pads), "" if value is None else g.given(value, dtype)]
        if version >= 18 and g.chance(0.5):
            axes = g.axes(len(shape)) or [0]
            inputs[1] = g.given([pads[each % len(shape) + half] for half in (0, len(shape)) for each in axes])
            inputs.append(g.given(axes))
        while not inputs[-1]:
            inputs.pop()
        g.add("Pad", inputs, mode=mode)


def clipping(g: Old) -> None:
    """Limits are attributes up to version 10."""
    version = g.version(1, 6, 11, 12, 13)
    dtype = "float32" if version < 12 else g.pick(["float32", "int32", "int64", "uint8", "float64"])
    x = g.data(g.values(*g.shape(), dtype=dtype))
    low, high = g.pick([None, -1.0, 0.0, 3.0]), g.pick([None, 1.0, 2.0])
    if dtype == "uint8" and low is not None:
        low = abs(low)
    if version < 11:
        g.add("Clip", [x], min=low, max=high)
        return
    inputs = [x, *("" if each is None else g.given(each, dtype) for each in (low, high))]
    while not inputs[-1]:
        inputs.pop()
    g.add("Clip", inputs)


def dropping(g: Old) -> None:
    """Inference of `Dropout`, with its mask, which was of floats once."""
    version = g.version(1, 6, 7, 10, 12, 13)
    x = g.data(g.values(*g.shape(), dtype=g.pick(["float32", "float64"])))
    results = g.pick((1, 2)) if version >= 10 else 1  # What the mask was before is not said.
    if version < 12:
        test = {"is_test": 1} if version < 7 else {}
        g.add("Dropout", [x], results, ratio=g.pick([None, 0.3]), **test)
    else:
        inputs = [x, g.given(0.3, "float32")] if g.chance(0.5) else [x]
        if len(inputs) == 2 and g.chance(0.5):
            inputs.append(g.given(False, "bool"))
        g.add("Dropout", inputs, results)


def top(g: Old) -> None:
    """`k` is an attribute in version 1; smallest ones since 11."""
    version = g.version(1, 10, 11)
    shape = g.shape(1, 3)
    axis = g.axis(len(shape), negative=version >= 11 or g.chance(0.2))
    k = int(g.rng.integers(0 if g.chance(0.1) else min(1, shape[axis]), shape[axis] + 1))
    count = int(np.prod(shape))
    values = g.rng.permutation(count).reshape(shape).astype("float32" if version < 11 else g.pick(["float32", "int64"]))
    x, attributes = g.data(values), {"axis": g.pick([None, axis]) if axis in (-1, len(shape) - 1) else axis}
    if version == 1:
        g.add("TopK", [x], 2, k=k, **attributes)
    elif version == 10:
        g.add("TopK", [x, g.given([k])], 2, **attributes)
    else:
        # An order is not promised without `sorted`.
        g.add("TopK", [x, g.given([k])], 2, largest=g.pick((None, 0, 1)), sorted=g.pick((None, 1)), **attributes)


def splitting(g: Old) -> None:
    """`split` is an input in version 1, an attribute in 2, and an input since 13, as the number of outputs in 18."""
    version = g.version(1, 2, 11, 13, 18)
    shape = g.shape(1, 3)
    axis = g.axis(len(shape), negative=version >= 11)
    parts = g.pick((1, 2, 3))
    cuts = sorted(int(g.rng.integers(0, shape[axis] + 1)) for _ in range(parts - 1))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, shape[axis]], strict=True)]
    is_said = g.chance(0.6)
    if not is_said and version < 18:
        shape[axis] = parts * g.pick((0, 1, 2, 3))
    elif not is_said and shape[axis] < (parts - 1) * -(-shape[axis] // parts):
        shape[axis] = parts  # Otherwise a part would be less than empty.
    x, attributes = g.data(g.values(*shape)), {"axis": axis}
    if version in (2, 11):
        g.add("Split", [x], parts, split=sizes if is_said else None, **attributes)
        return
    if version == 18 and not is_said:
        attributes["num_outputs"] = parts
    if version == 1:
        lengths = [g.data(np.array(sizes, g.feeds[x].dtype), constant=1)] if is_said else []
        g.add("Split", [x, *lengths], parts, **attributes)
    else:
        g.add("Split", [x, g.given(sizes)] if is_said else [x], parts, **attributes)


def scaling(g: Old) -> None:
    """`Upsample`, by attributes up to version 8, and `Resize` of version 10 and later."""
    version = g.version(1, 7, 9, 10, 11, 13, 18, 19)
    mode = g.pick([None, "nearest", "linear"])
    rank = 4 if version == 1 or (mode == "linear" and version < 18) else g.pick((1, 2, 3, 4))
    spatial = 2 if rank == 4 else rank
    shape = [*([g.pick((1, 2))] * (rank - spatial)), *g.picks(spatial, (1, 2, 3, 4, 5))]
    scales = [*([1.0] * (rank - spatial)), *(float(g.pick((1, 1.5, 2, 2.6, 3))) for _ in range(spatial))]
    x = g.data(g.values(*shape, dtype="float32" if g.chance(0.8) or version < 7 or mode == "linear" else "int32"))
    if version == 1:
        height, width = (float(int(each)) for each in scales[2:])  # The converter rounds others otherwise.
        old_mode = "bilinear" if mode == "linear" else mode
        g.add("Upsample", [x], height_scale=height, width_scale=width, mode=old_mode)
    elif version == 7:
        g.add("Upsample", [x], scales=scales, mode=mode)
    elif version == 9:
        g.add("Upsample", [x, g.given(scales, "float32")], mode=mode)
    elif version == 10:
        if g.chance(0.5):
            scales = [each if each == 1 else 1 / each for each in scales]
        g.add("Resize", [x, g.given(scales, "float32")], mode=mode)
    else:
        attributes: dict[str, Any] = {"mode": mode}
        coordinates = [None, "half_pixel", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"]
        is_old = version == 11 and mode != "linear"
        attributes["coordinate_transformation_mode"] = g.pick(coordinates[: 5 if is_old else 4])
        if mode != "linear":
            attributes["nearest_mode"] = g.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
        roi = g.fixed([], "float32") if version == 11 else ""
        if g.chance(0.5):
            g.add("Resize", [x, roi, g.given(scales, "float32")], **attributes)
        else:
            sizes = [int(np.ceil(a * b)) for a, b in zip(shape, scales, strict=True)]
            empty = g.fixed([], "float32") if version == 11 else ""
            if version >= 18 and g.chance(0.5):
                attributes["axes"] = list(range(rank - spatial, rank))
                sizes = sizes[rank - spatial :]
                attributes["keep_aspect_ratio_policy"] = g.pick([None, "not_larger", "not_smaller", "stretch"])
            g.add("Resize", [x, roi, empty, g.given(sizes)], **attributes)
