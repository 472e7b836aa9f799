"""Loop kinds, and annotations of loops and blocks."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from tir_dialect.ops.annotations import Note, note_attr
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.legality.independence import check_parallel
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.types import LoopKind, LoopKindAttr

THREAD_TAGS = tuple(f"{level}.{axis}" for level in ("blockIdx", "threadIdx", "vthread") for axis in "xyz")


@primitive
def parallel(self: ScheduleState, loop: Loop) -> None:
    """Runs the iterations of a loop on the threads of the CPU.

    rewrite:
        for i in n: A(i)
        -> for parallel i in n: A(i)

    Refuses:
    1. iterations that share elements of a buffer, other than those of one block that its spatial iterators tell apart;
    2. instances of a block that linear indices show to share elements, whatever its iterators are called.
    """
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.PARALLEL)


@primitive
def vectorize(self: ScheduleState, loop: Loop) -> None:
    """Runs the iterations of a loop as lanes of vector instructions.

    rewrite:
        for i in 8: A(i)
        -> for vectorized i in 8: A(i)

    Refuses:
    1. a loop of no constant extent;
    2. iterations that share elements, as in `parallel`.
    """
    _check_constant(self, loop)
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.VECTORIZED)


@primitive
def unroll(self: ScheduleState, loop: Loop) -> None:
    """Unrolls a loop of constant extent.

    rewrite:
        for i in 4: A(i)
        -> for unrolled i in 4: A(i)

    Refuses:
    1. a loop of no constant extent.
    """
    _check_constant(self, loop)
    _set_kind(loop, LoopKind.UNROLLED)


@primitive
def bind(self: ScheduleState, loop: Loop, thread_axis: str) -> None:
    """Binds a loop to the hardware threads of a tag, such as `threadIdx.x`.

    rewrite:
        for i in n: A(i)
        -> for thread_binding "threadIdx.x" i in n: A(i)

    Refuses:
    1. tags other than `blockIdx`, `threadIdx` and `vthread` with `.x`, `.y` or `.z`;
    2. iterations that share elements, as in `parallel`.
    """
    if thread_axis not in THREAD_TAGS:
        raise self.error(f'expected a thread tag of {", ".join(THREAD_TAGS)}, got "{thread_axis}"')
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.THREAD_BINDING, thread_axis)


def _set_kind(loop: Loop, kind: LoopKind, tag: str | None = None) -> None:
    """Gives a loop a kind, instead of the one that it has."""
    loop.op.kind = LoopKindAttr(kind)
    loop.op.thread_tag = None if tag is None else StringAttr(tag)


def _check_constant(self: ScheduleState, loop: Loop) -> None:
    extent = self.extent(loop.op)
    if not extent.is_constant:
        raise self.error(f'expected a loop of constant extent, got "{loop.name}" of extent {extent}; split it first')


@primitive
def annotate(self: ScheduleState, block_or_loop: Loop | Block, ann_key: str, ann_val: Note) -> None:
    """Adds an annotation to a loop or block, or replaces the one of that name; lowerings may read it.

    rewrite:
        for i in n: A(i)
        -> for i in n annotations {"key" = value}: A(i)

    Refuses:
    1. values that are no truth values, numbers, texts, or lists or dictionaries of them.
    """
    if not isinstance(cast("object", ann_key), str):
        raise TypeError("the name of an annotation is a text")
    notes = _notes(block_or_loop)
    block_or_loop.op.annotations = DictionaryAttr({**notes, ann_key: _attribute(self, ann_val)})


@primitive
def unannotate(self: ScheduleState, block_or_loop: Loop | Block, ann_key: str) -> None:
    """Removes an annotation.

    rewrite:
        for i in n annotations {"key" = value}: A(i)
        -> for i in n: A(i)

    Refuses:
    1. a name that is not there.
    """
    notes = dict(_notes(block_or_loop))
    if ann_key not in notes:
        raise self.error(f'"{block_or_loop.name}" has no annotation "{ann_key}"')
    del notes[ann_key]
    block_or_loop.op.annotations = DictionaryAttr(notes) if notes else None


def _notes(target: Loop | Block) -> dict[str, Attribute]:
    return {} if target.op.annotations is None else dict(target.op.annotations.data)


def _attribute(self: ScheduleState, value: object) -> Attribute:
    try:
        return note_attr(value)
    except TypeError as error:
        raise self.error(str(error)) from None
