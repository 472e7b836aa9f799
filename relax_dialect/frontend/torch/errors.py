"""What can be wrong with an exported program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from relax_dialect.frontend.torch.program import FxNode

NO_CONVERTER = "there is no converter"
MOST_NODES = 3
"""So many nodes of an operator are named; the others are counted."""


@dataclass(frozen=True)
class UnsupportedOperator:
    """An operator that cannot be imported, with the nodes that have it for the same reason."""

    name: str
    """As PyTorch writes it, with its overload: `aten.add.Tensor`."""

    nodes: tuple[str, ...]
    reason: str
    source: str = ""
    """The line of the model that the first of the nodes comes of: `File "m.py", line 7, in forward: return x[0]`."""

    arguments: tuple[str, ...] = ()
    """The names of the operator's arguments."""

    def __str__(self) -> str:
        named = ", ".join(self.nodes[:MOST_NODES])
        more = f" and {len(self.nodes) - MOST_NODES} more" if len(self.nodes) > MOST_NODES else ""
        source = f"\n    {self.source}" if self.source else ""
        return f"{self.name} ({named}{more}): {self.reason}{source}"

    @property
    def way_out(self) -> str:
        """How to give the importer a converter of this operator."""
        arguments = ", ".join(f'node.value("{name}")' for name in self.arguments)
        return f"""\
A converter is a function of the node; register it before the import (docs/howto/torch.md):
  @relax_dialect.frontend.torch.converts("{self.name}")
  def convert(node):
      return ...  # made of {arguments or "node.arguments"} by relax_dialect.builder.op
or give the program a decomposition (ExportedProgram.run_decompositions)."""


@dataclass
class Problems:
    """The nodes that could not be imported so far, by operator and reason."""

    found: dict[tuple[str, str], UnsupportedOperator] = field(
        default_factory=dict[tuple[str, str], UnsupportedOperator]
    )

    def add(self, operator: str, reason: str, node: FxNode) -> None:
        """Notes a node."""
        key = operator, reason
        if key not in self.found:
            schema = getattr(node.target, "_schema", None)
            arguments = () if schema is None else tuple(each.name for each in schema.arguments)
            self.found[key] = UnsupportedOperator(operator, (), reason, source_of(node), arguments)
        self.found[key] = replace(self.found[key], nodes=(*self.found[key].nodes, location_of(node)))

    def operators(self) -> list[UnsupportedOperator]:
        """The operators of these nodes."""
        return list(self.found.values())


def location_of(node: FxNode) -> str:
    """The name of a node after that of the module around it: `layers.0.attention/linear_3`."""
    stack = node.meta.get("nn_module_stack")
    path = next(reversed(stack.values()))[0] if stack else ""
    return f"{path}/{node.name}" if path and not path.startswith("_") else node.name


def source_of(node: FxNode) -> str:
    """The innermost line of Python that a node comes of, as PyTorch noted it; empty if it did not."""
    trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    frames = [at for at, line in enumerate(trace) if line.startswith('File "')]
    return ": ".join(line for line in trace[frames[-1] : frames[-1] + 2] if line) if frames else ""


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
        ways = [each.way_out for each in ordered if each.reason == NO_CONVERTER][:1]
        lines = [f"the program has {what} not supported:", *(f"  {each}" for each in ordered), *ways]
        return cls("\n".join(lines), ordered)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""
