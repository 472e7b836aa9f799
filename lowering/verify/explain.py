"""Messages for violations of dominance: what is used, where it is defined, and why that is not visible."""

from __future__ import annotations

from xdsl.ir import Block, ErasedSSAValue, Operation, OpResult, SSAValue
from xdsl.traits import IsolatedFromAbove

from lowering.diagnostics import Finding
from lowering.locations import source_position
from lowering.verify.symbols import witnesses


def invisible_operand(op: Operation, index: int) -> Finding:
    """Operand `index` of `op`, which its definition does not dominate."""
    value = op.operands[index]
    return Finding.at(op, f"operand #{index} ({_name(value)}) {_why_invisible(op, value)}")


def unbound_symbol(op: Operation, symbol: str, where: str) -> Finding:
    """A symbol that the type or attribute `where` of `op` names and that no visible value witnesses."""
    witness = _witness_elsewhere(op, symbol)
    if witness is None:
        reason = "which nothing binds"
        hint = "bind it among the symbols of the function, or by a 'relax.match_cast' above"
    else:
        reason = f"whose witness {_name(witness)}{_at(witness)} does not dominate this use"
        hint = None
    return Finding.at(op, f"{where} uses symbol {symbol}, {reason}", hint)


def bound_twice(op: Operation, symbol: str, value: SSAValue, earlier: SSAValue) -> Finding:
    """A symbol that is witnessed although it is in scope."""
    return Finding.at(
        op,
        f"{_name(value)} binds symbol {symbol}, which {_name(earlier)}{_at(earlier)} has bound in the same scope",
        "choose another name, or use the symbol instead of binding it",
    )


def _why_invisible(op: Operation, value: SSAValue) -> str:
    if isinstance(value, ErasedSSAValue):
        return "was erased"
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    if home is None or home.parent is None:
        return "is defined by an op that is in no block"
    ancestors = _ancestors(op)
    if home in ancestors:
        isolated = _isolation_between(op, home)
        if isolated is not None:
            return f"is defined outside of '{isolated.name}', which is isolated from above"
        if value.owner in ancestors:
            return "is used inside its own definition"
        return f"is used before it is defined{_at(value)}"
    if home.parent in {block.parent for block in ancestors if isinstance(block, Block)}:
        return f"is defined{_at(value)} in a block that does not dominate this use"
    owner = home.parent_op()
    inside = f" inside '{owner.name}'" if owner is not None else ""
    return f"is defined{inside}{_at(value)} and is not visible outside of it"


def _ancestors(op: Operation) -> set[Operation | Block]:
    """`op`, its block, that block's op, and so on."""
    found: set[Operation | Block] = set()
    current: Operation | None = op
    while current is not None:
        found.add(current)
        if current.parent is not None:
            found.add(current.parent)
        current = current.parent_op()
    return found


def _isolation_between(op: Operation, home: Block) -> Operation | None:
    """The op that is isolated from above and separates `op` from the block `home` around it."""
    while op.parent is not home and (parent := op.parent_op()) is not None:
        if parent.has_trait(IsolatedFromAbove):
            return parent
        op = parent
    return None


def _witness_elsewhere(op: Operation, symbol: str) -> SSAValue | None:
    """A witness of `symbol` in the function of `op` that is not in scope at `op`."""
    function = op
    while not function.has_trait(IsolatedFromAbove) and (parent := function.parent_op()) is not None:
        function = parent
    for other in function.walk():
        for owner in (other, *(block for region in other.regions for block in region.blocks)):
            if (witness := witnesses(owner).get(symbol)) is not None:
                return witness
    return None


def _name(value: SSAValue) -> str:
    if isinstance(value, ErasedSSAValue):
        return _name(value.old_value)
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, OpResult):
        return f"result #{value.index} of '{value.op.name}'"
    return "an unnamed block argument"


def _at(value: SSAValue) -> str:
    """` at file:line:column` of the definition, if it is known."""
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    where = str(source_position(owner.location)) if owner is not None else ""
    return f" at {where}" if where else ""
