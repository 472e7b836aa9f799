"""What convolutions and pooling share: which dimension of a tensor is which, and how windows move over it.

A layout names the dimensions, with those that are cut into blocks, as in `NCHW16c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from xdsl.ir import Attribute

from relax_dialect.inference import DEFAULT_PROVER, Inference
from relax_dialect.ops.fields import integers
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, minimum

T = TypeVar("T")

SPATIAL = "DHW"


def spatial_letters(rank: int) -> str:
    """The letters of the last `rank` spatial dimensions: `W`, `HW` or `DHW`."""
    return SPATIAL[-rank:]


def spread(values: Sequence[T], rank: int) -> tuple[T, ...]:
    """One value for each of `rank` dimensions: a single value counts for all."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def spread_padding(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """The padding before each of `rank` dimensions, then after each: one value counts for all, `rank` for both
    sides.
    """
    if len(values) == 1:
        return tuple(values) * (2 * rank)
    return tuple(values) * 2 if len(values) == rank else tuple(values)


@dataclass(frozen=True)
class Windows:
    """How windows slide over the spatial dimensions; one number per dimension, the padding one before and one after
    each.
    """

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    def padded(self, axis: int) -> int:
        """The padding on both sides of a dimension."""
        return self.padding[axis] + self.padding[axis + self.rank]

    def count(self, axis: int, length: Dim | None, extent: Dim | None, ceil_mode: bool = False) -> Dim | None:
        """How many windows of `extent` elements fit into a dimension.

        With `ceil_mode` the last one may reach over the end, but not start in the padding there.
        """
        if length is None or extent is None:
            return None
        room = length + self.padded(axis) - self.dilation[axis] * (extent - 1) - 1
        stride = self.strides[axis]
        if not ceil_mode:
            return DEFAULT_PROVER.simplify(floordiv(room, stride) + 1)
        inside = ceildiv(length + self.padding[axis], stride)
        return DEFAULT_PROVER.simplify(minimum(ceildiv(room, stride) + 1, inside))


def make_windows(
    rank: int,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> Windows:
    """Windows over `rank` dimensions; absent strides and dilations are 1, absent padding is 0."""
    return Windows(
        spread((1,) if strides is None else strides, rank),
        spread_padding((0,) if padding is None else padding, rank),
        spread((1,) if dilation is None else dilation, rank),
    )


def window_properties(
    rank: int,
    strides: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> dict[str, Attribute | None]:
    """The properties of windows: those that say no more than the defaults are left out, so that equal ops look
    equal.
    """
    given, plain = make_windows(rank, strides, padding, dilation), make_windows(rank)
    return {
        "strides": None if given.strides == plain.strides else integers(given.strides),
        "padding": None if given.padding == plain.padding else integers(given.padding),
        "dilation": None if given.dilation == plain.dilation else integers(given.dilation),
    }


def require_windows(inference: Inference, rank: int) -> Windows:
    """The properties `strides`, `padding` and `dilation`; fails if their lengths or values make no sense."""
    given = {name: inference.optional_integers(name) for name in ("strides", "padding", "dilation")}
    for name, values in given.items():
        expected = 2 * rank if name == "padding" else rank
        if values is not None and len(values) != expected:
            order = ", those before each dimension and then those after each" if name == "padding" else ""
            inference.fail(f"{name} expected {expected} numbers{order}, got {len(values)}")
    found = make_windows(rank, **given)
    if min(*found.strides, *found.dilation) < 1:
        inference.fail("expected strides and dilations of at least 1")
    return found


def require_rank(inference: Inference, index: int, rank: int) -> tuple[Dim | None, ...]:
    """The shape of tensor operand `index`, which has `rank` dimensions, all of them unknown if nothing is known."""
    info: TensorType = inference.tensor(index)
    if info.dims is None:
        return (None,) * rank
    if len(info.dims) != rank:
        inference.fail(f"operand #{index} expected rank {rank}, got {info}")
    return info.dims


BlockedLayout = tuple[tuple[str, int], ...]
"""Letters with the sizes of their blocks; a capital, of size 0, is what is left of a dimension."""


def parse_layout(text: str) -> BlockedLayout | None:
    """`NCHW4c`: capitals, and blocks of some of them; `None` if it makes no sense."""
    if not re.fullmatch(r"([A-Z]|[1-9]\d*[a-z])+", text):
        return None
    found = [(letter, int(size or 0)) for size, letter in re.findall(r"(\d*)([A-Za-z])", text)]
    letters = [letter for letter, _ in found]
    whole = all(letter.upper() in letters for letter in letters)
    return tuple(found) if whole and len(set(letters)) == len(letters) else None


def whole_dims(layout: BlockedLayout, dims: Sequence[Dim | None]) -> dict[str, Dim | None]:
    """The dimensions without blocks, by their capitals."""
    sizes = dict(layout)
    found: dict[str, Dim | None] = {}
    for dim, (letter, _) in zip(dims, layout, strict=True):
        if letter.isupper():
            found[letter] = None if dim is None else dim * max(sizes.get(letter.lower(), 1), 1)
    return found


@dataclass(frozen=True)
class Layout:
    """An order of dimensions such as `NCHW`, some of which may be cut into blocks: `NCHW16c`.

    A capital names a dimension, a number with a small letter the position within a block of so many.
    """

    text: str

    @cached_property
    def dims(self) -> BlockedLayout:
        """The letters with the sizes of their blocks."""
        return parse_layout(self.text) or ()

    @cached_property
    def letters(self) -> str:
        """The letters in order, without numbers: `NCHWc`."""
        return "".join(letter for letter, _ in self.dims)

    @cached_property
    def blocks(self) -> Mapping[str, int]:
        """The sizes of blocks, by the capital of what is cut into them."""
        return {letter.upper(): size for letter, size in self.dims if letter.islower()}

    def index(self, letter: str) -> int:
        """The position of a letter."""
        return self.letters.index(letter)

    def parts(self, letter: str) -> str:
        """The letters of a dimension: `C`, or `Cc` if it is cut into blocks."""
        return letter + letter.lower() if letter in self.blocks else letter

    def pick(self, shape: Sequence[Dim | None], letters: str) -> tuple[Dim | None, ...]:
        """The dimensions that capitals stand for; of what is cut into blocks, the length of all blocks together."""
        found = whole_dims(self.dims, shape)
        return tuple(found[letter] for letter in letters)

    def arrange(self, dims: Mapping[str, Dim | None]) -> tuple[Dim | None, ...]:
        """The shape in this layout; what is cut into blocks has to be a multiple of them."""
        return tuple(self._arranged(letter, size, dims) for letter, size in self.dims)

    def _arranged(self, letter: str, size: int, dims: Mapping[str, Dim | None]) -> Dim | None:
        if letter.islower():
            return constant(size)
        dim, block = dims[letter], self.blocks.get(letter)
        return dim if dim is None or block is None else DEFAULT_PROVER.simplify(floordiv(dim, block))


def layout(inference: Inference, name: str, default: str, blocked: str = "") -> Layout:
    """The property `name`, a permutation of the capitals of the default, which it is if it is absent.

    What the letters `blocked` stand for may be cut into blocks.
    """
    found = Layout(inference.optional_string(name) or default)
    capitals = "".join(letter for letter in Layout(default).letters if letter.isupper())
    if sorted(filter(str.isupper, found.letters)) != sorted(capitals) or not found.blocks.keys() <= set(blocked):
        extra = f" with blocks of {' or '.join(blocked)} at most" if blocked else ""
        inference.fail(f"{name} expected a permutation of {capitals}{extra}, got {found.text}")
    return found


def require_layout(inference: Inference, index: int, layout: Layout) -> tuple[Dim | None, ...]:
    """The shape of tensor operand `index`, which has the rank of a layout and blocks of its sizes."""
    dims = require_rank(inference, index, len(layout.dims))
    require_blocks(inference, dims, layout.dims)
    return dims


def require_blocks(inference: Inference, dims: Iterable[Dim | None], layout: BlockedLayout) -> None:
    """Fails if a dimension that is a block does not have its size."""
    for dim, (letter, size) in zip(dims, layout, strict=True):
        if letter.islower():
            inference.require_equal(dim, constant(size), f"blocks {letter} of {size}")
