"""Copies of a matrix with its axes exchanged, as a routine: blocks as large as a vector go through registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.emit.shuffles import transposed
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class TransposingRoutine(Routine):
    """Element `r` of line `i` goes to position `i` of line `r`; the vectors of lines are `lower` to `upper`."""

    dtype: AnyFloat
    lanes: int
    is_exact: bool = False
    """Whether nothing else is written: else whole vectors are, and as many lines, with anything past the end."""

    @property
    @override
    def label(self) -> str:
        return f"transpose.{self.dtype}.{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("lower", "upper", "count", "length", "first", "each", "out", "out_each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "matrix", "output")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        lanes, last = self.lanes, code.sub(size["count"], 1)
        blocks = code.divide(code.add(size["length"], lanes - 1), lanes)
        with (
            code.loop(size["upper"], "vector", lower=size["lower"], vectorize=False) as vector,
            code.loop(blocks, "block", vectorize=False) as block,
        ):
            top, start = code.mul(vector, lanes), code.mul(block, lanes)
            mask = code.leading(code.sub(size["length"], start), lanes)
            lines = [code.minimum(code.add(top, i), last) for i in range(lanes)]
            offsets = [code.add(code.add(size["first"], code.mul(line, size["each"])), start) for line in lines]
            rows = transposed(code, [code.load(buffer["matrix"], [offset], lanes, mask) for offset in offsets])
            begin = code.add(code.add(size["out"], code.mul(start, size["out_each"])), top)
            count, left = code.sub(size["count"], top), code.sub(size["length"], start)
            for i, row in enumerate(rows):
                inside = code.select(code.compare("sgt", left, i), count, code.index(0)) if self.is_exact else None
                on = None if inside is None else code.leading(inside, lanes)
                code.store(row, buffer["output"], [code.add(begin, code.mul(size["out_each"], i))], on)
