"""`te.scan`: recurrences along the first dimension of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from tir_dialect.dims import Dim, constant, minimum
from tir_dialect.te import nodes
from tir_dialect.te.compute import Compute, Scan, Step
from tir_dialect.te.emit_scalar import Signs
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar, Tensor, post_order, substitute
from tir_dialect.te.prim_func import inputs_of, sources_of

Tensors: TypeAlias = "Tensor | Sequence[Tensor]"


def scan(
    init: Tensors,
    update: Tensors,
    state_placeholder: Tensors,
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Tensor | tuple[Tensor, ...]:
    """A recurrence along the first dimension: the first slices are `init`, each further one is computed by `update`.

    The state is a placeholder of the result's shape that stands for the result in the update: `s[t - 1, i]` is the
    slice of the step before. Several states are computed together. Intermediate computes between states and updates,
    whose first dimension must be the steps too, run in each step. `inputs` is accepted for compatibility with TVM; the
    inputs are found by themselves.

    ::

        s = te.placeholder((m, n), name="s")
        init = te.compute((1, n), lambda _, i: X[0, i])
        update = te.compute((m, n), lambda t, i: s[t - 1, i] + X[t, i])
        C = te.scan(init, update, s, name="C")

    Raises ValueError for shapes or dtypes that do not match, and for an update that reads a slice that is not computed
    yet; TypeError for a string as `inputs`. Follows `tvm.te.scan`.
    """
    if isinstance(inputs, str):
        raise TypeError(f'te: scan expected tensors as inputs, got "{inputs}"; pass the name as name=')
    parts = [_tensors(name, each) for each in (init, update, state_placeholder)]
    lengths = [len(each) for each in parts]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise ValueError(f'te: scan "{name}" expected as many inits, updates and states, got {lengths}')
    for triple in zip(*parts, strict=True):
        _check_shapes(name, *triple)
    made = _Builder(name, *parts).build()
    return made.outputs[0] if len(made.outputs) == 1 else made.outputs


def _tensors(name: str, given: object) -> tuple[Tensor, ...]:
    every = (given,) if not isinstance(given, list | tuple) else tuple(cast("Sequence[object]", given))
    found = tuple(each for each in every if isinstance(each, Tensor))
    if len(found) != len(every):
        raise TypeError(f'te: scan "{name}" expected tensors, got {given}')
    return found


def _check_shapes(name: str, init: Tensor, update: Tensor, state: Tensor) -> None:
    if state.source is not None:
        raise ValueError(f'te: state "{state.name}" of scan "{name}" is computed, expected a placeholder')
    if not isinstance(update.source, Compute):
        raise ValueError(f'te: update "{update.name}" of scan "{name}" is not the result of te.compute')
    if not update.shape or update.shape != state.shape or init.shape[1:] != update.shape[1:]:
        raise ValueError(f'te: scan "{name}" expected init {init}, update {update} and state {state} of one shape')
    if not init.dtype == update.dtype == state.dtype:
        raise ValueError(f'te: scan "{name}" expected init {init}, update {update} and state {state} of one dtype')


class _Builder:
    """Builds a scan from checked parts."""

    def __init__(self, name: str, inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor]):
        self._name = name
        self._inits = inits
        self._updates = updates
        self._states = states
        self._first, self._end = inits[0].shape[0], updates[0].shape[0]
        for init, update in zip(inits, updates, strict=True):
            if init.shape[0] != self._first or update.shape[0] != self._end:
                raise ValueError(f'te: scan "{name}" expected inits of one length, and updates of one length')
        length = self._end - self._first
        if (known := length.constant_value) is not None and known < 0:
            raise ValueError(f'te: scan "{name}" starts with {self._first} slices, of {self._end}')
        self._scan = Scan(name, length)
        self._renamed: dict[Tensor, Tensor] = {}

    def build(self) -> Scan:
        """The scan, whose outputs replace the states and the updates."""
        scan = self._scan
        names = [self._name] if len(self._updates) == 1 else [f"{self._name}_v{i}" for i in range(len(self._updates))]
        outputs = tuple(
            Tensor(name, update.shape, update.dtype, scan, i)
            for i, (name, update) in enumerate(zip(names, self._updates, strict=True))
        )
        self._renamed.update(zip(self._states, outputs, strict=True))
        self._renamed.update(zip(self._updates, outputs, strict=True))
        steps = self._dependents()
        inner = [tensor for step in steps for tensor in step.outputs if tensor not in self._renamed]
        twins = [Tensor(tensor.name, tensor.shape, tensor.dtype) for tensor in inner]
        self._renamed.update(zip(inner, twins, strict=True))
        starts = (self._start(init, output) for init, output in zip(self._inits, outputs, strict=True))
        parts = {"outputs": outputs, "locals": tuple(twins), "starts": tuple(starts)}
        for key, value in {**parts, "steps": tuple(map(self._step, steps))}.items():
            object.__setattr__(scan, key, value)
        return scan

    def _dependents(self) -> list[Compute]:
        """The computes that run in each step, in order: those that depend on a state, and the updates."""
        varying, updates = set(self._states), set(self._updates)
        found: list[Compute] = []
        for source in sources_of(self._updates):
            if varying.isdisjoint(inputs_of(source)) and updates.isdisjoint(source.outputs):
                continue
            name = self._name
            if not isinstance(source, Compute):
                raise ValueError(
                    f'te: scan "{name}" has a part that depends on its state and is not the result of te.compute'
                )
            compute = source
            if not compute.axes or compute.axes[0].length != self._end:
                raise ValueError(
                    f'te: "{compute.name}" is computed in each step of scan "{self._name}", '
                    f"expected {self._end} as its first dimension"
                )
            varying.update(compute.outputs)
            found.append(compute)
        return found

    def _start(self, init: Tensor, output: Tensor) -> Step:
        """The nest of the first slices."""
        axes = tuple(IterVar(f"i{axis}", constant(0), extent, "spatial") for axis, extent in enumerate(init.shape))
        body: Expr = init[axes]
        if isinstance(init.source, Compute) and len(init.source.outputs) == 1:
            axes, (body,) = init.source.axes, init.source.bodies
        first = IterVar(axes[0].name, constant(0), minimum(self._first, self._end), "spatial")
        (body,) = substitute((body,), {axes[0]: first})
        return self._nest(f"{self._name}_init", (first, *axes[1:]), (body,), (output,), constant(0))

    def _step(self, compute: Compute) -> Step:
        """The nest of one slice."""
        time, *others = compute.axes
        # Refuses loads of slices that a step has not computed.
        signs = Signs((time,))
        for expr in post_order(compute.bodies):
            if not isinstance(expr, nodes.Load) or expr.tensor not in self._renamed:
                continue
            index = expr.operands[0]
            if expr.tensor in set(self._renamed).difference(self._states, self._updates):
                late = index is not time
            else:
                late = signs.less_equal(time + (expr.tensor in self._updates), index)
            if late:
                raise ValueError(
                    f'te: "{compute.name}" of scan "{self._name}" reads a slice of "{expr.tensor.name}" '
                    "that the step has not computed"
                )
        # an init runs where all scan iterators are 0
        kind = "scan" if compute.reduction is None else "opaque"
        count = IterVar(time.name, constant(0), self._scan.length, kind)
        # The expressions with loads from other tensors.
        roots = substitute(compute.bodies, {time: count + self._first})
        roots = tuple(roots)
        replaced: dict[Expr, Expr] = {}
        for expr in post_order(roots):
            if isinstance(expr, nodes.Load) and expr.tensor in self._renamed:
                replaced[expr] = nodes.load(self._renamed[expr.tensor], substitute(expr.operands, replaced))
        bodies = substitute(roots, replaced)
        targets = tuple(self._renamed[tensor] for tensor in compute.outputs)
        return self._nest(compute.name, (count, *others), bodies, targets, self._first)

    def _nest(
        self, name: str, axes: tuple[IterVar, ...], bodies: tuple[Expr, ...], targets: tuple[Tensor, ...], first: Dim
    ) -> Step:
        step = Step(name, axes, bodies, first=first)
        object.__setattr__(step, "outputs", targets)
        return step
