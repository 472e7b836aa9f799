"""Where blocks and loops stand in a function; small edits that the primitives share, which keep locations and name
hints; and dimensions as index values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure, is_side_effect_free

from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import (
    Atom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
    constant,
    from_atom,
    product,
)
from tir_dialect.fast_ops import erase_dead
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import IteratorKind, IteratorKindAttr


def header_value(func: PrimFuncOp, dim: Dim) -> SSAValue:
    """A dimension over the symbols of the function as a value that the whole function may use."""
    if (name := dim.as_symbol) is not None and (argument := func.symbol_arg(name)) is not None:
        return argument
    last: Operation | None = None
    for op in _header(func):
        if _defines(op, dim):
            return op.results[0]
        last = op
    value = dim.constant_value
    op = DimOp(dim) if value is None else arith.ConstantOp.from_int_and_width(value, IndexType())
    if value is not None and value >= 0:
        op.result.name_hint = f"c{value}"
    block = func.body.block
    Rewriter.insert_op(op, InsertPoint.at_start(block) if last is None else InsertPoint.after(last))
    return op.result


def hoist_sizes(func: PrimFuncOp) -> None:
    """Computes bounds of loops and extents of blocks that are sizes where all of the function may use them."""
    sizes = set(func.symbol_names)
    for op in list(func.body.walk()):
        first = len(op.bindings) if isinstance(op, BlockOp) else 0
        count = len(op.operands) if isinstance(op, ForOp) else len(op.extents) if isinstance(op, BlockOp) else 0
        for number in range(first, first + count):
            dim = dim_of(op.operands[number])
            if dim is not None and dim.symbols <= sizes:
                op.operands[number] = header_value(func, dim)


def _header(func: PrimFuncOp) -> Iterable[Operation]:
    for op in func.body.block.ops:
        if not isinstance(op, AllocBufferOp | DimOp | arith.ConstantOp):
            return
        yield op


def _defines(op: Operation, dim: Dim) -> bool:
    if isinstance(op, DimOp):
        return op.dim is dim
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr):
        return False
    return isinstance(op.result.type, IndexType) and op.value.value.data == dim.constant_value


class Materializer:
    """Puts the ops that compute dimensions before an op; each dimension and atom is computed once."""

    def __init__(self, func: PrimFuncOp, space: IndexSpace, point: InsertPoint):
        self._func = func
        self._symbols = frozenset(func.symbol_names)
        self._space = space
        self._point = point
        self._atoms: dict[Atom, SSAValue] = {}
        self._known: dict[Dim, SSAValue] = {}

    def remember(self, dim: Dim, value: SSAValue) -> None:
        """Says that a value that dominates the position is the value of `dim`."""
        self._known.setdefault(dim, value)

    def emit(self, dim: Dim) -> SSAValue:
        """The value of a dimension whose symbols all have values that dominate the position."""
        if dim.symbols <= self._symbols:
            return header_value(self._func, dim)
        if dim not in self._known:
            self._known[dim] = self._sum(dim)
        return self._known[dim]

    def _sum(self, dim: Dim) -> SSAValue:
        fixed, total = constant(0), None
        for coefficient, monomial in dim.terms:
            moving = [atom for atom, power in monomial for _ in range(power) if not atom.symbols <= self._symbols]
            sizes = [from_atom(atom) for atom, power in monomial for _ in range(power) if atom.symbols <= self._symbols]
            if not moving:
                fixed = fixed + product(sizes) * coefficient
                continue
            term = self._atom(moving[0])
            for atom in moving[1:]:
                term = self.insert(arith.MuliOp(term, self._atom(atom)))
            factor = product(sizes) * abs(coefficient)
            if factor.constant_value != 1:
                term = self.insert(arith.MuliOp(term, header_value(self._func, factor)))
            if coefficient < 0:
                start = header_value(self._func, constant(0)) if total is None else total
                total = self.insert(arith.SubiOp(start, term))
            else:
                total = term if total is None else self.insert(arith.AddiOp(total, term))
        if total is None or fixed.terms:
            value = fixed.constant_value
            if total is None:
                return header_value(self._func, fixed)
            if value is not None and value < 0:
                return self.insert(arith.SubiOp(total, header_value(self._func, constant(-value))))
            return self.insert(arith.AddiOp(total, header_value(self._func, fixed)))
        return total

    def insert(self, op: Operation) -> SSAValue:
        """Puts an op with one result there."""
        Rewriter.insert_op(op, self._point)
        return op.results[0]

    def _atom(self, atom: Atom) -> SSAValue:
        if atom not in self._atoms:
            self._atoms[atom] = self._compute(atom)
        return self._atoms[atom]

    def _compute(self, atom: Atom) -> SSAValue:
        if atom.symbols <= self._symbols:
            return header_value(self._func, from_atom(atom))
        if isinstance(atom, SymbolAtom):
            return self._space.variables[atom.name].value
        operands = [self.emit(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                if self._is_unsigned(atom.operands):
                    return self.insert(arith.DivUIOp(operands[0], operands[1]))
                return self.insert(arith.FloorDivSIOp(operands[0], operands[1]))
            case ModAtom():
                lhs, rhs = operands
                if self._is_unsigned(atom.operands):
                    return self.insert(arith.RemUIOp(lhs, rhs))
                quotient = self.insert(arith.FloorDivSIOp(lhs, rhs))
                return self.insert(arith.SubiOp(lhs, self.insert(arith.MuliOp(quotient, rhs))))
            case MinAtom() | MaxAtom():
                op = arith.MinSIOp if isinstance(atom, MinAtom) else arith.MaxSIOp
                result = operands[0]
                for operand in operands[1:]:
                    result = self.insert(op(result, operand))
                return result
            case _:
                raise TypeError(f"a {type(atom).__name__} over loop variables has no value")

    def _is_unsigned(self, operands: tuple[Dim, ...]) -> bool:
        prover = self._space.prover
        # a divisor 0 has no result anyway
        return all(prover.less_equal(0, operand) is True for operand in operands)


def is_index_op(op: Operation) -> bool:
    """Whether the op only computes a value: it may move, and it goes when nothing uses it."""
    return not op.regions and bool(op.results) and (_is_always_pure(type(op)) or is_side_effect_free(op))


@cache
def _is_always_pure(kind: type[Operation]) -> bool:
    # xDSL 0.74 does not say that the first two are pure
    return kind in (arith.RemUIOp, arith.ExtSIOp) or kind.has_trait(Pure())


def statements(block: Block) -> list[Operation]:
    """The ops of a block that do more than compute a value."""
    return [op for op in block.ops if not is_index_op(op)]


def only_statement(block: Block) -> Operation | None:
    """The one op of a block that does more than compute values; `None` if there are none or several."""
    found = statements(block)
    return found[0] if len(found) == 1 else None


def blocks_in(root: Operation) -> list[BlockOp]:
    """All blocks in the regions of an op, in program order."""
    return [op for op in root.walk() if isinstance(op, BlockOp) and op is not root]


def scope_of(op: Operation) -> BlockOp | PrimFuncOp:
    """The innermost block or function around an op."""
    parent = op.parent_op()
    while not isinstance(parent, BlockOp | PrimFuncOp):
        if parent is None:
            raise ValueError("the op is in no function")
        parent = parent.parent_op()
    return parent


def ancestor_in(block: Block, op: Operation) -> Operation | None:
    """The op of `block` that is `op` or holds it."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def nest_of(block: BlockOp) -> Operation:
    """The op right in the surrounding block or function, or the init there, that holds a block."""
    found = ancestor_in(scope_of(block).body.block, block)
    if isinstance(found, InitOp):
        found = ancestor_in(found.body.block, block)
    return block if found is None else found


