"""What one worker has: shapes in the symbols of its own program, and PrimFuncs whose loops run over tiles."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import MeshAxis, own_tile
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import ShapeType, StructInfo, TensorType, TupleType
from tir_dialect.analysis.loop_groups import LoopGroup
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim, constant, floordiv, symbol
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType, SymbolAttr, as_name_hint


class LocalShapes:
    """The tiles of one function."""

    def __init__(self, mesh: Sequence[MeshAxis], taken: set[str], insert: Callable[[Operation], object]):
        """New symbols are none of `taken`; `insert` puts ops where those of the worker are made."""
        self.mesh = tuple(mesh)
        self._taken = taken
        self.insert = insert
        self.indices = {axis.name: symbol(self._fresh(f"{axis.name}_index")) for axis in mesh}
        """The index of this worker along each axis."""
        self._symbols: dict[tuple[Dim, str], Dim] = {}
        self._bound: set[Dim] = set()

    def _fresh(self, base: str) -> str:
        name = fresh_name(base, self._taken)
        self._taken.add(name)
        return name

    def exact(self, size: Dim, axis: MeshAxis, unit: int = 1) -> Dim:
        """The tile of a dimension along an axis, as an expression."""
        return own_tile(in_units(size, unit), axis.size, self.indices[axis.name]) * unit

    def tile(self, size: Dim, axis: MeshAxis, unit: int = 1) -> Dim:
        """The tile of a dimension along an axis: a symbol, times the unit, where it is not the same for all workers;
        `VerifyException` unless the unit divides the dimension.
        """
        if unit != 1:
            return self.tile(in_units(size, unit), axis) * unit
        exact = self.exact(size, axis)
        if exact.symbols.isdisjoint({str(self.indices[axis.name])}):
            return exact
        key = (size, axis.name)
        if key not in self._symbols:
            self._symbols[key] = symbol(self._fresh(f"{size.as_symbol or 'tile'}_{axis.name}"))
        found = self._symbols[key]
        if found not in self._bound:
            self._bound.add(found)
            shape = ShapeOp([exact])
            self.insert(shape)
            self.insert(MatchCastOp(shape.result, ShapeType([found]), [str(found)]))
        return found

    @contextmanager
    def scope(self) -> Generator[None]:
        """A region: symbols that are bound in it are not visible after it."""
        symbols, bound = dict(self._symbols), set(self._bound)
        yield
        self._symbols, self._bound = symbols, bound

    def of(self, info: StructInfo) -> StructInfo:
        """The type of a worker's part of a value."""
        return self._localized(info, self.tile)

    def exactly(self, info: StructInfo) -> StructInfo:
        """The type of a worker's part of a value, with expressions only."""
        return self._localized(info, self.exact)

    def _localized(self, info: StructInfo, tile: Callable[[Dim, MeshAxis, int], Dim]) -> StructInfo:
        if isinstance(info, TupleType):
            return TupleType(self._localized(field, tile) for field in info.fields)
        if not isinstance(info, TensorType) or info.sharding is None:
            return info
        if info.dims is None:
            raise VerifyException(f"expected a tensor of known rank, got {info}")
        dims = list(info.dims)
        for at, axis in info.sharding.shards.items():
            size = dims[at]
            if size is None:
                raise VerifyException(f"expected dimension {at} to be known, of which workers have tiles, got {info}")
            dims[at] = tile(size, axis, info.sharding.units[at])
        return TensorType(dims, info.dtype, info.device)


def in_units(size: Dim, unit: int) -> Dim:
    """How many units a dimension consists of; `VerifyException` unless it provably consists of such."""
    found = floordiv(size, constant(unit))
    if found * unit != size:
        raise VerifyException(f"expected a dimension of which {unit} is a divisor, got {size}")
    return found


def tiled_function(func: PrimFuncOp, groups: Sequence[LoopGroup]) -> PrimFuncOp:
    """The function for any sizes of the dimensions of some groups: a copy that is put after it, unless it is one.

    In the copy, the dimensions of each group, and the loops over them, have a new symbol as size. A symbol that was
    their size keeps the value that it had, and is dropped where it has no use.
    """
    values: dict[SSAValue, SSAValue] = {}
    made = func.clone(values)
    taken = set(func.symbol_names)
    for group in groups:
        name = fresh_name(group.size.as_symbol or "tile", taken)
        taken.add(name)
        _resize(made, group, values, name)
    # Drops sizes that nobody uses any more, and the symbols that were only in these.
    for op in ops_in(made.body):
        if isinstance(op, DimOp | arith.ConstantOp) and not op.result.uses:
            Rewriter.erase_op(op)
    types = [value.type for op in ops_in(made.body) for value in op.results] + [param.type for param in made.params]
    used = {name for info in types if isinstance(info, BufferType) for name in info.symbols}
    used |= {name for op in ops_in(made.body) if isinstance(op, DimOp) for name in op.dim.symbols}
    pairs = list(zip(made.symbols, made.symbol_args, strict=True))
    kept = [(each, arg) for each, arg in pairs if each.symbol.data in used or arg.uses]
    made.symbols = ArrayAttr([each for each, _ in kept])
    for pair in pairs:
        if pair not in kept:
            made.body.block.erase_arg(pair[1])
    sizes = [group.size.as_symbol for group in groups]
    if None not in sizes and len(set(sizes)) == len(sizes) and not {*sizes} & {*made.symbol_names}:
        return func
    module = func.parent_op()
    names = (
        [op.sym_name.data for op in ops_in(*module.regions) if isinstance(op, FuncOp | PrimFuncOp)] if module else []
    )
    made.properties["sym_name"] = StringAttr(fresh_name(f"{func.sym_name.data}_tile", names))
    made.properties["sym_visibility"] = StringAttr("private")
    for other in module.regions[0].block.ops if module else ():
        if isinstance(other, PrimFuncOp) and other.is_private and _same(other, made):
            return other
    Rewriter.insert_op(made, InsertPoint.after(func))
    return made


def _same(one: PrimFuncOp, other: PrimFuncOp) -> bool:
    """Whether functions differ in their names only."""
    copy = one.clone()
    copy.properties["sym_name"] = other.sym_name
    return str(copy) == str(other)


def _resize(func: PrimFuncOp, group: LoopGroup, values: dict[SSAValue, SSAValue], name: str) -> None:
    """Gives the dimensions and variables of a group a symbol as size."""
    size = symbol(name)
    block = func.body.block
    witness = block.insert_arg(IndexType(), len(func.symbols))
    witness.name_hint = as_name_hint(name)
    func.symbols = ArrayAttr([*func.symbols, SymbolAttr(name)])
    for buffer, dim in group.dims.items():
        values[buffer] = _reshape(values[buffer], dim, size)
    for variable in (values[each] for each in group.variables):
        loop, owner = loop_of(variable), block_of(variable)
        if loop is not None:
            loop.operands[len(loop.operands) - 1] = witness
        elif owner is not None:
            at = next(at for at, each in enumerate(owner.iterators) if each.value is variable)
            owner.operands[len(owner.bindings) + at] = witness


def _reshape(buffer: SSAValue, dim: int, size: Dim) -> SSAValue:
    old = buffer.type
    if not isinstance(old, BufferType):
        raise TypeError(f"expected a buffer, got {old}")
    shape = [size if at == dim else each for at, each in enumerate(old.shape)]
    new = BufferType(shape, old.dtype, scope=old.scope, align=old.align)
    return Rewriter.replace_value_with_new_type(buffer, new)
