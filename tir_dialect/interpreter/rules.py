"""The rule by which each kind of op becomes Python."""

from __future__ import annotations

from xdsl.ir import Operation

from tir_dialect.interpreter.emit_control import CONTROL_RULES
from tir_dialect.interpreter.emit_memory import MEMORY_RULES, RAW_MEMORY_RULES
from tir_dialect.interpreter.emit_values import SCALAR_RULES, VECTOR_RULES, emit_elementwise
from tir_dialect.interpreter.emitter import Rule

_RULES: dict[type[Operation], Rule] = {
    **CONTROL_RULES,
    **MEMORY_RULES,
    **RAW_MEMORY_RULES,
    **SCALAR_RULES,
    **VECTOR_RULES,
}


def rule_of(op: Operation) -> Rule:
    """The rule for an op; what has none of its own is taken for elementwise arithmetic, whose rule refuses the rest."""
    return _RULES.get(type(op), emit_elementwise)
