"""The statements that an extern body consists of: plain records, evaluated in order; and the calls among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from tir_dialect.dims import Dim
from tir_dialect.te import operators
from tir_dialect.te.coerce import as_index
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar, Tensor, Var
from tir_dialect.te.operators import DTypeLike

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
class Init:
    """Statements of a block that are executed before the first step of its reduction."""

    body: Body


@dataclass(frozen=True, eq=False)
class Call:
    """A call of an external C function (`packed` false) or of a packed function, for its effect."""

    symbol: str
    args: tuple[Expr | Tensor, ...]
    packed: bool


Statement: TypeAlias = "Store | Let | Alloc | For | While | If | Block | Init | Call"
Body: TypeAlias = "tuple[Statement, ...]"


def nested(statement: Statement) -> tuple[Body, ...]:
    """The bodies inside a statement."""
    match statement:
        case For() | While() | Block() | Init():
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


Argument: TypeAlias = "Tensor | Expr | Dim | int"


@overload
def call_extern(dtype: DTypeLike, symbol: str, *args: Expr) -> Expr: ...
@overload
def call_extern(dtype: DTypeLike, symbol: str, *args: Argument) -> Expr | Call: ...
def call_extern(dtype: DTypeLike, symbol: str, *args: Argument) -> Expr | Call:
    """A call of the C function `symbol`. With scalar arguments it is an expression; the function must be pure, since it
    may be called any number of times.

    With a tensor among the arguments, which is passed as the address of its data, it is a statement for `te.extern`.
    """
    known = arguments(args)
    scalars = [arg for arg in known if isinstance(arg, Expr)]
    if len(scalars) == len(known):
        return operators.call_extern(dtype, symbol, *scalars)
    return Call(symbol, known, packed=False)


def call_packed(symbol: str, *args: Argument) -> Call:
    """A statement for `te.extern` that calls a function of the tvm-ffi registry; tensors are passed as tensors."""
    return Call(symbol, arguments(args), packed=True)


def arguments(args: Sequence[Argument]) -> tuple[Tensor | Expr, ...]:
    """The arguments of a call as expressions; sizes and Python integers are passed as 64-bit integers (`index`)."""
    return tuple(arg if isinstance(arg, Tensor | Expr) else as_index("te: an argument of a call", arg) for arg in args)
