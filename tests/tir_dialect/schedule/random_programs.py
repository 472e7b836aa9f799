"""Random functions to schedule: stages over shared buffers, in loops of every form that steps have to tell apart.

Whatever a stage reads has been written whole, or is a parameter, and spatial iterations do not depend on each other: a
function has one meaning, and a step that changes it is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

COMBINE = ("addi", "maxsi", "minsi", "subi", "muli")
START = {"addi": 0, "subi": 0, "muli": 1, "maxsi": -99, "minsi": 99}
PARTS = (("%one", None), (None, "{} - 1"), (None, "floordiv({}, 2)"), ("%one", "min({}, 3)"))
"""Ranges that leave elements out: from, and to."""


@dataclass
class Axis:
    """An iterator of a block, and the loops that take it through its values."""

    name: str
    dim: str
    kind: str = "spatial"
    loops: list[tuple[str, str]] = field(default_factory=list)
    """Variables and ranges, outermost first."""
    ops: list[str] = field(default_factory=list)
    """What computes the binding and, perhaps, the condition."""
    binding: str = ""
    condition: str | None = None


class RandomProgram:
    """The text of a function of `n`, `m` and `k`; the same for the same seed."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._names = 0
        self._sizes: dict[str, str] = {}
        choose = self._random.choice
        self._n, self._m, self._k = choose(["n", "n", "2 * n", "n + 1", "6"]), choose(["m", "m", "n", "4 * m"]), "k"
        pairs = [(self._n, self._m), (self._m, self._n), (self._n, self._k), (self._k, self._m)]
        self._shapes: dict[str, tuple[str, ...]] = {f"P{number}": shape for number, shape in enumerate(pairs)}
        self._shapes |= {"V0": (self._n,), "V1": (self._n,), "V2": (self._m,)}
        self._locals: list[str] = []
        self._blocks = 0

    def text(self) -> str:
        """The function."""
        stages = [self._map, self._map, self._map, self._reduction, self._reduction, self._product, self._scan]
        stages += [self._window, self._rows, self._update]
        body = [line for _ in range(self._random.randint(1, 4)) for line in self._random.choice(stages)()]
        params = [f"%{name}: {self._type(name)}" for name in self._shapes if name not in self._locals]
        head = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
        head += [f"{value} = tir.dim {size}" for size, value in self._sizes.items()]
        head += [f"%{name} = tir.alloc_buffer : {self._type(name)}" for name in self._locals]
        return "\n  ".join([f"tir.prim_func @f[%n, %m, %k]({', '.join(params)}) {{", *head, *body]) + "\n}\n"

    def _type(self, name: str) -> str:
        return f"!tir.buffer<[{', '.join(self._shapes[name])}], i32>"

    # Stages: the lines of a nest, or of two.

    def _map(self) -> list[str]:
        """An elementwise function of other buffers, perhaps mirrored or broadcast."""
        target = self._result(self._random.choice([(self._n, self._m), (self._m, self._n), (self._n,)]))
        axes = self._axes(target)
        value, ops = self._expression(axes, {target})
        return self._nest(axes, [*ops, self._store(value, target, axes)], whole=target in self._locals)

    def _update(self) -> list[str]:
        """Elements that change in place."""
        shapes = [(self._n, self._m), (self._m, self._n), (self._n,)]
        target = self._random.choice([name for name, shape in self._shapes.items() if shape in shapes])
        axes = self._axes(target)
        value, ops = self._expression(axes, {target})
        old, new = self._fresh(), self._fresh()
        ops += [self._load(old, target, axes), f"{new} = arith.{self._random.choice(COMBINE)} {old}, {value} : i32"]
        return self._nest(axes, [*ops, self._store(new, target, axes)])

    def _reduction(self) -> list[str]:
        """A reduction over one or two axes of what is read."""
        rows, columns = self._random.choice([(self._n, self._m), (self._m, self._n)])
        kept = self._random.choice([(rows,), (columns,), ()])
        target = self._result(kept or ("1",))
        axes = self._axes(target) if kept else []
        reduced = [self._axis(dim, "reduce") for dim in dict.fromkeys((rows, columns)) if dim not in kept]
        reduced = reduced or [self._axis(rows, "reduce")]
        return self._accumulate(target, axes, reduced, [] if kept else ["%zero"])

    def _product(self) -> list[str]:
        """A product of matrices, or one of their columns."""
        target = self._result((self._n, self._m))
        return self._accumulate(target, self._axes(target), [self._axis(self._k, "reduce")])

    def _accumulate(self, target: str, axes: list[Axis], reduced: list[Axis], indices: Sequence[str] = ()) -> list[str]:
        combine = self._random.choice(COMBINE[:3])
        value, ops = self._expression([*axes, *reduced], {target})
        place = ", ".join(indices or [axis.name for axis in axes])
        old, new, first = self._fresh(), self._fresh(), self._fresh()
        init = ["tir.init {", f"  {first} = arith.constant {START[combine]} : i32"]
        init += [f"  tir.store {first}, %{target}[{place}]", "}"]
        if target not in self._locals and self._random.random() < 0.2:
            init = []
        ops = [*init, *ops, f"{old} = tir.load %{target}[{place}]", f"{new} = arith.{combine} {old}, {value} : i32"]
        every = [*axes, *reduced]
        self._random.shuffle(every)
        # an init that partial loops leave out would leave the buffer as it was
        return self._nest(every, [*ops, f"tir.store {new}, %{target}[{place}]"], whole=target in self._locals)

    def _scan(self) -> list[str]:
        """A running sum along the second axis."""
        source, target = self._source((self._n, self._m)), self._result((self._n, self._m))
        row, column = self._axes(target)
        column.kind = "scan"
        later, before, old, last, value, new = (self._fresh() for _ in range(6))
        zero = self._fresh()
        ops = [f"{later} = arith.cmpi sge, {column.name}, %one : index", f"{zero} = arith.constant 0 : i32"]
        ops += [f"{last} = tir.if {later} -> (i32) {{", f"  {before} = arith.subi {column.name}, %one : index"]
        ops += [f"  {old} = tir.load %{target}[{row.name}, {before}]", f"  tir.yield {old}", "} else {"]
        ops += [f"  tir.yield {zero}", "}", self._load(value, source, [row, column])]
        ops += [f"{new} = arith.addi {last}, {value} : i32", self._store(new, target, [row, column])]
        return self._nest([row, column], ops, whole=True)

    def _window(self) -> list[str]:
        """A padded copy, and sums over windows of it."""
        source, dim = self._source((self._n,)), self._n
        padded, target = self._local((f"{dim} + 2",)), self._result((dim,))
        (axis,) = self._axes(padded)
        low, high, inside, place, loaded, value, zero = (self._fresh() for _ in range(7))
        ops = [f"{low} = arith.cmpi sge, {axis.name}, %one : index", f"{zero} = arith.constant 0 : i32"]
        ops += [f"{high} = arith.cmpi slt, {axis.name}, {self._size(f'{dim} + 1')} : index"]
        ops += [f"{inside} = arith.andi {low}, {high} : i1", f"{value} = tir.if {inside} -> (i32) {{"]
        ops += [f"  {place} = arith.subi {axis.name}, %one : index", f"  {loaded} = tir.load %{source}[{place}]"]
        ops += [f"  tir.yield {loaded}", "} else {", f"  tir.yield {zero}", "}", self._store(value, padded, [axis])]
        first = self._nest([axis], ops, whole=True)
        (axis,), offset = self._axes(target), self._axis("3", "reduce")
        place, loaded, old, new, start = (self._fresh() for _ in range(5))
        ops = ["tir.init {", f"  {start} = arith.constant 0 : i32", f"  {self._store(start, target, [axis])}", "}"]
        ops += [f"{place} = arith.addi {axis.name}, {offset.name} : index", f"{loaded} = tir.load %{padded}[{place}]"]
        ops += [self._load(old, target, [axis]), f"{new} = arith.addi {old}, {loaded} : i32"]
        return first + self._nest([axis, offset], [*ops, self._store(new, target, [axis])], whole=True)

    def _rows(self) -> list[str]:
        """A block for each row, with a buffer and two blocks of its own."""
        source, target = self._source((self._n, self._m)), self._result((self._n, self._m))
        row, *_ = self._axes(target)
        made, inner = self._fresh(), []
        for writes in (False, True):
            column = self._axis(self._m)
            value, ops = self._expression([row, column], {target, *self._locals} - {source})
            loaded, new = self._fresh(), self._fresh()
            of_row, whole = f"{made}[{column.name}]", [row, column]
            ops += [f"{loaded} = tir.load {of_row}" if writes else self._load(loaded, source, whole)]
            ops += [f"{new} = arith.addi {loaded}, {value} : i32"]
            ops += [self._store(new, target, whole) if writes else f"tir.store {new}, {of_row}"]
            inner += self._nest([column], ops, whole=True)
        return self._nest([row], [f"{made} = tir.alloc_buffer : !tir.buffer<[{self._m}], i32>", *inner], whole=True)

    # Parts of stages.

    def _fresh(self, prefix: str = "t") -> str:
        self._names += 1
        return f"%{prefix}{self._names}"

    def _size(self, text: str) -> str:
        return self._sizes.setdefault(text, f"%d{len(self._sizes)}")

    def _axis(self, dim: str, kind: str = "spatial") -> Axis:
        return Axis(self._fresh("v"), dim, kind)

    def _axes(self, buffer: str) -> list[Axis]:
        return [self._axis(dim) for dim in self._shapes[buffer]]

    def _result(self, shape: tuple[str, ...]) -> str:
        """A new buffer: a parameter more often than not."""
        name = self._local(shape)
        if self._random.random() < 0.6:
            self._locals.remove(name)
        return name

    def _local(self, shape: tuple[str, ...]) -> str:
        name = f"B{len(self._shapes)}"
        self._shapes[name] = shape
        self._locals.append(name)
        return name

    def _source(self, shape: tuple[str, ...]) -> str:
        """One of the newest buffers of a shape."""
        fitting = [name for name, have in self._shapes.items() if have == shape]
        return self._random.choice(fitting[-2:])

    def _load(self, result: str, buffer: str, axes: Sequence[Axis]) -> str:
        return f"{result} = tir.load %{buffer}[{', '.join(axis.name for axis in axes)}]"

    def _store(self, value: str, buffer: str, axes: Sequence[Axis]) -> str:
        return f"tir.store {value}, %{buffer}[{', '.join(axis.name for axis in axes)}]"

    def _expression(self, axes: Sequence[Axis], without: set[str]) -> tuple[str, list[str]]:
        """A value computed from elements of buffers that the axes reach, and the ops."""
        dims = {axis.dim for axis in axes}
        readable = [name for name, shape in self._shapes.items() if name not in without and dims.issuperset(shape)]
        readable = readable[-4:] if self._random.random() < 0.7 else readable
        value, ops = "", []
        for _ in range(self._random.randint(1, 3)):
            element, buffer = self._fresh(), self._random.choice(readable)
            indices = [self._index(dim, axes, ops) for dim in self._shapes[buffer]]
            ops.append(f"{element} = tir.load %{buffer}[{', '.join(indices)}]")
            if value:
                both = self._fresh()
                ops.append(f"{both} = arith.{self._random.choice(COMBINE)} {value}, {element} : i32")
                element = both
            value = element
        return value, ops

    def _index(self, dim: str, axes: Sequence[Axis], ops: list[str]) -> str:
        axis = self._random.choice([axis for axis in axes if axis.dim == dim])
        if self._random.random() < 0.85:
            return axis.name
        rest, last = self._fresh(), self._fresh()
        ops += [f"{rest} = arith.subi {self._size(dim)}, {axis.name} : index"]
        ops += [f"{last} = arith.subi {rest}, %one : index"]
        return last

    # Loops.

    def _nest(self, axes: Sequence[Axis], body: Sequence[str], *, whole: bool = False) -> list[str]:
        """A block in its loops, which reach all instances if `whole`."""
        self._blocks += 1
        for axis in axes:
            self._drive(axis, whole)
        loops = [loop for axis in axes for loop in axis.loops]
        self._interleave(loops, axes)
        conditions = [axis.condition for axis in axes if axis.condition]
        ops = [op for axis in axes for op in axis.ops]
        while len(conditions) > 1:
            both = self._fresh()
            ops.append(f"{both} = arith.andi {conditions.pop()}, {conditions.pop()} : i1")
            conditions.append(both)
        where = f" where {conditions[0]}" if conditions else ""
        iterators = ", ".join(f"{axis.name} = {axis.kind} {axis.binding} in {self._size(axis.dim)}" for axis in axes)
        head = [f"tir.for ({variable}) in ({range}) {{" for variable, range in loops]
        block = f'tir.block "b{self._blocks}" ({iterators}){where} {{'
        return [*head, *ops, block, *body, "}", *["}"] * len(loops)]

    def _interleave(self, loops: list[tuple[str, str]], axes: Sequence[Axis]) -> None:
        """Brings loops into another order, but those of scans."""
        if any(axis.kind == "scan" for axis in axes) or self._random.random() < 0.4:
            return
        self._random.shuffle(loops)

    def _drive(self, axis: Axis, whole: bool) -> None:
        """Gives an axis its loops."""
        size, form = self._size(axis.dim), self._random.random()
        variable = self._fresh("i")
        axis.binding = variable
        if form < 0.2:
            self._tile(axis, self._random.choice([2, 3, 4]))
        elif form < 0.35 and not whole:
            start, end = self._random.choice(PARTS)
            end = size if end is None else self._size(end.format(axis.dim))
            axis.loops = [(variable, f"{start} to {end}" if start else end)]
        elif form < 0.45 and axis.kind != "scan":
            axis.loops, rest, axis.binding = [(variable, size)], self._fresh(), self._fresh()
            axis.ops = [f"{rest} = arith.subi {size}, {variable} : index"]
            axis.ops += [f"{axis.binding} = arith.subi {rest}, %one : index"]
        else:
            axis.loops = [(variable, size)]

    def _tile(self, axis: Axis, factor: int) -> None:
        outer, inner, base, axis.binding, axis.condition = (self._fresh("i") for _ in range(5))
        width = self._size(str(factor))
        axis.loops = [(outer, self._size(f"floordiv({axis.dim} + {factor - 1}, {factor})")), (inner, width)]
        axis.ops = [f"{base} = arith.muli {outer}, {width} : index"]
        axis.ops += [f"{axis.binding} = arith.addi {base}, {inner} : index"]
        axis.ops += [f"{axis.condition} = arith.cmpi slt, {axis.binding}, {self._size(axis.dim)} : index"]
