"""Random nodes of old versions of ONNX's operators: those with rules of their own, for broadcasting and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.old_attributes import SIZES, Old


def broadcasting(g: Old) -> None:
    """Arithmetic that broadcasts along `axis` if `broadcast` says so, up to version 6."""
    version = g.version(1, 6, 7, 13)
    kind = g.pick(["Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal"])
    shape = g.shape(0, 4)
    start = int(g.rng.integers(0, len(shape) + 1))
    stop = int(g.rng.integers(start, len(shape) + 1))
    other = shape[start:stop]
    attributes: dict[str, Any] = {}
    if version < 7:
        is_last = stop == len(shape)
        other = [1 if g.chance(0.1) else each for each in other]
        attributes = {"broadcast": 1, "axis": None if is_last and g.chance(0.5) else start}
        if start == 0 and is_last and g.chance(0.5):
            attributes, other = {}, shape
    else:
        other = [1 if g.chance(0.3) else each for each in shape[start:]]
    if kind in ("And", "Or", "Xor"):
        x, y = (g.rng.random(each) < 0.5 for each in (shape, other))
    elif kind == "Equal":
        x, y = (g.values(*each, dtype=g.pick(["int32"])) for each in (shape, other))
    elif kind == "Pow":
        x, y = np.abs(g.values(*shape, dtype="float32")), g.values(*other, dtype="float32")
    else:
        dtype = "float32" if version < 7 else g.pick(["float32", "int32", "int64"])
        x, y = (g.values(*each, dtype=dtype) for each in (shape, other))
        if kind == "Div":
            y = np.where(y == 0, 1, y).astype(y.dtype)
    one, two = g.data(np.asarray(x)), g.data(np.asarray(y), constant=0.3)
    if version >= 7 and g.chance(0.5):
        one, two = two, one
    g.add(kind, [one, two], **attributes)


def products(g: Old) -> None:
    """`Gemm`, which broadcasts its summand if `broadcast` says so, up to version 6."""
    version = g.version(1, 6, 7, 9, 11, 13)
    m, n, k = g.picks(3, (0, 1, 2, 3, 5))
    turned_a, turned_b = g.chance(0.4), g.chance(0.4)
    dtype = "float32" if version < 11 else g.pick(["float32", "int32", "float64"])
    a = g.data(g.values(*((k, m) if turned_a else (m, k)), dtype=dtype))
    b = g.data(g.values(*((n, k) if turned_b else (k, n)), dtype=dtype), constant=0.5)
    shapes = [(m, n), (n,), (1, n), (m, 1), (1,), (1, 1), ()]
    attributes: dict[str, Any] = {"alpha": g.pick([None, 0.5]), "beta": g.pick([None, 2.0])}
    if dtype == "int32":
        attributes = {}
    shape = g.pick(shapes)
    if version < 7:
        attributes["broadcast"] = 1  # Without it the reference forgets beta.
    inputs = [a, b, g.data(g.values(*shape, dtype=dtype), constant=0.5)]
    if version >= 11 and g.chance(0.3):
        inputs.pop()
    g.add("Gemm", inputs, transA=int(turned_a) or None, transB=int(turned_b) or None, **attributes)


def batches(g: Old) -> None:
    """`BatchNormalization`, of each element with `spatial = 0` up to version 8; `InstanceNormalization`."""
    version = g.version(1, 6, 7, 9, 14, 15)
    shape = g.shape(2, 5, (1, 2, 3, 4))
    dtype = g.pick(["float32", "float32", "float64"])
    x = g.data(g.values(*shape, dtype=dtype))
    if g.chance(0.2):
        attributes = {"consumed_inputs": [0, 0, 0]} if version == 1 else {}
        parameters = [g.data(g.values(shape[1], dtype=dtype), constant=0.7) for _ in range(2)]
        g.add("InstanceNormalization", [x, *parameters], epsilon=g.pick([None, 1e-3]), **attributes)
        return
    spatial = g.pick((None, 1, 0)) if version < 9 else None
    of = shape[1:] if spatial == 0 else shape[1:2]
    parameters = [np.asarray(g.values(*of, dtype=dtype)) for _ in range(3)]
    parameters.append(np.abs(g.values(*of, dtype=dtype)) + np.asarray(0.5, dtype))
    attributes: dict[str, Any] = {"epsilon": g.pick([None, 1e-3]), "momentum": g.pick([None, 0.5]), "spatial": spatial}
    if version < 7:
        attributes["is_test"] = 1
    if version == 1:
        attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    if version >= 14:
        attributes["training_mode"] = g.pick((None, 0, 1))
    results = 3 if attributes.get("training_mode") else 1
    g.add("BatchNormalization", [x, *(g.data(each, constant=0.7) for each in parameters)], results, **attributes)


def flattening(g: Old) -> None:
    """Those that see matrices: `Softmax` and its kin up to version 12, `Flatten`."""
    version = g.version(1, 9, 11, 13)
    kind = g.pick(["Softmax", "LogSoftmax", "Hardmax", "Flatten"])
    shape = g.shape(1, 4, SIZES[1:] if kind != "Flatten" else SIZES)
    negative = version >= 11
    axis = g.axis(len(shape), negative=negative, end=int(kind == "Flatten"))
    axis = axis if len(shape) == 1 else g.pick([axis, axis, None])  # Otherwise 1 may be outside.
    g.add(kind, [g.data(g.values(*shape, dtype="float32"))], axis=axis)


def reshaping(g: Old) -> None:
    """`Reshape`, `Tile`, `Expand`, `Transpose`, `Concat`, whose axis had a default once."""
    kind = g.pick(["Reshape", "Tile", "Expand", "Transpose", "Concat"])
    shape = g.shape(0 if kind not in ("Tile", "Concat") else 1, 4)
    x = g.data(g.values(*shape))
    if kind == "Reshape":
        version = g.version(1, 5, 13, 14)
        sizes = [each for each in shape if each != 1]
        if g.chance(0.3):
            sizes = [int(np.prod(shape))]
        sizes.insert(int(g.rng.integers(0, len(sizes) + 1)), 1)
        if 0 not in shape and g.chance(0.5):
            sizes[int(g.rng.integers(0, len(sizes)))] = -1
        elif shape and sizes[: len(shape)] and sizes[0] == shape[0] and g.chance(0.5):
            sizes[0] = 0
        if version == 1:
            g.add("Reshape", [x], shape=sizes)
        else:
            zero = {"allowzero": 1} if version == 14 and 0 in shape and -1 not in sizes else {}
            g.add("Reshape", [x, g.given(sizes)], **zero)
    elif kind == "Tile":
        if g.version(1, 6, 13) == 1:
            axis = g.axis(len(shape), negative=False)
            dtype = g.feeds[x].dtype.name
            tiles = [g.data(np.array([each], dtype), constant=1) for each in (g.pick((1, 2, 3)), axis)]
            g.add("Tile", [x, *tiles])
        else:
            g.add("Tile", [x, g.given(g.picks(len(shape), (0, 1, 2, 3)))])
    elif kind == "Expand":
        g.version(8, 13)
        sizes = [each if each != 1 or g.chance(0.5) else g.pick((2, 3, 0)) for each in shape]
        sizes = [1 if g.chance(0.2) else each for each in sizes]
        front = g.picks(g.pick((0, 0, 1)), (1, 2))
        g.add("Expand", [x, g.given([*front, *sizes][0 if front or g.chance(0.7) else 1 :])])
    elif kind == "Transpose":
        g.version(1, 13)
        perm = [int(each) for each in g.rng.permutation(len(shape))]
        g.add("Transpose", [x], perm=perm if perm and g.chance(0.8) else None)
    else:
        version = g.version(1, 4, 11)
        axis = g.axis(len(shape), negative=version >= 11)
        if version == 1 and len(shape) > 1 and g.chance(0.5):
            axis = 1
        dtype = g.feeds[x].dtype.name
        parts = [x]
        for _ in range(g.pick((0, 1, 2))):
            sizes = list(shape)
            sizes[axis] = g.pick(SIZES)
            parts.append(g.data(g.values(*sizes, dtype=dtype), constant=0.3))
        g.add("Concat", parts, axis=None if version == 1 and axis == 1 else axis)


def gathering(g: Old) -> None:
    """Gathering and scattering, whose indices may be negative since version 11."""
    kind = g.pick(["Gather", "GatherElements", "ScatterElements", "Scatter", "GatherND", "ScatterND", "OneHot", "Arg"])
    version = 9 if kind == "Scatter" else g.pick((1 if kind in ("Gather", "Arg") else 11, 11, 12, 13))
    if kind == "OneHot":
        version = g.pick((9, 11))
    g.version(version)
    shape = g.shape(1, 3, (1, 2, 3, 4))
    axis = g.axis(len(shape), negative=version >= 11)
    size = shape[axis]
    kinds = ("int64", "int32")

    def indices(of: Sequence[int], size: int) -> str:
        low = -size if version >= 11 else 0
        return g.data(g.rng.integers(low, size, of).astype(g.pick(kinds)), constant=0.3)

    if kind == "Gather":
        x = g.data(g.values(*shape))
        g.add(kind, [x, indices(g.shape(0, 2), size)], axis=None if axis == 0 and g.chance(0.5) else axis)
    elif kind == "GatherElements":
        of = [each if at == axis % len(shape) else int(g.rng.integers(0, each + 1)) for at, each in enumerate(shape)]
        of[axis] = g.pick((0, 1, 2, 5))
        g.add(kind, [g.data(g.values(*shape)), indices(of, size)], axis=axis)
    elif kind in ("Scatter", "ScatterElements"):
        of = [int(g.rng.integers(0, each + 1)) for each in shape]
        places = np.argsort(g.rng.random(shape), axis)  # Different ones along the axis.
        where = places[tuple(slice(each) for each in of)]
        where = where - (size if version >= 11 and g.chance(0.3) else 0)
        x = g.values(*shape)
        updates = g.data(g.values(*of, dtype=x.dtype.name))
        g.add(kind, [g.data(x), g.data(where, constant=0.3), updates], axis=axis)
    elif kind in ("GatherND", "ScatterND"):
        depth = int(g.rng.integers(1, len(shape) + 1))
        front = g.shape(0, 2, (0, 1, 2, 3))
        count = int(np.prod(front))
        flat = g.rng.permutation(int(np.prod(shape[:depth])))
        if kind == "ScatterND" and count > len(flat):
            front = [len(flat)]
            count = len(flat)
        chosen = flat[np.arange(count) % len(flat)]
        where = np.stack(np.unravel_index(chosen, shape[:depth]), -1).reshape([*front, depth]).astype("int64")
        if g.chance(0.3):
            where = where - np.array(shape[:depth])
        x = g.values(*shape)
        inputs = [g.data(x), g.data(where, constant=0.3)]
        g.lists.add(inputs[1])
        if kind == "ScatterND":
            inputs.append(g.data(g.values(*front, *shape[depth:], dtype=x.dtype.name)))
        g.add(kind, inputs)
    elif kind == "OneHot":
        depth = g.pick((1, 3, 5))
        low = -depth if version >= 11 else 0
        where = g.rng.integers(low - 1, depth + 1, shape).astype(g.pick(["int64", "int32", "float32"]))
        g.add(
            kind,
            [
                g.data(where),
                g.given(g.pick([depth, [depth]]), g.pick(["int64", "float32"])),
                g.given([2, 5], "float32"),
            ],
            axis=g.pick([None, g.axis(len(shape) + 1)]),
        )
    else:
        last = {"select_last_index": g.pick((None, 0, 1))} if version >= 12 else {}
        x = g.data(np.round(g.values(*shape, dtype="float32")))
        g.add(g.pick(["ArgMax", "ArgMin"]), [x], axis=axis, keepdims=g.pick((None, 0, 1)), **last)


def windows(g: Old) -> None:
    """Pooling with the defaults of each version."""
    version = g.version(1, 7, 8, 10, 11, 12, 19)
    rank = g.pick((1, 2, 3))
    kind = g.pick(["MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])
    kernel = g.picks(rank, (1, 2, 3))
    shape = [g.pick((0, 1, 2)), g.pick((1, 3)), *(each + g.pick((0, 1, 2, 5)) for each in kernel)]
    x = g.data(g.values(*shape, dtype="float32"))
    if kind.startswith("Global"):
        p = {"p": g.pick([None, 1, 2, 3] if version > 1 else [None, 1.0, 2.0])} if kind == "GlobalLpPool" else {}
        g.add(kind, [x], **p)
        return
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": g.pick([None, g.picks(rank, (1, 2, 3))])}
    if g.chance(0.3):
        attributes["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    else:
        attributes["pads"] = g.pick([None, [int(g.rng.integers(0, each)) for each in (*kernel, *kernel)]])
    if version >= 10 and kind != "LpPool":
        attributes["ceil_mode"] = g.pick((None, 0, 1))
    if kind == "AveragePool" and version >= 7:
        attributes["count_include_pad"] = g.pick((None, 0, 1))
    if kind == "LpPool":
        attributes["p"] = g.pick([None, 1, 2, 3] if version > 1 else [None, 1.0, 2.0])
    if kind == "MaxPool" and version >= 10 and "auto_pad" not in attributes:
        attributes["dilations"] = g.pick([None, None, g.picks(rank, (1, 2))])
    results = 2 if kind == "MaxPool" and version >= 8 and g.chance(0.4) else 1
    g.add(kind, [x], results, **attributes)


def variadic(g: Old) -> None:
    """`Max`, `Min`, `Sum` and `Mean` of any number of operands, which have one shape up to version 7."""
    version = g.version(1, 6, 8, 13)
    kind = g.pick(["Max", "Min", "Sum", "Mean"])
    shape = g.shape(0, 3)
    dtype = "float32" if version < 12 or kind in ("Sum", "Mean") else g.pick(["float32", "int64", "int32"])
    names: list[str] = []
    for _ in range(g.pick((1, 2, 3, 4))):
        of = shape if version < 8 else [1 if g.chance(0.3) else each for each in shape][g.pick((0, 0, 1)) :]
        names.append(g.data(g.values(*of, dtype=dtype), constant=0.2))
    if not g.feeds:
        names[0] = g.data(g.values(*shape, dtype=dtype))
    g.add(kind, names, **({"consumed_inputs": [0] * len(names)} if version == 1 else {}))


def casting(g: Old) -> None:
    """`Cast`, whose dtype was a text in version 1, and functions of one operand with `consumed_inputs`."""
    version = g.version(1, 6, 9, 13)
    if g.chance(0.5):
        names = {"FLOAT": 1, "DOUBLE": 11, "INT32": 6, "INT64": 7, "UINT8": 2, "BOOL": 9, "FLOAT16": 10, "INT8": 3}
        to = g.pick(list(names))
        x = g.values(*g.shape(), dtype=g.pick(["float32", "int32", "int64", "uint8", "float64", "float16"]))
        g.add("Cast", [g.data(np.abs(x) if to == "UINT8" else x)], to=to if version == 1 else names[to])
        return
    kind = g.pick(
        ["Relu", "Abs", "Neg", "Exp", "Tanh", "Sigmoid", "Floor", "Ceil", "Elu", "LeakyRelu", "Selu", "HardSigmoid"]
    )
    attributes: dict[str, Any] = {"consumed_inputs": [0]} if version == 1 and g.chance(0.5) else {}
    if kind in ("Elu", "LeakyRelu", "Selu", "HardSigmoid"):
        attributes["alpha"] = g.pick([None, 0.5])
    if kind in ("Selu", "HardSigmoid"):
        attributes["gamma" if kind == "Selu" else "beta"] = g.pick([None, 0.25])
    g.add(kind, [g.data(g.values(*g.shape(), dtype="float32"))], **attributes)


def slopes(g: Old) -> None:
    """`PRelu`, whose slope is of channels up to version 6, and since then broadcasts from the right."""
    version = g.version(1, 6, 7, 9, 16)
    shape = g.shape(1, 4, SIZES[1:])
    if version < 7:
        slope = g.pick([[1], [shape[1] if len(shape) > 1 else 1]])
    else:
        slope = [1 if g.chance(0.3) else each for each in shape][int(g.rng.integers(0, len(shape))) :]
    g.add("PRelu", [g.data(g.values(*shape, dtype="float32")), g.data(g.values(*slope, dtype="float32"), constant=0.5)])


def moving(g: Old) -> None:
    """`DepthToSpace`, `SpaceToDepth`, `EyeLike`, `CumSum`, `Compress`, `ReverseSequence`, `Trilu`, `NonZero`."""
    kind = g.pick(
        ["DepthToSpace", "SpaceToDepth", "EyeLike", "CumSum", "Compress", "ReverseSequence", "Trilu", "NonZero"]
    )
    if kind in ("DepthToSpace", "SpaceToDepth"):
        version, block = g.version(1, 11, 13), g.pick((1, 2, 3))
        n, c, h, w = g.pick((0, 1, 2)), g.pick((1, 2)), *g.picks(2, (1, 2, 3))
        if kind == "DepthToSpace":
            mode = {"mode": g.pick([None, "DCR", "CRD"])} if version >= 11 else {}
            g.add(kind, [g.data(g.values(n, c * block * block, h, w, dtype="float32"))], blocksize=block, **mode)
        else:
            g.add(kind, [g.data(g.values(n, c, h * block, w * block, dtype="float32"))], blocksize=block)
    elif kind == "EyeLike":
        g.version(9)
        g.add(kind, [g.data(g.values(*g.shape(2, 2)))], k=g.pick((None, -2, -1, 0, 1, 3)), dtype=g.pick((None, 1, 7)))
    elif kind == "CumSum":
        g.version(11, 14)
        shape = g.shape(1, 3)
        x = g.data(g.values(*shape))
        axis = g.given(g.axis(len(shape)), g.pick(["int32", "int64"]))
        g.add(kind, [x, axis], exclusive=g.pick((None, 1)), reverse=g.pick((None, 1)))
    elif kind == "Compress":
        version = g.version(9, 11)
        shape = g.shape(1, 3)
        axis = g.pick([None, g.axis(len(shape), negative=version >= 11)])
        size = int(np.prod(shape)) if axis is None else shape[axis]
        condition = g.rng.random(int(g.rng.integers(0, size + 1))) < 0.5
        g.add(kind, [g.data(g.values(*shape)), g.data(condition, constant=0.3)], axis=axis)
    elif kind == "ReverseSequence":
        g.version(10)
        shape = g.shape(2, 4, (1, 2, 3, 4))
        batch = g.pick((0, 1))
        lengths = g.rng.integers(0, shape[1 - batch] + 1, shape[batch])
        g.add(kind, [g.data(g.values(*shape)), g.data(lengths, constant=0.3)], batch_axis=batch, time_axis=1 - batch)
    elif kind == "Trilu":
        g.version(14)
        inputs = [g.data(g.values(*g.shape(2, 4)))]
        if g.chance(0.6):
            inputs.append(g.given(g.pick((-7, -2, -1, 0, 1, 2, 9))))
        g.add(kind, inputs, upper=g.pick((None, 0, 1)))
    else:
        g.version(9, 13)
        g.add(kind, [g.data(np.round(g.values(*g.shape())))])


def scanning(g: Old) -> None:
    """`Scan` with the sequence lengths and batches of version 8, and with the axes of version 9."""
    version = g.version(8, 9, 11)
    length, width, batch = g.pick((0, 1, 2, 4, 12)), g.pick((1, 2, 3)), g.pick((1, 2, 10))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [width]) for name in ("state", "element")]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [width]) for name in ("sum", "twice")]
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "element"], ["sum"]), helper.make_node("Add", ["sum", "sum"], ["twice"])],
        "body",
        inputs,
        outputs,
    )
    attributes: dict[str, Any] = {"body": body, "num_scan_inputs": 1}
    if version == 8:
        length = max(1, length)  # ONNX Runtime leaves the states of no iterations unset.
        state, x = g.values(batch, width, dtype="float32"), g.values(batch, length, width, dtype="float32")
        lengths = [g.data(g.rng.integers(0, length + 1, batch))] if g.chance(0.4) else [""]
        attributes["directions"] = g.pick([None, [0], [1]])
        g.add("Scan", [*lengths, g.data(state), g.data(x)], 2, **attributes)
        g.outputs = [f"y{len(g.nodes) - 1}_{at}" for at in range(2)]
        return
    axis, out = g.pick((None, 0, 1)), g.pick((None, 0, 1))
    if version == 11:
        axis, out = (each if each is None or g.chance(0.5) else each - 2 for each in (axis, out))
    if axis in (1, -1):
        length = max(1, length)  # ONNX Runtime ends the process otherwise.
    shape = (width, length) if axis in (1, -1) else (length, width)
    attributes["scan_input_axes"] = None if axis is None else [axis]
    attributes["scan_output_axes"] = None if out is None else [out]
    attributes["scan_input_directions"] = g.pick([None, [0], [1]])
    attributes["scan_output_directions"] = g.pick([None, [0], [1]])
    g.add(
        "Scan", [g.data(g.values(width, dtype="float32")), g.data(g.values(*shape, dtype="float32"))], 2, **attributes
    )
