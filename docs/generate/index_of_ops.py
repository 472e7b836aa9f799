"""The index of relax ops, `relax_dialect/index.py`: collected from the classes."""

from __future__ import annotations

from pathlib import Path

from index_of_converters import formatted, table

from relax_dialect.loading import family_ops
from relax_dialect.ops.operator import Operator

HEAD = '''"""The modules of `relax_dialect.ops`, with the names of their ops. A program loads the modules of its ops.

Generated from the classes of ops by `make docs`. Modules of the same stem, but where a table names others, say what the
ops mean (`interpreter/frame.py`) and, of operators, which kernels they become (`lowering/relax_to_tir/kernel.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

'''

OPS = Path(__file__).parents[2] / "relax_dialect" / "ops"


def op_index() -> str:
    """The text of `relax_dialect/index.py`."""
    operators: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for family in sorted(path.stem for path in OPS.glob("*.py") if path.stem != "__init__"):
        if ops := list(family_ops(family)):
            group = operators if all(issubclass(op, Operator) for op in ops) else others
            group[family] = [op.name.removeprefix("relax.") for op in ops]
    return formatted(f"{HEAD}{table('OPERATORS', operators)}\n\n{table('OTHER_OPS', others)}\n")
