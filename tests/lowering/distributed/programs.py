"""Random programs with random annotations of how workers share their tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

SYMBOLS = ("n", "m")
MESHES = ({"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}, {"x": 6}, {"x": 2, "y": 2}, {"x": 2, "y": 3}, {"x": 1, "y": 4})
DIMS = ("n", "m", "4", "6", "5")

Shape = tuple[str, ...]


@dataclass
class Program:
    """A function as text, and its parameters."""

    mesh: dict[str, int]
    draw: Callable[[st.SearchStrategy[object]], object]
    params: list[Shape] = field(default_factory=list[Shape])
    values: list[tuple[str, Shape]] = field(default_factory=list["tuple[str, Shape]"])
    lines: list[str] = field(default_factory=list[str])

    def pick(self, options: object) -> object:
        return self.draw(st.sampled_from(list(options)))

    def placement(self, rank: int) -> list[str]:
        """A random placement for each axis, no dimension twice."""
        free = list(range(rank))
        found: list[str] = []
        for _ in self.mesh:
            dim = self.draw(st.sampled_from([None, *free]))
            found.append("R" if dim is None else f"S[{dim}]")
            free = [each for each in free if each != dim]
        return found

    def emit(self, text: str, shape: Shape) -> None:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, shape))

    def annotate(self, name: str, shape: Shape) -> None:
        """Annotates a value, or moves it."""
        op = self.pick(("annotate_sharding", "redistribute"))
        text = ", ".join(self.placement(len(shape)))
        mesh = ", ".join(map(str, self.mesh.values()))
        self.emit(f'relax.dist.{op} {name} mesh = [{mesh}] placement = "{text}" axes = "{", ".join(self.mesh)}"', shape)

    def step(self) -> None:
        """One more op on a value that is there."""
        name, shape = self.pick(self.values)
        kind = self.pick(_STEPS)
        _STEPS[str(kind)](self, name, shape)

    @property
    def text(self) -> str:
        def info(shape: Shape, placements: list[str] | None) -> str:
            axes = "" if placements is None else ", sharding<" + ", ".join(
                f"{axis} = {size}: {place}" for (axis, size), place in zip(self.mesh.items(), placements, strict=True)
            ) + ">"  # fmt: skip
            return f"!relax.tensor<[{', '.join(shape)}], f32{axes}>"

        chosen = [at == 0 or self.draw(st.booleans()) for at in range(len(self.params))]
        shardings = [self.placement(len(shape)) if on else None for on, shape in zip(chosen, self.params, strict=True)]
        params = ", ".join(f"%p{at}: {info(*pair)}" for at, pair in enumerate(zip(self.params, shardings, strict=True)))
        results = ", ".join(name for name, _ in self.values[-2:])
        body = "\n  ".join([*self.lines, f"%r = relax.tuple({results})", "relax.return %r"])
        return f"relax.func @main[%n, %m](%s: !relax.shape<[n, m]>, {params}) -> !relax.object {{\n  {body}\n}}"


def _unary(program: Program, name: str, shape: Shape) -> None:
    op = program.pick(("relax.exp", "relax.nn.relu", "relax.negative", "relax.tanh"))
    program.emit(f"{op} {name}" if op != "relax.exp" else f"relax.sigmoid {name}", shape)


def _binary(program: Program, name: str, shape: Shape) -> None:
    others = [each for each, other in program.values if other == shape or other == shape[1:]]
    other = program.pick(others)
    program.emit(f"{program.pick(('relax.add', 'relax.subtract', 'relax.maximum'))} {name}, {other}", shape)


def _matmul(program: Program, name: str, shape: Shape) -> None:
    fitting = [(e, s) for e, s in program.values if len(s) == 2 and shape and s[0] == shape[-1] and len(shape) >= 2]
    if not fitting:
        program.params.append((shape[-1], str(program.pick(DIMS)))) if len(shape) >= 2 else None
        if len(shape) < 2:
            return
        program.values.insert(0, (f"%p{len(program.params) - 1}", program.params[-1]))
        fitting = [program.values[0]]
    other, second = program.pick(fitting)
    product = f"relax.matmul {name}, {other}"
    program.emit(product, (*shape[:-1], second[1]))
    # What is large is scaled, so that errors of sums stay small.
    program.emit(f"relax.tanh {program.values[-1][0]}", program.values[-1][1])


def _reduce(program: Program, name: str, shape: Shape) -> None:
    if not shape:
        return
    axis = program.draw(st.integers(0, len(shape) - 1))
    op, keep = program.pick(("sum", "max", "min", "mean")), program.draw(st.booleans())
    kept = tuple("1" if at == axis else dim for at, dim in enumerate(shape) if keep or at != axis)
    program.emit(f"relax.{op} {name} axes = [{axis}]{' keepdims' if keep else ''}", kept)


def _softmax(program: Program, name: str, shape: Shape) -> None:
    if shape:
        program.emit(f"relax.nn.softmax {name} axis = {program.draw(st.integers(0, len(shape) - 1))}", shape)


def _permute(program: Program, name: str, shape: Shape) -> None:
    axes = program.draw(st.permutations(range(len(shape))))
    program.emit(f"relax.permute_dims {name} axes = {list(axes)}", tuple(shape[axis] for axis in axes))


def _expand(program: Program, name: str, shape: Shape) -> None:
    if len(shape) < 4:
        axis = int(program.draw(st.integers(0, len(shape))))
        program.emit(f"relax.expand_dims {name} axes = [{axis}]", (*shape[:axis], "1", *shape[axis:]))


def _split_dim(program: Program, name: str, shape: Shape) -> None:
    """A reshape that takes a dimension apart, or makes two one."""
    at = next((at for at, dim in enumerate(shape) if dim in ("4", "6")), None)
    if at is not None and len(shape) < 4:
        parts = {"4": ("2", "2"), "6": ("2", "3")}[shape[at]]
        new = (*shape[:at], *parts, *shape[at + 1 :])
    elif len(shape) >= 2:
        new = (f"{shape[0]} * {shape[1]}" if "*" not in shape[0] + shape[1] else "", *shape[2:])
        if not new[0]:
            return
    else:
        return
    program.lines.append(f"%s{len(program.lines)} = relax.shape [{', '.join(new)}]")
    shape_name = program.lines[-1].split(" ")[0]
    program.emit(f"relax.reshape {name}, {shape_name}", new)


def _concat(program: Program, name: str, shape: Shape) -> None:
    if shape and shape[0] in SYMBOLS:
        program.emit(f"relax.concat {name}, {name} axis = 0", (f"2 * {shape[0]}", *shape[1:]))


def _slice(program: Program, name: str, shape: Shape) -> None:
    for at, dim in enumerate(shape):
        if dim in ("4", "5", "6"):
            text = f"relax.strided_slice {name} axes = [{at}] begin = [1] end = [{dim}] strides = [2]"
            program.emit(text, (*shape[:at], str((int(dim)) // 2), *shape[at + 1 :]))
            return


def _norm(program: Program, name: str, shape: Shape) -> None:
    if shape and "*" not in shape[-1]:
        program.params.append((shape[-1],))
        weight = f"%p{len(program.params) - 1}"
        program.emit(f"relax.nn.rms_norm {name}, {weight} axes = [-1]", shape)


_STEPS: dict[str, Callable[[Program, str, Shape], None]] = {
    "annotate": Program.annotate,
    "unary": _unary,
    "binary": _binary,
    "matmul": _matmul,
    "reduce": _reduce,
    "softmax": _softmax,
    "permute": _permute,
    "expand": _expand,
    "reshape": _split_dim,
    "concat": _concat,
    "slice": _slice,
    "norm": _norm,
}


@st.composite
def programs(draw: Callable[[st.SearchStrategy[object]], object]) -> tuple[str, list[object]]:
    """The text of a program, and arguments for it."""
    mesh = draw(st.sampled_from(MESHES))
    program = Program(dict(mesh), draw)
    for at in range(2):
        shape = tuple(str(program.pick(DIMS)) for _ in range(int(draw(st.integers(1, 3)))))
        program.params.append(shape)
        program.values.append((f"%p{at}", shape))
    for _ in range(int(draw(st.integers(1, 7)))):
        program.step()
    text = program.text
    sizes = {name: int(draw(st.integers(1, 7))) for name in SYMBOLS}
    rng = np.random.default_rng(0)
    arrays = [
        (rng.integers(-4, 5, [int(eval(dim, {}, sizes)) for dim in shape]) / 4).astype(np.float32)
        for shape in program.params
    ]
    import tvm_ffi

    return text, [tvm_ffi.Shape([sizes[name] for name in SYMBOLS]), *arrays]
