"""What can be wrong with an exported program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

WAY_OUT = (
    "give the program a decomposition of it (ExportedProgram.run_decompositions), or register a converter "
    "(relax_dialect.frontend.torch.registry.converts)"
)
MOST_NODES = 3
"""So many nodes of an operator are named; the others are counted."""


@dataclass(frozen=True)
class UnsupportedOperator:
    """An operator that cannot be imported, with the nodes that have it for the same reason."""

    name: str
    """As PyTorch writes it, with its overload: `aten.add.Tensor`."""

    nodes: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        named = ", ".join(self.nodes[:MOST_NODES])
        more = f" and {len(self.nodes) - MOST_NODES} more" if len(self.nodes) > MOST_NODES else ""
        return f"{self.name} ({named}{more}): {self.reason}"


@dataclass
class Problems:
    """The nodes that could not be imported so far, by operator and reason."""

    nodes: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def add(self, operator: str, reason: str, node: str) -> None:
        """Notes a node."""
        self.nodes.setdefault((operator, reason), []).append(node)

    def operators(self) -> list[UnsupportedOperator]:
        """The operators of these nodes."""
        return [UnsupportedOperator(name, tuple(nodes), reason) for (name, reason), nodes in self.nodes.items()]


class TorchImportError(ImportError):
    """A program that cannot be imported; `operators` are those that are not supported, all that were found."""

    def __init__(self, message: str, operators: Sequence[UnsupportedOperator] = ()):
        super().__init__(message)
        self.operators = tuple(operators)

    @classmethod
    def unsupported(cls, operators: Sequence[UnsupportedOperator]) -> TorchImportError:
        """The error that lists operators, those with most nodes first."""
        ordered = sorted(operators, key=lambda each: -len(each.nodes))
        what = "an operator that is" if len(ordered) == 1 else f"{len(ordered)} operators that are"
        return cls("\n  ".join([f"the program has {what} not supported:", *map(str, ordered)]), ordered)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""
