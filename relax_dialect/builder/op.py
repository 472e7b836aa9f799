"""The operators as functions: `op.matmul(x, w)`, `op.nn.relu(x)`, `op.split(x, sections=2)`.

Every function has the parameters of the op's constructor and emits the op where the builder stands: that of the
expressions among the arguments, or the one whose function is open. Names that Python keeps for itself end in `_`, as
`op.assert_`. The stub `op.pyi`, which editors and type checkers read, is written by `make docs`.
"""

from __future__ import annotations

from typing import Any

from relax_dialect.builder.operator_functions import function_of
from relax_dialect.loading import near_operators, operator_classes


class Namespace:
    """The functions of the ops whose names begin with a prefix, made when they are asked for."""

    def __init__(self, prefix: str):
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        """The function of the op `prefix.name`, or a namespace; `AttributeError` with near misses."""
        full = f"{self._prefix}.{name.removesuffix('_')}"
        classes = operator_classes()
        # No op has the name of a namespace, which is looked for first: a name that is not known is one of an extension.
        if any(other.startswith(f"{full}.") for other in classes):
            found: Any = Namespace(full)
        elif full in classes:
            found = function_of(classes[full])
        else:
            close = near_operators(full, classes)
            advice = f"; did you mean {' or '.join(close)}" if close else ""
            raise AttributeError(f"there is no operator {full}{advice}")
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        start = len(self._prefix) + 1
        return sorted({n[start:].partition(".")[0] for n in operator_classes() if n.startswith(f"{self._prefix}.")})


_operators = Namespace("relax")


def __getattr__(name: str) -> Any:
    return getattr(_operators, name)


def __dir__() -> list[str]:
    return dir(_operators)
