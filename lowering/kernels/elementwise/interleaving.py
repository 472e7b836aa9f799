"""Copies between an array of structures and a structure of arrays, with a few components: vectors are shuffled.

Transposed convolutions, pixel shuffles and changes from `NCHW` to `NHWC` interleave components: every n-th element
stored comes from the same component. The inverse deinterleaves, as for images in `NHWC`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.emit.body import Body
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    deinterleave,
    interleave,
    masks_are_registers,
)
from lowering.kernels.structure.stages import AffineAccess, Stage, work_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp

MAX_COMPONENTS, MAX_LANES = 8, 16
MAX_DEINTERLEAVED = 6
"""Where masks are cheap, more components than these are faster to transpose in tiles."""
LEAST_LANES = 4
SYMBOLIC_COMPONENTS, LONG = (2, 3, 4), 256
"""If only the call knows the number of components, there is code for these numbers, if rows may be so long: a
few channels are likely, a few pixels are not.
"""


@dataclass(frozen=True)
class Interleaving:
    """A copy between `count * along + component` on one side and contiguous components on the other."""

    stage: Stage
    others: tuple[AxisGroup, ...]
    along: AxisGroup
    component: AxisGroup
    counts: Sequence[int]
    """The numbers of components that there is code for."""
    lanes: int
    load: LoadOp
    deinterleaves: bool
    """Whether components are stored; otherwise they are loaded."""

    @property
    def is_known(self) -> bool:
        """Whether the number of components is known when the kernel is compiled."""
        return self.component.extent.constant_value is not None


def find_interleavings(kernel: Kernel, stage: Stage) -> list[Interleaving]:
    """The interleavings that a stage may be; none if it computes anything, or has other strides."""
    value = stage.stores[0].value.owner
    if len(stage.stores) != 1 or not isinstance(value, LoadOp):
        return []
    store, load = kernel.access(stage, stage.stores[0]), kernel.access(stage, value)
    if store.computed:
        return []
    groups = collapse_axes(kernel, [stage], range(len(stage.axes)))
    lanes = min(kernel.target.lanes(8 * byte_size(value.buffer_type.dtype)), MAX_LANES)
    found: list[Interleaving] = []
    for mixed, components, deinterleaves in ((load, store, True), (store, load, False)):
        pair = _along_and_component(groups, mixed, components)
        counts = () if pair is None else _counts(kernel, *pair, lanes, deinterleaves)
        if pair is not None and counts and _is_uniform(kernel, stage, value, [each.last for each in pair]):
            others = tuple(group for group in groups if group not in pair)
            found.append(Interleaving(stage, others, *pair, counts, lanes, value, deinterleaves))
    return [each for each in found if each.is_known][:1] or found


def _along_and_component(
    groups: Sequence[AxisGroup], mixed: AffineAccess, components: AffineAccess
) -> tuple[AxisGroup, AxisGroup] | None:
    """The axes along components and over components, if components are adjacent in `mixed`."""
    component = next((group for group in groups if mixed.strides[group.last].constant_value == 1), None)
    if component is None:
        return None
    for group in groups:
        if components.strides[group.last].constant_value == 1 and mixed.strides[group.last] is component.extent:
            return group, component
    return None


def _counts(kernel: Kernel, along: AxisGroup, component: AxisGroup, lanes: int, deinterleaves: bool) -> Sequence[int]:
    """The numbers of components that there is code for."""
    length, known = along.extent.constant_value, component.extent.constant_value
    if lanes < LEAST_LANES or (length is not None and length < lanes):
        return []
    if known is None:
        is_worthwhile = length is None or length >= LONG
        return SYMBOLIC_COMPONENTS if is_worthwhile and component.extent.as_symbol else []
    most = MAX_DEINTERLEAVED if deinterleaves and masks_are_registers(kernel) else MAX_COMPONENTS
    return [known] if 1 < known <= min(most, lanes) else []


def _is_uniform(kernel: Kernel, stage: Stage, load: LoadOp, axes: Sequence[int]) -> bool:
    """Whether the rest of the code is the same along some axes, such as the start of a row."""
    others = [kernel.access(stage, op) for op in stage.loads if op is not load]
    return stage.pinned.isdisjoint(axes) and not any(access.strides[axis].terms for access in others for axis in axes)


@contextmanager
def when_components_have_code(kernel: Kernel, interleaving: Interleaving) -> Generator[IfOp]:
    """What happens if there is code for the number of components of a call, and a component fills a vector."""
    code, least, most = kernel.code, interleaving.counts[0], interleaving.counts[-1]
    few = code.compare("ule", code.sub(code.dim(interleaving.component.extent), least), most - least)
    with code.when(code.value(arith.AndIOp(few, _has_vectors(kernel, interleaving)))) as branch:
        yield branch


def emit_interleaving(kernel: Kernel, interleaving: Interleaving) -> None:
    """The loops over vectors; components shorter than one are copied element by element."""
    first = interleaving.others[0].extent if interleaving.others else None
    with kernel.partition_2d(first, interleaving.along.extent, work_of(interleaving.stage), interleaving.lanes) as (
        outer,
        inner,
    ):
        _loops(kernel, interleaving, list(interleaving.others), {}, outer, inner)


def _loops(
    kernel: Kernel,
    interleaving: Interleaving,
    groups: Sequence[AxisGroup],
    at: Mapping[int, SSAValue],
    outer: tuple[SSAValue, SSAValue] | None,
    inner: tuple[SSAValue, SSAValue] | None,
) -> None:
    """All vectors, of ranges of the outermost loop and of the components."""
    code = kernel.code
    if groups:
        low, high = (None, code.dim(groups[0].extent)) if outer is None else outer
        with code.loop(high, "o", lower=low) as index:
            _loops(kernel, interleaving, groups[1:], {**at, groups[0].last: index}, None, inner)
        return
    low, high = (code.index(0), code.dim(interleaving.along.extent)) if inner is None else inner
    if not interleaving.is_known:
        for count in interleaving.counts:
            with code.when(code.compare("eq", code.dim(interleaving.component.extent), count)):
                _row(kernel, interleaving, at, low, high, count)
        return
    with code.when(_has_vectors(kernel, interleaving)) as is_long:
        _row(kernel, interleaving, at, low, high, interleaving.counts[0])
    with (
        code.otherwise(is_long),
        code.loop(high, "e", lower=low, vectorize=False) as index,
        code.loop(code.dim(interleaving.component.extent), "l", vectorize=False) as component,
    ):
        Body(
            kernel, interleaving.stage, {**at, interleaving.along.last: index, interleaving.component.last: component}
        ).run(interleaving.stage.body)


def _has_vectors(kernel: Kernel, interleaving: Interleaving) -> SSAValue:
    """Whether a component fills a vector."""
    return kernel.code.compare("sge", kernel.code.dim(interleaving.along.extent), interleaving.lanes)


def _row(
    kernel: Kernel, interleaving: Interleaving, at: Mapping[int, SSAValue], low: SSAValue, high: SSAValue, count: int
) -> None:
    """A range of the components. The last vector overlaps the one before; if the range of a thread is shorter
    than a vector, it overlaps the range of another thread, which writes the same values.
    """
    code, lanes = kernel.code, interleaving.lanes
    iterations = code.divide(code.add(code.sub(high, low), lanes - 1), lanes)
    with code.loop(iterations, "v", vectorize=False) as iteration:
        start = code.minimum(code.add(low, code.mul(iteration, lanes)), code.sub(high, lanes))
        _vectors(kernel, interleaving, {**at, interleaving.along.last: start}, count)


def _vectors(kernel: Kernel, interleaving: Interleaving, at: Mapping[int, SSAValue], count: int) -> None:
    """A vector of each component."""
    code, (store,), lanes = kernel.code, interleaving.stage.stores, interleaving.lanes
    bodies = [
        Body(kernel, interleaving.stage, {**at, interleaving.component.last: code.index(number)})
        for number in range(count)
    ]
    indices: list[SSAValue] = []
    for number in range(count):
        body = bodies[0 if interleaving.deinterleaves else number]
        body.run([op for op in interleaving.stage.body if op is not interleaving.load and not isinstance(op, StoreOp)])
        index = body.index(interleaving.load)
        indices.append(code.add(index, number * lanes) if interleaving.deinterleaves else index)
    loaded = [code.load(kernel.memory(interleaving.load), [index], lanes) for index in indices]
    if interleaving.deinterleaves:
        results = [component[0] for component in deinterleave(code, loaded, count)]
    else:
        results = interleave(code, [[vector] for vector in loaded])
    for number, result in enumerate(results):
        body = bodies[number if interleaving.deinterleaves else 0]
        index = body.index(store) if interleaving.deinterleaves else code.add(body.index(store), number * lanes)
        code.store(result, kernel.memory(store), [index])
