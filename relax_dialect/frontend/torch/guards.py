"""Conditions on sizes for which a program was exported: `ExportedProgram._guards_code`.

Where the code of a model branches on sizes, or makes an integer of one, `torch.export` follows one way and notes that
the program is of sizes that go it. Other sizes are errors; the noted text is part of the message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import f64, i64

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import dim_at_most
from relax_dialect.frontend.torch.program import ExportedProgram, Refusal
from relax_dialect.frontend.torch.symbols import SPECIALISED, Numbers, Quotient, dims_of, number_as_quotient, rounded
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, constant, floordiv, maximum, minimum, mod, product, symbol


@dataclass(frozen=True)
class SizeGuard:
    """That a dimension is not greater than another."""

    number: Dim
    limit: Dim
    text: str
    """The condition as PyTorch writes it."""

    is_mark: bool
    """Whether it only says that a size that is computed is not 0 or 1, which PyTorch takes of every size."""

    @property
    def symbols(self) -> frozenset[str]:
        """What it is about."""
        return self.number.symbols | self.limit.symbols


@dataclass(frozen=True)
class NumberGuard:
    """A condition on sizes that is computed in `f64`, as Python does."""

    condition: ast.Compare
    inputs: Mapping[str, Sequence[Dim]]

    @property
    def text(self) -> str:
        """The condition as PyTorch writes it."""
        return _text(self.condition)


def size_guards(program: ExportedProgram, texts: Sequence[str]) -> list[SizeGuard | NumberGuard]:
    """The conditions on sizes of inputs among those that PyTorch says, each once."""
    nodes = [node for node in program.graph_module.graph.nodes if node.op == "placeholder"]
    specs = program.graph_signature.input_specs
    given = [node for node, spec in zip(nodes, specs, strict=True) if spec.kind.name == "USER_INPUT"]
    inputs = dict[str, list[Dim]]()
    for at, node in enumerate(given):
        shape = getattr(node.meta.get("val"), "shape", None)
        if shape is not None:
            inputs[node.name] = inputs[f"flat_args_{at}"] = dims_of(shape)
    return [guard for text in dict.fromkeys(texts) for guard in _guards(text, inputs)]


Guards = Sequence[SizeGuard | NumberGuard]


def guarded(bb: BlockBuilder, results: Sequence[Expr], guards: Guards) -> list[Expr]:
    """The results, the first tensor among them once the conditions have been checked."""
    found = list(results)
    at = next((at for at, each in enumerate(found) if isinstance(each.type, TensorType)), None)
    for guard in guards:
        if at is None or (isinstance(guard, SizeGuard) and guard.is_mark):
            continue
        message = f"the program is exported for sizes with {guard.text}"
        number, limit = (guard.number, guard.limit) if isinstance(guard, SizeGuard) else _as_dims(bb, guard)
        found[at] = dim_at_most(bb, found[at], number, limit, message)
    return found


def _as_dims(bb: BlockBuilder, guard: NumberGuard) -> tuple[Dim, Dim]:
    """1, and a symbol that is 1 if the condition holds, else 0."""
    left, right = (_scalar(bb, each, guard.inputs) for each in (guard.condition.left, guard.condition.comparators[0]))
    holds = op.astype(op.reshape(_COMPARISONS[type(guard.condition.ops[0])](left, right), [1]), i64)
    name = bb.fresh_symbol("holds")
    bb.frame.taken.add(name)
    bb.match_cast(op.tensor_to_shape(holds), ShapeType([symbol(name)]))
    return constant(1), symbol(name)


def without_marks(bounds: Mapping[str, tuple[int, int | None]], guards: Guards) -> dict[str, tuple[int, int | None]]:
    """The bounds of symbols, less what follows only of marks: `x[1:]` says that `x` has at least 3 rows."""
    of_sizes = [each for each in guards if isinstance(each, SizeGuard)]
    return {
        name: (_least(name, least, [each for each in of_sizes if each.symbols == frozenset((name,))]), most)
        for name, (least, most) in bounds.items()
    }


def _least(name: str, least: int, guards: Sequence[SizeGuard]) -> int:
    """The least value of a symbol that the conditions on it allow, where `least` is due to marks."""
    marks = [each for each in guards if each.is_mark]
    others = [each for each in guards if not each.is_mark]
    if least > MOST_MARKED or least <= SPECIALISED or all(_holds(each, name, least - 1) for each in marks):
        return least
    while least and all(_holds(each, name, least - 1) for each in others):
        least -= 1
    return least


MOST_MARKED = 4096
"""Bounds above this are not looked into."""


def _holds(guard: SizeGuard, name: str, value: int) -> bool:
    return _is_at_most(guard.number, guard.limit, {name: value})


# Texts of Python


def _guards(text: str, inputs: Mapping[str, Sequence[Dim]]) -> Iterator[SizeGuard | NumberGuard]:
    """The conditions of a text; none if they are about something else than sizes."""
    try:
        conditions = _conjuncts(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError):
        return
    for condition in conditions:
        if not isinstance(condition, ast.Compare) or type(condition.ops[0]) not in _RELATIONS:
            continue
        try:
            yield from _of_dims(condition, inputs)
        except Refusal:
            if all(_is_of_sizes(each, inputs) for each in (condition.left, condition.comparators[0])):
                yield NumberGuard(condition, inputs)


def _conjuncts(condition: ast.expr) -> list[ast.expr]:
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        return [each for part in condition.values for each in _conjuncts(part)]
    return [condition]


def _of_dims(condition: ast.Compare, inputs: Mapping[str, Sequence[Dim]]) -> list[SizeGuard]:
    left, right = (_number(each, inputs) for each in (condition.left, condition.comparators[0]))
    one, other = product([left.top, right.bottom]), product([right.top, left.bottom])
    pairs = _RELATIONS[type(condition.ops[0])](one, other)
    is_mark = _is_mark(condition, left, right) or all(_follows_of_marks(*pair) for pair in pairs)
    return [SizeGuard(number, limit, _text(condition), is_mark) for number, limit in pairs]


def _follows_of_marks(number: Dim, limit: Dim) -> bool:
    """Whether this holds for all of many sizes that are at least 2."""
    names: list[str] = sorted(number.symbols | limit.symbols)
    count = len(_SIZES)
    for turn in range(count**2):
        values = {name: _SIZES[(turn // count if at % 2 else turn) % count] for at, name in enumerate(names)}
        if not _is_at_most(number, limit, values):
            return False
    return bool(names)


def _is_at_most(number: Dim, limit: Dim, values: Mapping[str, int]) -> bool:
    """Whether a condition holds for sizes; not if one of its divisors is 0 for them."""
    try:
        return number.evaluate(values) <= limit.evaluate(values)
    except ZeroDivisionError:
        return False


_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 31, 100)


def _text(condition: ast.Compare) -> str:
    return re.sub(r"L\['(\w+)'\]", r"\1", ast.unparse(condition))


Relations = Callable[[Dim, Dim], "list[tuple[Dim, Dim]]"]


def _less(one: Dim, other: Dim) -> list[tuple[Dim, Dim]]:
    return [(one + 1, other)]


_RELATIONS: Mapping[type[ast.cmpop], Relations] = {
    ast.Eq: lambda one, other: [(one, other), (other, one)],
    ast.NotEq: lambda one, other: [(constant(1), maximum(one - other, other - one))],
    ast.Lt: _less,
    ast.Gt: lambda one, other: _less(other, one),
    ast.LtE: lambda one, other: [(one, other)],
    ast.GtE: lambda one, other: [(other, one)],
}


def _is_mark(condition: ast.Compare, left: Quotient, right: Quotient) -> bool:
    """Whether this says that a size is at least 2, or that a size of one symbol is at least 1, or not that number.

    Models branch on remainders, so `n % 4 > 0` is no mark; `-(n % 4) < 0` is PyTorch's, of the edge of a tensor.
    """
    relation, minus = condition.ops[0], _of(constant(-1))
    has_remainder = any(isinstance(each, ast.Mod) for each in ast.walk(condition))
    if isinstance(relation, ast.Lt | ast.LtE):
        pairs = [(right, left, has_remainder), (left.times(minus), right.times(minus), False)]
    else:
        pairs = [(left, right, has_remainder), (right.times(minus), left.times(minus), False)]
    for size, bound, is_branch in pairs:
        number = bound.top.constant_value if bound.bottom.constant_value == 1 else None
        if number is None or size.top.constant_value is not None or is_branch:
            continue
        least = number + isinstance(relation, ast.Lt | ast.Gt | ast.NotEq)
        if least == SPECIALISED or (least == 1 and len(size.top.symbols) == 1):
            return not isinstance(relation, ast.Eq)
    return False


def _number(node: ast.expr, inputs: Mapping[str, Sequence[Dim]]) -> Quotient:
    match node:
        case ast.Constant(value=bool() | str()):
            raise Refusal("not a number")
        case ast.Constant(value=int() | float()):
            return number_as_quotient(cast("float", node.value))
        case ast.UnaryOp(op=ast.USub()):
            return _number(node.operand, inputs).times(_of(constant(-1)))
        case ast.BinOp():
            return _arithmetic(node, inputs)
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="size")), slice=ast.Constant(value=int())):
            return _of(_size(node, inputs))
        case ast.Call(func=ast.Attribute(attr="trunc" | "floor" | "ceil")) if len(node.args) == 1:
            how = "up" if cast("ast.Attribute", node.func).attr == "ceil" else "down"
            return _of(rounded(how, _number(node.args[0], inputs)))
        case ast.Call(func=ast.Attribute(attr="sym_float")) if len(node.args) == 1:
            return _number(node.args[0], inputs)
        case ast.Call(func=ast.Name(id="round")) if len(node.args) == 1:
            return _of(rounded("nearest", _number(node.args[0], inputs)))
        case ast.Call(func=ast.Name(id="max" | "min")):
            make = maximum if cast("ast.Name", node.func).id == "max" else minimum
            first, *others = [_whole(each, inputs) for each in node.args]
            for each in others:
                first = make(first, each)
            return _of(first)
        case _:
            raise Refusal("not made of sizes")


def _of(dim: Dim) -> Quotient:
    return Quotient(dim, constant(1))


def _whole(node: ast.expr, inputs: Mapping[str, Sequence[Dim]]) -> Dim:
    found = _number(node, inputs)
    if found.bottom.constant_value != 1:
        raise Refusal("not an integer")
    return found.top


def _arithmetic(node: ast.BinOp, inputs: Mapping[str, Sequence[Dim]]) -> Quotient:
    if isinstance(node.op, ast.FloorDiv | ast.Mod):
        make = floordiv if isinstance(node.op, ast.FloorDiv) else mod
        return _of(make(_whole(node.left, inputs), _whole(node.right, inputs)))
    left, right = _number(node.left, inputs), _number(node.right, inputs)
    match node.op:
        case ast.Add():
            return left.plus(right)
        case ast.Sub():
            return left.plus(right.times(_of(constant(-1))))
        case ast.Mult():
            return left.times(right)
        case ast.Div():
            return left.over(right)
        case _:
            raise Refusal("not made of sizes")


def _size(node: ast.Subscript, inputs: Mapping[str, Sequence[Dim]]) -> Dim:
    if (found := _find_size(node, inputs)) is None:
        raise Refusal("not the size of an input")
    return found


def _find_size(node: ast.Subscript, inputs: Mapping[str, Sequence[Dim]]) -> Dim | None:
    """The size that `L['x'][0].size()[1]` names: its input is the placeholder `x_0`; `None` if there is none."""
    call = cast("Any", node.value)
    keys = list[str]()
    source: ast.expr = call.func.value
    while isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Constant):
        keys.insert(0, re.sub(r"\W", "", str(source.slice.value)))
        source = source.value
    dims, axis = inputs.get("_".join(keys), ()), cast("int", cast("ast.Constant", node.slice).value)
    return dims[axis] if 0 <= axis < len(dims) else None


# Scalars


_COMPARISONS: Mapping[type[ast.cmpop], Callable[..., Expr]] = {
    ast.Eq: op.equal,
    ast.NotEq: op.not_equal,
    ast.Lt: op.less,
    ast.LtE: op.less_equal,
    ast.Gt: op.greater,
    ast.GtE: op.greater_equal,
}
_OPERATORS: Mapping[type[ast.operator], Callable[..., Expr]] = {
    ast.Add: op.add,
    ast.Sub: op.subtract,
    ast.Mult: op.multiply,
    ast.Div: op.divide,
    ast.FloorDiv: op.floor_divide,
    ast.Mod: op.floor_mod,
    ast.Pow: op.power,
}


def _itself(x: Expr) -> Expr:
    return x


_CALLS: Mapping[str, Callable[[Expr], Expr]] = {
    "trunc": op.trunc,
    "floor": op.floor,
    "ceil": op.ceil,
    "round": op.round,
    "sqrt": op.sqrt,
    "sym_float": _itself,
    "_sym_sqrt": op.sqrt,
    "float": _itself,
}


def _called(node: ast.Call) -> str:
    return (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )


def _is_of_sizes(node: ast.expr, inputs: Mapping[str, Sequence[Dim]]) -> bool:
    """Whether `_scalar` can compute this."""
    match node:
        case ast.Constant():
            return type(node.value) in (int, float)
        case ast.UnaryOp(op=ast.USub()):
            return _is_of_sizes(node.operand, inputs)
        case ast.BinOp():
            return type(node.op) in _OPERATORS and all(_is_of_sizes(each, inputs) for each in (node.left, node.right))
        case ast.Call():
            return _called(node) in _CALLS and len(node.args) == 1 and _is_of_sizes(node.args[0], inputs)
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="size")), slice=ast.Constant(value=int())):
            return _find_size(node, inputs) is not None
        case _:
            return False


def _scalar(bb: BlockBuilder, node: ast.expr, inputs: Mapping[str, Sequence[Dim]]) -> Expr:
    """A number of `f64`."""
    match node:
        case ast.Constant():
            return bb.const(cast("float", node.value), f64)
        case ast.UnaryOp():
            return op.negative(_scalar(bb, node.operand, inputs))
        case ast.BinOp():
            return _OPERATORS[type(node.op)](*(_scalar(bb, each, inputs) for each in (node.left, node.right)))
        case ast.Call():
            return _CALLS[_called(node)](_scalar(bb, node.args[0], inputs))
        case _:
            return op.astype(Numbers(bb, {}).size(_size(cast("ast.Subscript", node), inputs)), f64)