def common_insert_point(ops: Sequence[Operation]) -> tuple[Block, list[Operation]]:
    """The innermost block that holds all of the ops, at least one, and the ops in it that are or hold them."""
    block = ops[0].parent
    while block is not None:
        tops = [top for op in ops if (top := ancestor_in(block, op)) is not None]
        if len(tops) == len(ops):
            return block, tops
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    raise ValueError("the ops have no common block")


def users_of(value: SSAValue) -> list[Operation]:
    """The ops that use a value."""
    return [use.operation for use in value.uses]


def unique_block_name(func: PrimFuncOp, name: str, own: BlockOp | None = None) -> str:
    """`name`, or with a number after it, such that no block of the function but `own` has it."""
    taken = {block.block_name.data for block in blocks_in(func) if block is not own}
    count, found = 0, name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def before_all(ops: Sequence[Operation]) -> InsertPoint:
    """The innermost position that dominates all of the ops, at least one."""
    block, tops = common_insert_point(ops)
    return InsertPoint.before(min(tops, key=block.get_operation_index))


def erase_nest(op: Operation) -> None:
    """Erases an op and the loops around it that do nothing without it."""
    parent = op.parent_op()
    Rewriter.erase_op(op)
    erase_idle(parent)


def erase_idle(parent: Operation | None) -> None:
    """Erases a loop or branch that does nothing, then those around it."""
    while isinstance(parent, ForOp | IfOp) and not any(statements(region.block) for region in parent.regions):
        parent, idle = parent.parent_op(), parent
        Rewriter.erase_op(idle)


def after_removal(op: Operation) -> InsertPoint:
    """The position of an op, valid when it is no longer there."""
    if op.next_op is not None:
        return InsertPoint.before(op.next_op)
    if op.parent is None:
        raise ValueError("the op is in no block")
    return InsertPoint.at_end(op.parent)


def move_ops(source: Block, target: Block) -> None:
    """Moves all ops to the end of another block."""
    for op in list(source.ops):
        op.detach()
        target.add_op(op)


def add_condition(block: BlockOp, condition: SSAValue) -> None:
    """Lets the instances of a block run only where `condition` holds, too; it must dominate the block."""
    if block.condition is not None:
        both = arith.AndIOp(block.condition, condition)
        Rewriter.insert_op(both, InsertPoint.before(block))
        condition = both.result
    set_condition(block, condition)


def set_condition(block: BlockOp, condition: SSAValue | None) -> None:
    """Replaces the condition of a block."""
    rebuild_block(block, [(it.kind, it.binding, it.extent) for it in block.iterators], condition)


def rebuild_block(
    block: BlockOp, iterators: Sequence[tuple[IteratorKind, SSAValue, SSAValue]], condition: SSAValue | None
) -> None:
    """Gives a block other iterators (kind, binding, extent) and another condition; its body is left to the caller."""
    conditions = [] if condition is None else [condition]
    block.operands = [*(it[1] for it in iterators), *(it[2] for it in iterators), *conditions]
    sizes = [len(iterators), len(iterators), len(conditions)]
    block.properties[AttrSizedOperandSegments.attribute_name] = DenseArrayBase.from_list(i32, sizes)
    block.iterator_kinds = ArrayAttr([IteratorKindAttr(it[0]) for it in iterators])


def erase_dead_ops(func: PrimFuncOp) -> None:
    """Erases what only computes values that nothing uses."""
    erase_dead(func.body.walk(), among=is_index_op)
