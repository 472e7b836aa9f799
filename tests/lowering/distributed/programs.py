"""Random programs with random annotations of how workers share their tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from tests.lowering.distributed.layers import rearranged, recurrent, sampled

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
    functions: list[str] = field(default_factory=list[str])
    """Private functions that are called."""
    count: int = 0

    def pick(self, options: object) -> object:
        return self.draw(st.sampled_from(list(options)))

    def placement(self, shape: Shape) -> list[str]:
        """A random placement for each axis, no dimension twice; even dimensions perhaps by pairs."""
        free = list(range(len(shape)))
        found: list[str] = []
        for _ in self.mesh:
            dim = self.draw(st.sampled_from([None, *free]))
            pairs = dim is not None and (shape[dim] in ("4", "6") or shape[dim].startswith("2 *"))
            unit = ":2" if pairs and self.draw(st.booleans()) else ""
            found.append("R" if dim is None else f"S[{dim}{unit}]")
            free = [each for each in free if each != dim]
        return found

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, shape: Shape) -> None:
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        self.values.append((name, shape))

    def inside(self, values: list[tuple[str, Shape]], shape: Shape, steps: int) -> tuple[list[str], str]:
        """The lines of a region that uses values from outside, too, and a value of a shape that it ends with."""
        outer_lines, outer_values = self.lines, list(self.values)
        self.lines, self.values = [], [*self.values, *values]
        for _ in range(steps):
            self.step(without=("branch", "loop", "call") if self.depth > 1 else ())
        name = self.pick([name for name, other in self.values if other == shape])
        if name not in (name for name, _ in values):
            self.emit(f"relax.tanh {name}", shape)
            name = self.values[-1][0]
        lines, self.lines = self.lines, outer_lines
        self.values = [*[each for each in self.values if each[0].startswith("%p") and each not in outer_values],
                       *outer_values]  # fmt: skip
        return lines, str(name)

    def annotate(self, name: str, shape: Shape) -> None:
        """Annotates a value, or moves it."""
        op = self.pick(("annotate_sharding", "redistribute"))
        text = ", ".join(self.placement(shape))
        mesh = ", ".join(map(str, self.mesh.values()))
        self.emit(f'relax.dist.{op} {name} mesh = [{mesh}] placement = "{text}" axes = "{", ".join(self.mesh)}"', shape)

    depth: int = 0

    def step(self, without: tuple[str, ...] = ()) -> None:
        """One more op on a value that is there."""
        name, shape = self.pick(self.values)
        kind = self.pick([each for each in _STEPS if each not in without])
        _STEPS[str(kind)](self, name, shape)

    @property
    def text(self) -> str:
        def info(shape: Shape, placements: list[str] | None) -> str:
            axes = "" if placements is None else ", sharding<" + ", ".join(
                f"{axis} = {size}: {place}" for (axis, size), place in zip(self.mesh.items(), placements, strict=True)
            ) + ">"  # fmt: skip
            return f"!relax.tensor<[{', '.join(shape)}], f32{axes}>"

        chosen = [at == 0 or self.draw(st.booleans()) for at in range(len(self.params))]
        shardings = [self.placement(shape) if on else None for on, shape in zip(chosen, self.params, strict=True)]
        params = ", ".join(f"%p{at}: {info(*pair)}" for at, pair in enumerate(zip(self.params, shardings, strict=True)))
        results = ", ".join(name for name, _ in self.values[-2:])
        body = "\n  ".join([*self.lines, f"%r = relax.tuple({results})", "relax.return %r"])
        head = f"relax.func @main[%n, %m](%s: !relax.shape<[n, m]>, %go: !relax.tensor<[], i1>, {params})"
        return "\n".join([f"{head} -> !relax.object {{\n  {body}\n}}", *self.functions])

    def type(self, shape: Shape) -> str:
        return f"!relax.tensor<[{', '.join(shape)}], f32>"


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


def _position(program: Program, name: str, shape: Shape) -> None:
    """Where the first of the greatest or least elements is: numbers are few, so many are equal."""
    if not shape:
        return
    axis, keep = program.draw(st.integers(0, len(shape) - 1)), program.draw(st.booleans())
    kept = tuple("1" if at == axis else dim for at, dim in enumerate(shape) if keep or at != axis)
    op, flag = program.pick(("argmax", "argmin")), " keepdims" if keep else ""
    rounded, found = program.fresh(), program.fresh()
    program.lines += [
        f"{rounded} = relax.round {name}",
        f"{found} = relax.{op} {rounded} axis = {axis}{flag}",
    ]
    program.emit(f"relax.astype {found} dtype = f32", kept)
    program.emit(f"relax.tanh {program.values[-1][0]}", kept)


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
    shape_name = program.fresh()
    program.lines.append(f"{shape_name} = relax.shape [{', '.join(new)}]")
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


def _along_axis(program: Program, name: str, shape: Shape) -> None:
    """Operators with an axis that workers cannot share, or can, at the price of an exchange."""
    if not shape:
        return
    axis = program.draw(st.integers(0, len(shape) - 1))
    op = program.pick(("relax.sort", "relax.cumsum", "relax.flip", "relax.nn.log_softmax"))
    program.emit(f"{op} {name} axis = {axis}", shape)
    program.emit(f"relax.tanh {program.values[-1][0]}", shape)


def _take(program: Program, name: str, shape: Shape) -> None:
    """Rows at positions that are computed, some of them negative or behind the end."""
    if not shape:
        return
    axis = int(program.draw(st.integers(0, len(shape) - 1)))
    count, start, indices = str(program.pick(("n", "3"))), program.fresh(), program.fresh()
    program.lines += [
        f"{start} = relax.shape [{count}]",
        f"{indices}_ = relax.ones {start} dtype = i64",
        f"{indices} = relax.cumsum {indices}_ axis = 0",
    ]
    mode = program.pick(("clip", "wrap"))
    text = f'relax.take {name}, {indices} axis = {axis} mode = "{mode}"'
    program.emit(text, (*shape[:axis], count, *shape[axis + 1 :]))


def _pad(program: Program, name: str, shape: Shape) -> None:
    at = next((at for at, dim in enumerate(shape) if dim in ("4", "5")), None)
    if at is not None:
        widths = ", ".join("1, 0" if each == at else "0, 0" for each in range(len(shape)))
        wider = (*shape[:at], str(int(shape[at]) + 1), *shape[at + 1 :])
        program.emit(f"relax.nn.pad {name} pad_width = [{widths}]", wider)


def _stack(program: Program, name: str, shape: Shape) -> None:
    if len(shape) < 3:
        axis = int(program.draw(st.integers(0, len(shape))))
        program.emit(f"relax.stack {name}, {name} axis = {axis}", (*shape[:axis], "2", *shape[axis:]))


def _tile(program: Program, name: str, shape: Shape) -> None:
    if shape and shape[-1] in SYMBOLS:
        repeats = ", ".join(["1"] * (len(shape) - 1) + ["2"])
        program.emit(f"relax.tile {name} repeats = [{repeats}]", (*shape[:-1], f"2 * {shape[-1]}"))


def _where(program: Program, name: str, shape: Shape) -> None:
    """Elementwise operators of several dtypes."""
    less, half = program.fresh(), program.fresh()
    program.lines += [f"{less} = relax.less {name}, {name}", f"{half} = relax.negative {name}"]
    program.emit(f"relax.where {less}, {name}, {half}", shape)


def _einsum(program: Program, name: str, shape: Shape) -> None:
    if len(shape) == 2:
        subscripts = program.pick(("ab,ab->a", "ab,ab->b", "ab,ab->ab", "ab,ab->ba"))
        result = {"a": shape[:1], "b": shape[1:], "ab": shape, "ba": shape[::-1]}[str(subscripts).partition("->")[2]]
        program.emit(f'relax.einsum {name}, {name} subscripts = "{subscripts}"', result)
        program.emit(f"relax.tanh {program.values[-1][0]}", result)


def _image(program: Program, name: str, shape: Shape) -> None:
    """Pooling and convolution of images of one channel, and their normalisation."""
    if len(shape) == 2 and set(shape) <= {"4", "5", "6"}:
        program.emit(f"relax.expand_dims {name} axes = [0, 1]", ("1", "1", *shape))
        name, sizes = program.values[-1][0], tuple(str(int(dim) - 1) for dim in shape)
        program.params.append(("4", "1", "2", "2"))
        program.emit(f"relax.nn.conv2d {name}, %p{len(program.params) - 1}", ("1", "4", *sizes))
        smaller = tuple(str(int(dim) - 1) for dim in sizes)
        op = program.pick(("max_pool2d", "avg_pool2d"))
        program.emit(f"relax.nn.{op} {program.values[-1][0]} pool_size = [2, 2]", ("1", "4", *smaller))
        program.emit(f"relax.tanh {program.values[-1][0]}", ("1", "4", *smaller))


def _norm(program: Program, name: str, shape: Shape) -> None:
    if shape and "*" not in shape[-1]:
        program.params.append((shape[-1],))
        weight = f"%p{len(program.params) - 1}"
        program.emit(f"relax.nn.rms_norm {name}, {weight} axes = [-1]", shape)


def _attention(program: Program, name: str, shape: Shape) -> None:
    """Queries, keys and values of one tensor: any number of heads, which workers may not divide."""
    if len(shape) == 3:
        whole = program.fresh()
        program.lines.append(f"{whole} = relax.expand_dims {name} axes = [0]")
        mask = program.pick(("", ' causal_mask = "TopLeft"'))
        program.emit(f"relax.nn.attention {whole}, {whole}, {whole}{mask}", ("1", *shape))
        program.emit(f"relax.squeeze {program.values[-1][0]} axes = [0]", shape)


def _scattered(program: Program, name: str, shape: Shape) -> None:
    """Elements at positions along an axis, which a sort has found: numbers are distinct, or what is equal stays so."""
    if not shape:
        return
    axis, order = program.draw(st.integers(0, len(shape) - 1)), program.fresh()
    program.lines.append(f"{order} = relax.argsort {name} axis = {axis}")
    if program.draw(st.booleans()):
        program.emit(f"relax.gather_elements {name}, {order} axis = {axis}", shape)
    else:
        program.emit(f"relax.scatter_elements {name}, {order}, {name} axis = {axis}", shape)


def _selected(program: Program, name: str, shape: Shape) -> None:
    """The first elements in order, copies of elements, or half of a tensor."""
    if not shape:
        return
    axis = int(program.draw(st.integers(0, len(shape) - 1)))
    before, after = shape[:axis], shape[axis + 1 :]
    kind = program.pick(("topk", "repeat", "split"))
    if kind == "topk" and shape[axis] in ("4", "5", "6"):
        program.emit(f'relax.topk {name} k = 2 axis = {axis} ret_type = "values"', (*before, "2", *after))
    elif kind == "repeat" and shape[axis] in SYMBOLS:
        program.emit(f"relax.repeat {name} repeats = 2 axis = {axis}", (*before, f"2 * {shape[axis]}", *after))
    elif kind == "split" and shape[axis] in ("4", "6"):
        first, second = program.fresh(), program.fresh()
        program.lines.append(f"{first}, {second} = relax.split {name} sections = 2 axis = {axis}")
        program.emit(f"relax.subtract {first}, {second}", (*before, str(int(shape[axis]) // 2), *after))


def _quantized(program: Program, name: str, shape: Shape) -> None:
    """Bytes with a scale for each element along an axis, and back; values at half steps may be rounded either way."""
    if not shape or "*" in shape[-1]:
        return
    program.params.append((shape[-1],))
    given, scale, zero = f"%p{len(program.params) - 1}", program.fresh(), program.fresh()
    size, packed = program.fresh(), program.fresh()
    program.lines += [
        f"{scale}_ = relax.abs {given}",
        f"{scale}_one = relax.ones_like {given}",
        f"{scale} = relax.add {scale}_, {scale}_one",
        f"{size} = relax.shape [{shape[-1]}]",
        f"{zero} = relax.zeros {size} dtype = i8",
        f"{packed}_ = relax.round {name}",
        f"{packed}_scaled = relax.multiply {packed}_, {scale}",
        f"{packed} = relax.quantize {packed}_scaled, {scale}, {zero} axis = -1 dtype = i8",
    ]
    program.emit(f"relax.dequantize {packed}, {scale}, {zero} axis = -1 dtype = f32", shape)
    program.emit(f"relax.tanh {program.values[-1][0]}", shape)


def _statistics(program: Program, name: str, shape: Shape) -> None:
    """Normalisations with weights of one dimension, and slopes along it."""
    if len(shape) < 2 or "*" in shape[1]:
        return
    program.params.append((shape[1],))
    weight = f"%p{len(program.params) - 1}"
    kind = program.pick(("prelu", "layer_norm", "instance_norm"))
    if kind == "prelu":
        program.emit(f"relax.nn.prelu {name}, {weight}", shape)
    elif kind == "layer_norm" and len(shape) == 2:
        program.emit(f"relax.nn.layer_norm {name}, {weight}, {weight} axes = [-1]", shape)
    elif kind == "instance_norm" and len(shape) == 3:
        program.emit(f"relax.nn.instance_norm {name}, {weight}, {weight} channel_axis = 1 axes = [2]", shape)


def _triangle(program: Program, name: str, shape: Shape) -> None:
    if len(shape) >= 2:
        program.emit(f"relax.{program.pick(('tril', 'triu'))} {name}", shape)


def _vectors(program: Program, name: str, shape: Shape) -> None:
    """Products of vectors, and in which interval numbers are."""
    if len(shape) != 1:
        return
    if program.draw(st.booleans()):
        program.emit(f"relax.outer {name}, {name}", (shape[0], shape[0]))
    else:
        rounded, bounds, found = program.fresh(), program.fresh(), program.fresh()
        program.lines += [
            f"{rounded} = relax.round {name}",
            f"{bounds} = relax.sort {rounded}",
            f"{found} = relax.bucketize {rounded}, {bounds}",
        ]
        program.emit(f"relax.astype {found} dtype = f32", shape)
        program.emit(f"relax.tanh {program.values[-1][0]}", shape)


def _branch(program: Program, name: str, shape: Shape) -> None:
    """Two branches that use and give values as they like."""
    program.depth += 1
    ends = [program.inside([], shape, int(program.draw(st.integers(0, 3)))) for _ in range(2)]
    program.depth -= 1
    first, second = ("\n  ".join([*lines, f"relax.yield {end}"]) for lines, end in ends)
    program.emit(f"relax.if %go {{\n  {first}\n  }} else {{\n  {second}\n  }} : {program.type(shape)}", shape)


def _loop(program: Program, name: str, shape: Shape) -> None:
    """Two iterations, or as many as a condition lets there be, with one carried value."""
    program.depth += 1
    carried = program.fresh()
    lines, end = program.inside([(carried, shape)], shape, int(program.draw(st.integers(1, 3))))
    program.depth -= 1
    first, last, counter = program.fresh(), program.fresh(), program.fresh()
    program.lines += [f"{first} = relax.prim 0", f"{last} = relax.prim {program.draw(st.integers(0, 2))}"]
    body = "\n  ".join([*lines, f"relax.yield {end}"])
    head = f"relax.for {counter} = {first} to {last} ({carried}: {program.type(shape)} = {name})"
    program.emit(f"{head} {{\n  {body}\n  }}", shape)


def _call(program: Program, name: str, shape: Shape) -> None:
    """A function of the module, whose parameter may be annotated, and which may be called twice."""
    size = len(program.functions)
    symbols = [each for each in SYMBOLS if any(each in dim for dim in shape)]
    if any(each not in shape for each in symbols):
        return
    sharding = ""
    if program.draw(st.booleans()):
        places = zip(program.mesh.items(), program.placement(shape), strict=True)
        sharding = ", sharding<" + ", ".join(f"{axis} = {count}: {place}" for (axis, count), place in places) + ">"
    param, result = program.fresh(), program.fresh()
    info = program.type(shape)[:-1] + f"{sharding}>"
    names = f"[{', '.join(f'%{each}' for each in symbols)}]" if symbols else ""
    op = program.pick(("relax.tanh", "relax.nn.softmax") if shape else ("relax.tanh",))
    program.functions.append(
        f"relax.func private @f{size}{names}({param}: {info}) -> {program.type(shape)} {{\n"
        f"  {result} = {op} {param}\n  relax.return {result}\n}}"
    )
    program.emit(f"relax.tanh {name}", shape)  # an annotated value would have to be shared as the parameter is
    name = program.values[-1][0]
    program.emit(f"relax.call @f{size}({name}) : {program.type(shape)}", shape)


def _match_cast(program: Program, name: str, shape: Shape) -> None:
    """A dimension that gets a new symbol, and is checked to be what it was."""
    at = next((at for at, dim in enumerate(shape) if dim in SYMBOLS), None)
    if at is None:
        return
    cast, symbol, result = program.fresh(), program.fresh()[1:], program.fresh()
    renamed = program.type((*shape[:at], symbol, *shape[at + 1 :]))
    program.lines += [
        f"{cast}, %{symbol} = relax.match_cast {name} : {renamed} binds [{symbol}]",
        f"{result} = relax.{program.pick(('tanh', 'nn.relu'))} {cast}",
    ]
    program.emit(f"relax.match_cast {result} : {program.type(shape)}", shape)


def _kernel(program: Program, name: str, shape: Shape) -> None:
    """A PrimFunc for any sizes, or for those of the call: a transposition, or the sums of rows."""
    if len(shape) != 2:
        return
    generic = program.draw(st.booleans()) or any(not dim.isdecimal() for dim in shape)
    a, b = ("a", "b") if generic else shape
    function = f"f{len(program.functions)}"
    head = f"tir.prim_func @{function}{'[%a, %b]' if generic else ''}(%X: !tir.buffer<[{a}, {b}], f32>, %Y: !tir.buffer"
    sizes = "" if generic else f"  %a = arith.constant {a} : index\n  %b = arith.constant {b} : index\n"
    kind, body = program.pick(_KERNELS)
    result = shape[:1] if kind == "reduce" else shape[::-1]
    own = a if kind == "reduce" else f"{b}, {a}"
    program.functions.append(
        f"{head}<[{own}], f32>) {{\n{sizes}  tir.for (%i, %j) in (%a, %b) {{\n"
        f'    tir.block "k" (%vi = spatial %i in %a, %vj = {kind} %j in %b) {{\n{body}\n    }}\n  }}\n}}'
    )
    program.emit(f"relax.call_tir @{function}({name}) : {program.type(result)}", result)
    program.emit(f"relax.tanh {program.values[-1][0]}", result)


_KERNELS = (
    (
        "spatial",
        """      %x = tir.load %X[%vi, %vj]
      %y = arith.negf %x : f32
      tir.store %y, %Y[%vj, %vi]""",
    ),
    (
        "reduce",
        """      tir.init {
        %z = arith.constant 0.0 : f32
        tir.store %z, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vj]
      %y = tir.load %Y[%vi]
      %s = arith.addf %y, %x : f32
      tir.store %s, %Y[%vi]""",
    ),
)
"""The kind of the second iterator, and what a block does."""


_STEPS: dict[str, Callable[[Program, str, Shape], None]] = {
    "annotate": Program.annotate,
    "unary": _unary,
    "binary": _binary,
    "matmul": _matmul,
    "reduce": _reduce,
    "position": _position,
    "softmax": _softmax,
    "permute": _permute,
    "expand": _expand,
    "reshape": _split_dim,
    "concat": _concat,
    "slice": _slice,
    "norm": _norm,
    "along_axis": _along_axis,
    "take": _take,
    "pad": _pad,
    "stack": _stack,
    "tile": _tile,
    "where": _where,
    "einsum": _einsum,
    "image": _image,
    "attention": _attention,
    "scattered": _scattered,
    "selected": _selected,
    "quantized": _quantized,
    "statistics": _statistics,
    "sampled": sampled,
    "recurrent": recurrent,
    "rearranged": rearranged,
    "triangle": _triangle,
    "vectors": _vectors,
    "branch": _branch,
    "loop": _loop,
    "call": _call,
    "match_cast": _match_cast,
    "kernel": _kernel,
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

    go = np.asarray(draw(st.booleans()))
    return text, [tvm_ffi.Shape([sizes[name] for name in SYMBOLS]), go, *arrays]
