"""The statements that an extern body consists of: plain records, evaluated in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar, Var
from tir_dialect.te.tensor import Tensor

LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled"]


@dataclass(frozen=True, eq=False)
class Store:
    """`tensor[indices] = value`."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, eq=False)
class Let:
    """Evaluate `value` here and once."""

    var: Var
    value: Expr


@dataclass(frozen=True, eq=False)
class Alloc:
    """Uninitialised memory that lives until the end of the enclosing region."""

    tensor: Tensor
    scope: str


@dataclass(frozen=True, eq=False)
class For:
    """`body` for `var` from `lo` to `hi`, exclusive."""

    var: Var
    lo: Expr
    hi: Expr
    kind: LoopKind
    body: Body


@dataclass(frozen=True, eq=False)
class While:
    """`body` as long as `condition`, evaluated before each round, holds."""

    condition: Expr
    body: Body


@dataclass(frozen=True, eq=False)
class If:
    """`then` where `condition` holds, else `otherwise`."""

    condition: Expr
    then: Body
    otherwise: Body


@dataclass(frozen=True, eq=False)
class Block:
    """A block with a loop around it for each of its iterators."""

    name: str
    axes: tuple[IterVar, ...]
    body: Body


@dataclass(frozen=True, eq=False)
class Call:
    """A call of an external C function (`packed` false) or of a packed function, for its effect."""

    symbol: str
    args: tuple[Expr | Tensor, ...]
    packed: bool


Statement: TypeAlias = "Store | Let | Alloc | For | While | If | Block | Call"
Body: TypeAlias = "tuple[Statement, ...]"


def nested(statement: Statement) -> tuple[Body, ...]:
    """The bodies inside a statement."""
    match statement:
        case For() | While() | Block():
            return (statement.body,)
        case If():
            return (statement.then, statement.otherwise)
        case _:
            return ()


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates."""
    match statement:
        case Store():
            return (*statement.indices, statement.value)
        case Let():
            return (statement.value,)
        case For():
            return (statement.lo, statement.hi)
        case While() | If():
            return (statement.condition,)
        case Call():
            return tuple(arg for arg in statement.args if isinstance(arg, Expr))
        case _:
            return ()
