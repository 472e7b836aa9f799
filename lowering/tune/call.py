"""The arguments of a recorded kernel call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

from lowering.tune.choice import is_size
from tir_dialect.dims import MatchError, match
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


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


LEAST_SIZE, MOST_ELEMENTS = 4, 1 << 22
"""Sizes below this stay as they are, for which times say nothing; calls of more elements take too long."""


def nearby(func: PrimFuncOp, calls: Iterable[Call]) -> list[Call]:
    """The calls with half and with twice the sizes, without recorded and very large ones."""
    known = {call.arguments for call in calls}
    found = dict.fromkeys(other for call in calls for other in _scaled(func, call))
    return [call for call in found if call.arguments not in known and _elements(call) < MOST_ELEMENTS]


def _elements(call: Call) -> int:
    return sum(prod(each[1]) for each in call.arguments if isinstance(each, tuple))


def _scaled(func: PrimFuncOp, call: Call) -> Iterator[Call]:
    sizes = _sizes(func, call)
    count = len(call.arguments) - len(func.params)  # the values of symbols come before the parameters
    for double in (False, True):
        other = {name: _other(size, double) for name, size in sizes.items()}
        if other == sizes or not all(_is_allowed(func, name, size) for name, size in other.items()):
            continue
        numbers = [other[name] for name in func.symbol_names[:count]]
        arguments = [
            (argument[0], tuple(dim.evaluate(other) for dim in param.type.shape))
            if isinstance(param.type, BufferType) and isinstance(argument, tuple)
            else argument
            for param, argument in zip(func.params, call.arguments[count:], strict=True)
        ]
        yield Call(call.kernel, (*numbers, *arguments))


def _sizes(func: PrimFuncOp, call: Call) -> dict[str, int]:
    """The values of all symbols in a call; none if it does not tell them."""
    count = len(call.arguments) - len(func.params)
    numbers = zip(func.symbol_names, call.arguments[:count], strict=False)
    given = {name: int(number) for name, number in numbers if not isinstance(number, tuple)}
    pairs = [
        pair
        for param, argument in zip(func.params, call.arguments[count:], strict=True)
        if isinstance(param.type, BufferType) and isinstance(argument, tuple)
        for pair in zip(param.type.shape, argument[1], strict=True)
    ]
    try:
        found = match([dim for dim, _ in pairs], [size for _, size in pairs], given)
    except MatchError:
        return {}
    return found if found.keys() == set(func.symbol_names) else {}


def _other(size: int, double: bool) -> int:
    return size if size < LEAST_SIZE else 2 * size if double else size // 2


def _is_allowed(func: PrimFuncOp, name: str, size: int) -> bool:
    low, high = next(symbol.interval for symbol in func.symbols if symbol.symbol.data == name)
    return low <= size and (high is None or size <= high)
