"""Maps: arithmetic, activations, changes of layout, gathers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

X = "%x: !relax.tensor<[m, n], f32>"


def _arrays(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def _rows(rng: np.random.Generator) -> Sequence[np.ndarray]:
    return [rng.standard_normal((8192, 256), np.float32), rng.integers(0, 8192, 4096)]


def _positive(rng: np.random.Generator) -> Sequence[np.ndarray]:
    return [np.abs(each) + np.float32(0.1) for each in _arrays((512, 1024), (512, 1024))(rng)]


def _choice(rng: np.random.Generator) -> Sequence[np.ndarray]:
    x, y = _arrays((512, 1024), (512, 1024))(rng)
    return [x > 0, x, y]


def _bytes(rng: np.random.Generator) -> Sequence[np.ndarray]:
    return [rng.integers(-128, 128, (512, 1024), np.int8)]


def _function(name: str, known_to_numpy: str | None, onnx: str | None, scale: float = 1.0) -> Case:
    """A function of one number, which PyTorch calls as we do."""
    return Case(
        f"{name}, 512 x 1024",
        X,
        f"relax.{name} %x",
        lambda rng: [np.float32(scale) * np.tanh(each) for each in _arrays((512, 1024))(rng)],
        None if known_to_numpy is None else getattr(np, known_to_numpy),
        lambda torch: getattr(torch, name),
        onnx,
    )


def _transpose(shape: tuple[int, ...], axes: tuple[int, ...]) -> Case:
    """A change of the order of axes; the last two are symbols."""
    dims = ", ".join([*map(str, shape[:-2]), "m", "n"])
    return Case(
        f"transpose, {' x '.join(map(str, shape))} by {', '.join(map(str, axes))}",
        f"%x: !relax.tensor<[{dims}], f32>",
        f"relax.permute_dims %x axes = [{', '.join(map(str, axes))}]",
        _arrays(shape),
        lambda x: np.ascontiguousarray(x.transpose(axes)),
        lambda torch: lambda x: x.permute(axes).contiguous(),
        "Transpose",
        {"perm": list(axes)},
    )


def _padding(kind: str, numpy: str, torch_mode: str, onnx: str) -> Case:
    """Elements of a image around it."""
    shape, widths = (1, 64, 56, 56), [(0, 0), (0, 0), (1, 1), (1, 1)]
    before_and_after = [width for pair in widths for width in pair]
    return Case(
        f"{kind} padding, 64 x 56 x 56 by 1",
        "%x: !relax.tensor<[1, 64, m, n], f32>",
        f'relax.nn.pad %x pad_width = {before_and_after} mode = "{torch_mode}"',
        _arrays(shape),
        lambda x: np.pad(x, widths, numpy),
        lambda torch: lambda x: torch.nn.functional.pad(x, [1] * 4, torch_mode),
        "Pad",
        {"mode": onnx, "pads": [low for low, _ in widths] + [high for _, high in widths]},
        opset=10,
    )


CASES = (
    *(
        Case(
            f"add, {rows} x {columns}",
            f"{X}, %y: !relax.tensor<[m, n], f32>",
            "relax.add %x, %y",
            _arrays((rows, columns), (rows, columns)),
            np.add,
            lambda torch: torch.add,
            "Add",
        )
        for rows, columns in ((16, 128), (128, 256), (512, 1024), (2048, 4096))
    ),
    Case(
        "add of a column, 777 x 513",
        f"{X}, %y: !relax.tensor<[m, 1], f32>",
        "relax.add %x, %y",
        _arrays((777, 513), (777, 1)),
        np.add,
        lambda torch: torch.add,
        "Add",
    ),
    Case(
        "outer product, 512 x 1024",
        "%x: !relax.tensor<[m, 1], f32>, %y: !relax.tensor<[n], f32>",
        "relax.multiply %x, %y",
        _arrays((512, 1), (1024,)),
        np.multiply,
        lambda torch: torch.mul,
        "Mul",
    ),
    Case(
        "add of a row, 777 x 513",
        f"{X}, %y: !relax.tensor<[n], f32>",
        "relax.add %x, %y",
        _arrays((777, 513), (513,)),
        np.add,
        lambda torch: torch.add,
        "Add",
    ),
    *(
        Case(
            f"gelu, {rows} x {columns}",
            X,
            "relax.nn.gelu %x",
            _arrays((rows, columns)),
            None,
            lambda torch: torch.nn.functional.gelu,
            "Gelu",
            opset=20,
        )
        for rows, columns in ((16, 128), (512, 1024), (777, 513))
    ),
    Case("silu, 512 x 1024", X, "relax.nn.silu %x", _arrays((512, 1024)), None, lambda torch: torch.nn.functional.silu),
    *(
        _function(*each)
        for each in (
            ("exp", "exp", "Exp"),
            ("tanh", "tanh", "Tanh"),
            ("sigmoid", None, "Sigmoid"),
            ("erf", None, "Erf"),
            ("sin", "sin", "Sin", 4.0),
            ("tan", "tan", "Tan"),
            ("asin", "arcsin", "Asin"),
            ("atan", "arctan", "Atan", 4.0),
            ("sinh", "sinh", "Sinh", 4.0),
            ("asinh", "arcsinh", "Asinh", 4.0),
        )
    ),
    Case(
        "log, 512 x 1024",
        X,
        "relax.log %x",
        lambda rng: _positive(rng)[:1],
        np.log,
        lambda torch: torch.log,
        "Log",
    ),
    Case(
        "power, 512 x 1024",
        f"{X}, %y: !relax.tensor<[m, n], f32>",
        "relax.power %x, %y",
        _positive,
        np.power,
        lambda torch: torch.pow,
        "Pow",
    ),
    Case(
        "where, 512 x 1024",
        f"%c: !relax.tensor<[m, n], i1>, {X}, %y: !relax.tensor<[m, n], f32>",
        "relax.where %c, %x, %y",
        _choice,
        np.where,
        lambda torch: torch.where,
        "Where",
    ),
    Case(
        "clip, 512 x 1024",
        X,
        "relax.clip %x min = -1.0 max = 1.0",
        _arrays((512, 1024)),
        lambda x: np.clip(x, -1, 1),
        lambda torch: lambda x: torch.clamp(x, -1, 1),
    ),
    Case(
        "i8 to f32, 512 x 1024",
        "%x: !relax.tensor<[m, n], i8>",
        "relax.astype %x dtype = f32",
        _bytes,
        lambda x: x.astype(np.float32),
        lambda torch: lambda x: x.float(),
        "Cast",
        {"to": 1},
    ),
    Case(
        "f32 to f16, 512 x 1024",
        X,
        "relax.astype %x dtype = f16",
        _arrays((512, 1024)),
        lambda x: x.astype(np.float16),
        lambda torch: lambda x: x.half(),
        "Cast",
        {"to": 10},
    ),
    *(
        _transpose(*each)
        for each in (
            ((1024, 768), (1, 0)),
            ((777, 513), (1, 0)),
            ((64, 48, 40), (2, 1, 0)),
            ((8, 64, 28, 28), (0, 2, 3, 1)),
            ((8, 112, 112, 3), (0, 3, 1, 2)),
            ((4, 12, 128, 64), (0, 1, 3, 2)),
        )
    ),
    Case(
        "heads to the front, 128 x 12 x 64",
        "%x: !relax.tensor<[m, 12, n], f32>",
        "relax.permute_dims %x axes = [1, 0, 2]",
        _arrays((128, 12, 64)),
        lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)),
        lambda torch: lambda x: x.permute(1, 0, 2).contiguous(),
        "Transpose",
        {"perm": [1, 0, 2]},
    ),
    *(
        _padding(*each)
        for each in (("edge", "edge", "replicate", "edge"), ("reflected", "reflect", "reflect", "reflect"))
    ),
    Case(
        "4096 of 8192 rows of 256",
        f"{X}, %y: !relax.tensor<[4096], i64>",
        "relax.take %x, %y axis = 0",
        _rows,
        lambda x, y: x[y],
        lambda torch: lambda x, y: x[y],
        "Gather",
    ),
    *(
        Case(
            f"{name}, joined",
            f"%x: !relax.tensor<[{left}], f32>, %y: !relax.tensor<[{right}], f32>",
            f"relax.concat %x, %y axis = {axis}",
            _arrays(*shapes),
            lambda x, y, axis=axis: np.concatenate([x, y], axis),
            lambda torch, axis=axis: lambda x, y: torch.cat([x, y], axis),
            "Concat",
            {"axis": axis},
        )
        for name, left, right, shapes, axis in (
            ("rows of 512 and 300", "m, n", "m, 300", ((512, 512), (512, 300)), 1),
            ("rows of 13 and 7", "m, n", "m, 7", ((4096, 13), (4096, 7)), 1),
            ("256 and 256 rows", "m, n", "256, n", ((256, 1024), (256, 1024)), 0),
        )
    ),
)


def table(threads: int) -> None:
    """Prints the figures."""
    run("elementwise", "Maps", CASES, threads)


def main() -> None:
    """On 1 and 2 threads."""
    in_processes("elementwise")
