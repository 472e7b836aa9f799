"""What can be wrong with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class UnsupportedNode:
    """A node that cannot be imported."""

    name: str
    """The node's name, or that of its first output if it has none."""

    op_type: str
    """The operator, with its domain unless that is the default one."""

    reason: str

    def __str__(self) -> str:
        return f"{self.op_type} ({self.name}): {self.reason}"


class OnnxImportError(ImportError):
    """A model that cannot be imported: it is malformed, or has nodes that are not supported.

    `nodes` are the unsupported ones, all that were found; it is empty if something else is wrong.
    """

    def __init__(self, message: str, nodes: Sequence[UnsupportedNode] = ()):
        super().__init__(message)
        self.nodes = tuple(nodes)

    @classmethod
    def unsupported(cls, nodes: Sequence[UnsupportedNode]) -> OnnxImportError:
        """The error that lists nodes."""
        what = "a node that is" if len(nodes) == 1 else f"{len(nodes)} nodes that are"
        return cls("\n  ".join([f"the model has {what} not supported:", *map(str, nodes)]), nodes)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""


class NeedsControlFlow(Exception):
    """The graph has branches or loops, so that it cannot be one dataflow region."""


class UseFunction(Exception):
    """A converter leaves a node to the body that the standard gives its operator."""
