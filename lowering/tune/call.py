"""The arguments of a recorded kernel call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lowering.tune.choice import is_size


@dataclass(frozen=True)
class Call:
    """Arguments of a kernel: the dtype and shape of a tensor, or a number."""

    kernel: str
    arguments: tuple[tuple[str, tuple[int, ...]] | float, ...]

    @property
    def is_empty(self) -> bool:
        """Whether a tensor has no elements, so that timing the call is meaningless."""
        return any(isinstance(each, tuple) and 0 in each[1] for each in self.arguments)

    def is_alike(self, other: Call) -> bool:
        """Whether both can be calls of one function: equally many arguments of the same kinds."""
        return [_kind(each) for each in self.arguments] == [_kind(each) for each in other.arguments]

    def as_json(self) -> list[object]:
        """The arguments as JSON data, without the name of the kernel."""
        return [list(each) if isinstance(each, tuple) else each for each in self.arguments]

    @staticmethod
    def from_json(kernel: str, data: object) -> Call:
        """The call that `as_json` gave; `ValueError` for anything else."""
        if not isinstance(data, list):
            raise ValueError(f"expected the arguments of a call, got {data}")
        return Call(kernel, tuple(_argument_of(each) for each in cast("list[object]", data)))


def _argument_of(data: object) -> tuple[str, tuple[int, ...]] | float:
    if isinstance(data, int | float) and not isinstance(data, bool):
        return data
    if isinstance(data, list) and len(pair := cast("list[object]", data)) == 2:
        dtype, shape = pair
        if isinstance(dtype, str) and isinstance(shape, list) and all(map(is_size, cast("list[object]", shape))):
            return dtype, tuple(cast("list[int]", shape))
    raise ValueError(f"expected a number, or the dtype and the shape of a tensor, got {data}")


def _kind(argument: tuple[str, tuple[int, ...]] | float) -> tuple[str, int] | str:
    return (argument[0], len(argument[1])) if isinstance(argument, tuple) else "number"
