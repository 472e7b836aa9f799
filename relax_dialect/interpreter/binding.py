"""`match_cast`."""

from __future__ import annotations

from relax_dialect.interpreter.conform import Contract
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.struct_info.base import as_struct_infos


@runs(MatchCastOp)
def match_cast(frame: Frame, op: MatchCastOp) -> None:
    """Checks the value and binds symbols."""
    value = frame.get(op.value)
    place = f"{frame.function}: {op.subject}{where(op)}"
    bound = frame.bind(op, lambda: Contract(as_struct_infos((op.result.type,)), [place], tuple(op.symbols)), [value])
    frame.set(op.result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])
