"""`lower-distributed`: the program that each worker runs; `cut-constants`: workers have their tiles of constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.distributed.factors import Factors, choices, factors_of, units_of
from lowering.distributed.local_shapes import LocalShapes
from lowering.distributed.mesh import MeshPass, shardings_in
from lowering.distributed.propagate_sharding import captured
from lowering.distributed.redistribution import FEWEST, STEPS, Step, collective, sharding_of
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.function_symbols import all_symbols
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.callees import find_relax_function
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, YieldOp, yielded
from relax_dialect.ops.creation import FilledOp, FullOp
from relax_dialect.ops.distributed import (
    GlobalViewOp,
    LocalViewOp,
    PlacementOp,
    RedistributeOp,
    RedistributeReplicaToShardOp,
)
from relax_dialect.ops.manipulation import BroadcastToOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOfOp, ShapeOp, TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp, final_types
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.match import match_types
from relax_dialect.struct_info.sharding import (
    MeshAxis,
    Partial,
    Replicate,
    Shard,
    ShardingAttr,
    coordinates,
    tile_bounds,
)
from relax_dialect.struct_info.symbols import erase_to_scope, free_symbols, substitute
from relax_dialect.struct_info.types import (
    FuncType,
    PrimType,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
    as_struct_infos,
)
from tir_dialect.dims import MatchError, constant, match
from tir_dialect.dtypes import from_numpy
from tir_dialect.types import SymbolAttr
from tir_dialect.weights import Weight, WeightAttr

GLOBAL_TYPE = "global_type"
"""The attribute of a worker's function that has the type of the function of the whole."""

MESH = "mesh"
"""The attribute of a worker's function that has its mesh."""

PROPAGATE = "use propagate-sharding first, which redistributes operands"

WORKERS = "workers"
"""The name of the parameter that says which worker this is."""


@dataclass(frozen=True)
class LowerDistributedPass(MeshPass):
    """Makes the program of one worker out of one whose tensors workers share: every worker runs the same function.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>,
        %w: !relax.tensor<[8, 4], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n, 4], f32, sharding<x = 2: R>> {
      %0 = relax.matmul %x, %w : !relax.tensor<[n, 4], f32, sharding<x = 2: P>>
      %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
      relax.return %1
    }
    ```

    After:

    ```mlir
    relax.func @main[%x_index, %n](%workers: !relax.shape<[2, x_index, n]>, %x: !relax.tensor<[n, 4], f32>,
        %w: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[n, 4], f32> {
      %0 = relax.matmul %x, %w
      %1 = relax.ccl.allreduce %0 group = "x"
      relax.return %1
    }
    ```

    The new first parameter has the size of the mesh and the index of the worker along each axis, then the symbols of
    the function. The other ones are the worker's tiles, whose shapes are checked. Where the number of workers does not
    divide a dimension, tiles are divided upwards: the last workers have less, or nothing.

    Each operator has to have the operands that one of its rules says (`lowering/distributed/rules`), which
    `propagate-sharding` sees to; others are refused. Functions without shardings stay. Options give axes other
    sizes than the program says, and numbers for symbols: `lower-distributed{x=4 y=2}`.
    """

    name = "lower-distributed"

    @override
    def rewrite(self, func: FuncOp, mesh: ShardingAttr, shared: Collection[str]) -> None:
        apply_patterns(func, FEWEST)
        apply_patterns(func, STEPS)
        _LocalFunction(func, mesh, shared).make()


class _LocalFunction:
    """One function of the whole, and the function of a worker that takes its place."""

    def __init__(self, func: FuncOp, mesh: ShardingAttr, shared: Collection[str]):
        """`shared` are the functions that have workers."""
        self.func = func
        self.mesh = mesh
        self.shared = shared
        self.block = Block()
        self.values: dict[SSAValue, SSAValue] = {}
        self.shapes = LocalShapes(mesh.mesh, all_symbols(func), self._insert)
        self._location: Operation = func

    def make(self) -> None:
        """Replaces the function."""
        func, old = self.func, self.func.function_type
        names = func.param_names
        for name, info in zip(names, old.params, strict=True):
            what = f"parameter {name}"
            try:
                self.shapes.exactly(info)
            except VerifyException as error:
                fail(self.func, f"{what}: {error}", "name the dimension by a symbol")
        indices = [SymbolAttr(str(index)) for index in self.shapes.indices.values()]
        symbols = [*indices, *old.symbols]
        witnesses = [self.block.insert_arg(PrimType(value=each.symbol.data), at) for at, each in enumerate(symbols)]
        for witness, each in zip(witnesses, symbols, strict=True):
            witness.name_hint = each.symbol.data
        self.values.update(zip(func.witnesses, witnesses[len(indices) :], strict=True))
        coordinates = [dim for axis in self.mesh.mesh for dim in (axis.size, self.shapes.indices[axis.name])]
        workers = ShapeType([*coordinates, *(each.symbol.data for each in old.symbols)])
        params: list[StructInfo] = [workers, *(self.shapes.exactly(info) for info in old.params)]
        arguments = [self.block.insert_arg(info, len(self.block.args)) for info in params]
        for argument, name in zip(arguments, (WORKERS, *names), strict=True):
            argument.name_hint = name
        for param, argument in zip(func.params, arguments[1:], strict=True):
            self.values[param] = self._as_local(argument, as_struct_infos([param.type])[0])
        result: StructInfo = old.ret
        for op in func.body.block.ops:
            self._location = op
            if isinstance(op, ReturnOp):
                result = self._return(op)
            else:
                self._translate(op)
        local = FuncType(params, result, pure=old.pure, symbols=symbols)
        visibility = None if func.sym_visibility is None else func.sym_visibility.data
        made = FuncOp(func.sym_name.data, local, Region(self.block), visibility=visibility)
        made.name_params([WORKERS, *names])
        whole = FuncType(old.params, self._returned, pure=old.pure, symbols=old.symbols)
        made.attributes = {**func.attributes, MESH: self.mesh, GLOBAL_TYPE: whole}
        inherit_location(func, made)
        block = func.parent_block()
        if block is not None:
            block.insert_op_before(made, func)
        func.detach()
        func.erase()

    def _insert(self, op: Operation) -> None:
        inherit_location(self._location, op)
        self.block.add_op(op)

    def _as_local(self, value: SSAValue, info: StructInfo) -> SSAValue:
        """A value with the symbols of its tiles, where its type has expressions."""
        wanted = self.shapes.of(info)
        if value.type == wanted:
            return value
        cast = MatchCastOp(value, wanted)
        cast.result.name_hint = value.name_hint
        self._insert(cast)
        return cast.result

    def _return(self, op: ReturnOp) -> StructInfo:
        (info,) = as_struct_infos([op.value.type])
        if any(isinstance(placement, Partial) for each in shardings_in(info) for placement in each.placements):
            fail(op, f"returns terms of a tensor: {info}", "use relax.dist.redistribute first")
        names = {each.symbol.data for each in self.func.symbols}
        self._returned = erase_to_scope(info, names)
        names |= {str(index) for index in self.shapes.indices.values()}
        value, exact = self.values[op.value], self.shapes.exactly(info)
        if value.type != exact and free_symbols(exact) <= names:
            cast = MatchCastOp(value, exact)
            self._insert(cast)
            value = cast.result
        self._insert(ReturnOp(value))
        (result,) = as_struct_infos([value.type])
        return erase_to_scope(result, names)

    def _translate(self, op: Operation) -> None:
        if isinstance(op, RedistributeOp):
            self.values[op.result] = collective(op, self.values[op.x], self.shapes, self._insert)
        elif isinstance(op, LocalViewOp | GlobalViewOp):
            # A worker's tile is what it has; that it is as large as the view says is checked.
            if isinstance(op, LocalViewOp) and sharding_of(op.x, self.mesh).placements != op.sharding.placements:
                fail(op, f"expected a tensor shared as {op.sharding.text}, got {op.x.type}", PROPAGATE)
            self.values[op.result] = self._as_local(self.values[op.x], as_struct_infos([op.result.type])[0])
        elif isinstance(op, ConstantOp):
            self._constant(op)
        elif isinstance(op, TupleOp | TupleGetOp):
            made = op.clone(self.values)
            for result, old in zip(made.results, op.results, strict=True):
                Rewriter.replace_value_with_new_type(result, self.shapes.of(as_struct_infos([old.type])[0]))
            self._keep(op, made)
        elif isinstance(op, IfOp | LoopOp | CallOp | MakeClosureOp):
            self._control(op)
        elif isinstance(op, ShapeOfOp) and op.result.type.known_dims is not None:
            self._keep(op, ShapeOp(op.result.type.known_dims))
        elif all(map(self._is_whole, (*op.operands, *op.results, *captured(op)))):
            self._copy(op)
        elif not isinstance(op, PlacementOp) and (factors := factors_of(op)) is not None:
            self._localize(op, factors)
        else:
            fail(op, f"expected operands that all workers have, got {', '.join(map(str, op.operand_types))}",
                 PROPAGATE)  # fmt: skip

    def _copy(self, op: Operation) -> None:
        """The op itself: what it takes and gives, all workers have."""
        made = op.clone(self.values)
        for result, old in zip(made.results, op.results, strict=True):
            if isinstance(old.type, TensorType):
                Rewriter.replace_value_with_new_type(result, old.type.with_sharding(None))
        self._keep(op, made)

    def _control(self, op: IfOp | LoopOp | CallOp | MakeClosureOp) -> None:
        callee = None if isinstance(op, IfOp | LoopOp) else op.callee.string_value()
        if isinstance(op, IfOp):
            for region in op.regions:
                self._require_same(op, yielded(region), op.res)
            results = [self._local(result) for result in op.res]  # symbols of tiles are bound before the branches
            hidden = op.result_witnesses.keys()
            regions = [self._region(region, [], results, hidden) for region in (op.then_region, op.else_region)]
            self._keep(op, IfOp(self.values[op.condition], *regions, result_types=results))
        elif isinstance(op, LoopOp):
            self._loop(op)
        elif callee not in self.shared:
            for operand in op.operands:
                if not self._is_whole(operand):
                    fail(op, f"expected operands that all workers have, got {operand.type}", PROPAGATE)
            self._copy(op)
        elif isinstance(op, CallOp):
            self._call(op)
        else:
            fail(op, f"makes a value of @{callee}, whose tensors workers share", "use a relax.call")

    def _local(self, value: SSAValue) -> StructInfo:
        """The type of a worker's part of a value."""
        (info,) = as_struct_infos([value.type])
        return self.shapes.of(info)

    def _loop(self, op: LoopOp) -> None:
        """A loop whose carried values are tiles. The types of its results follow from theirs."""
        for values in (op.inits, yielded(op.regions[-1])):
            self._require_same(op, values, op.res)
        carried = [self._local(value) for value in op.carried(op.regions[0].block)]
        pairs = zip(op.inits, carried, strict=True)
        inits = [self._as_type(self.values[init], info, op.symbol_names) for init, info in pairs]
        regions: list[Region] = []
        for region in op.regions:
            leading = as_struct_infos(value.type for value in region.block.args[: -len(carried) or None])
            ends = carried if region is op.regions[-1] else None
            regions.append(self._region(region, [*leading, *carried], ends, op.symbol_names))
        operands = [self.values[operand] for operand in op.operands[: len(op.operands) - len(inits)]]
        names = final_types(regions[0].block, op.leading, op.symbol_names)
        made = type(op).create(
            operands=[*operands, *inits],
            result_types=names,
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=regions,
        )
        self._keep(op, made)

    def _require_same(self, op: Operation, values: Sequence[SSAValue], others: Sequence[SSAValue]) -> None:
        """Fails unless values are shared as others are, which they become."""
        for value, other in zip(values, others, strict=True):
            self._require_shared(op, value, as_struct_infos([other.type])[0])

    def _require_shared(self, op: Operation, value: SSAValue, info: StructInfo) -> None:
        if _placements(value.type) != _placements(info):
            fail(op, f"expected a value shared as {info}, got {value.type}", PROPAGATE)

    def _call(self, op: CallOp) -> None:
        """The callee takes the workers, and its symbols, too: what they are follows from the arguments."""
        callee = find_relax_function(op, op.callee)
        whole = callee and (callee.attributes.get(GLOBAL_TYPE) or callee.function_type)
        if not isinstance(whole, FuncType):
            fail(op, f"calls @{op.callee.string_value()}, which is no function of the module")
        for argument, info in zip(op.arguments, whole.params, strict=True):
            self._require_shared(op, argument, info)
        match = match_types(whole.params, as_struct_infos(op.arguments.types), whole.symbols, prover_at(op))
        symbols = [match.bindings[name] for name in whole.symbol_names]
        if not match.slots.keys().isdisjoint(name for symbol in symbols for name in symbol.symbols):
            fail(op, "has arguments with unknown dimensions", "name them by a relax.match_cast")
        coordinates = [dim for axis in self.mesh.mesh for dim in (axis.size, self.shapes.indices[axis.name])]
        workers = ShapeOp([*coordinates, *symbols])
        self._insert(workers)
        arguments = [workers.result, *(self.values[argument] for argument in op.arguments)]
        # As the callee writes it: its tile of `n` rows is no simpler where `n` is `2 * k`.
        returned = substitute(self.shapes.exactly(whole.ret), dict(zip(whole.symbol_names, symbols, strict=True)))
        made = CallOp(op.callee, arguments, returned, pure=op.impure is None)
        self._keep(op, made)
        self.values[op.result] = self._as_local(made.result, as_struct_infos([op.result.type])[0])

    def _region(
        self,
        region: Region,
        arguments: Sequence[StructInfo],
        ends: Sequence[StructInfo] | None,
        hidden: Collection[str],
    ) -> Region:
        """A region for a worker, with arguments and values at its end of these types.

        In `ends`, hidden symbols stand for what is computed in the region.
        """
        outer, self.block = self.block, Block(arg_types=arguments)
        with self.shapes.scope():
            for old, new in zip(region.block.args, self.block.args, strict=True):
                new.name_hint = old.name_hint
                self.values[old] = new
            for op in region.block.ops:
                self._location = op
                if isinstance(op, YieldOp):
                    values = [self.values[operand] for operand in op.operands]
                    pairs = zip(values, ends or as_struct_infos(value.type for value in values), strict=True)
                    self._insert(YieldOp(*[self._as_type(*pair, hidden) for pair in pairs]))
                else:
                    self._translate(op)
        made, self.block = Region(self.block), outer
        return made

    def _as_type(self, value: SSAValue, info: StructInfo, hidden: Collection[str] = ()) -> SSAValue:
        """A tensor whose tile is written otherwise is checked to be as large; not so dimensions of hidden symbols."""
        own = value.type.dims if isinstance(value.type, TensorType) else None
        if value.type == info or not isinstance(info, TensorType) or info.dims is None or own is None:
            return value
        dims = [mine if dim is None or not dim.symbols.isdisjoint(hidden) else dim
                for mine, dim in zip(own, info.dims, strict=True)]  # fmt: skip
        if list(own) == dims:
            return value
        cast = MatchCastOp(value, info.with_shape(dims))
        self._insert(cast)
        return cast.result

    def _constant(self, op: ConstantOp) -> None:
        """A constant is there as a whole; a worker takes its tile."""
        made = ConstantOp(op.value, op.result.type.with_sharding(None))
        made.attributes = dict(op.attributes)
        self._keep(op, made)
        sharding = op.result.type.sharding
        for axis, placement in sharding.data if sharding is not None else ():
            if isinstance(placement, Shard):
                step = Step(op, op.result.type, axis, self.shapes, self._insert)
                self.values[op.result] = step.make(self.values[op.result], Replicate(), placement)

    def _keep(self, old: Operation, new: Operation) -> None:
        for result, made in zip(old.results, new.results, strict=True):
            made.name_hint = result.name_hint
            self.values[result] = made
        self._insert(new)

    def _is_whole(self, value: SSAValue) -> bool:
        placements = [each for sharding in shardings_in(value.type) for each in sharding.placements]
        return all(isinstance(placement, Replicate) for placement in placements)

    def _shared(self, op: Operation, factors: Factors) -> dict[str, MeshAxis]:
        """The factors along which workers share an op, each with the axis of the mesh.

        Fails unless operands and results are what a rule of the op says, along each axis.
        """
        found: dict[str, MeshAxis] = {}
        for at, axis in enumerate(self.mesh.mesh):
            operands = tuple(sharding_of(value, self.mesh).placements[at] for value in op.operands)
            results = tuple(sharding_of(value, self.mesh).placements[at] for value in op.results)
            units = units_of(factors, (*operands, *results))
            for each in choices(op, factors, axis, units):
                if (each.operands, each.results) == (operands, results):
                    found |= {} if each.factor is None else {each.factor: axis}
                    break
            else:
                fail(
                    op,
                    f"cannot be shared so along axis {axis}: ({', '.join(map(str, operands))}) -> "
                    f"({', '.join(map(str, results))})",
                    PROPAGATE,
                )
        return found

    def _localize(self, op: Operation, factors: Factors) -> None:
        """The op on a worker's tiles, whose results have the types of its tiles."""
        shared, operands = self._shared(op, factors), [self.values[operand] for operand in op.operands]
        local = [(factors.local[factor], axis) for factor, axis in shared.items() if factor in factors.local]
        if factors.on_tiles is not None:
            made = factors.on_tiles(operands, shared, self.shapes)
        elif local:  # along one axis, as they are about one dimension
            ((make, axis),) = local
            made = [make(operands, axis, self.shapes)]
        elif isinstance(op, Operator):
            made = self._operator(op, operands)
        else:
            fail(op, "has a rule that does not say what it is on tiles")
        for result, value in zip(op.results, made, strict=True):
            value.name_hint = value.name_hint or result.name_hint
            self.values[result] = value

    def _operator(self, op: Operator, operands: list[SSAValue]) -> list[SSAValue]:
        """The operator on tiles, with the shape of the tile where it takes one."""
        wanted = [self.shapes.of(as_struct_infos([result.type])[0]) for result in op.results]
        if isinstance(op, ReshapeOp | BroadcastToOp | FilledOp | FullOp):
            (first,) = wanted
            dims = first.known_dims if isinstance(first, TensorType) else None
            if dims is None:
                fail(op, f"expected a result with known dimensions, got {first}", "name them by a relax.match_cast")
            shape = ShapeOp(dims)
            self._insert(shape)
            operands[list(op.operands).index(op.shape)] = shape.result
        made = op.clone(dict(zip(op.operands, operands, strict=True)))
        for at, operand in enumerate(operands):
            made.operands[at] = operand
        if isinstance(made, SqueezeOp) and made.axes is None:
            # The dimensions of the first operand that are 1.
            info = op.operands[0].type
            dims = info.dims if isinstance(info, TensorType) else None
            made = SqueezeOp(operands[0], [at for at, dim in enumerate(dims or ()) if dim == constant(1)])
        inferred = type(made).infer_result_types([value.type for value in operands], made.properties)
        for result, info in zip(made.results, inferred, strict=True):
            Rewriter.replace_value_with_new_type(result, info)
        self._keep(op, made)
        return [self._cast(*pair) for pair in zip(made.results, wanted, strict=True)]

    def _cast(self, value: SSAValue, info: StructInfo) -> SSAValue:
        """A value of a type that says the same."""
        if value.type == info:
            return value
        cast = MatchCastOp(value, info)
        self._insert(cast)
        return cast.result


def _placements(info: Attribute) -> tuple[object, ...]:
    """How workers share the tensors in a type; nothing, if all have all."""
    if isinstance(info, TupleType):
        fields = tuple(map(_placements, info.fields))
        return fields if any(fields) else ()
    sharding = info.sharding if isinstance(info, TensorType) else None
    shared = sharding is not None and any(not isinstance(each, Replicate) for each in sharding.placements)
    return sharding.placements if sharding is not None and shared else ()


@dataclass(frozen=True)
class CutConstantsPass(Pass):
    """Replaces constants of which a worker takes its tile by these tiles. The program is then that of one worker.

    Before:

    ```mlir
    %0 = relax.constant "w" : !relax.tensor<[8, 6], f32>
    %1 = relax.dist.redistribute_replica_to_shard %0 num_workers = 2 axis = 1 group = "x" tile = 3 index = x_index
    ```

    After, for `rank=1`:

    ```mlir
    %1 = relax.constant "w[x = 1]" : !relax.tensor<[8, 3], f32>
    ```

    Constants whose elements are not in this process stay.
    """

    name = "cut-constants"
    requires = ("relax.dist.redistribute_replica_to_shard",)

    rank: int
    """The number of the worker."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Cuts the constants of every function of a worker."""
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            mesh = func.attributes.get(MESH)
            if not isinstance(mesh, ShardingAttr):
                continue
            if not 0 <= self.rank < (mesh.workers or 0):
                fail(func, f"expected a rank below {mesh.workers}, got {self.rank}")
            sizes = {axis.name: axis.size.constant_value or 1 for axis in mesh.mesh}
            apply_patterns(func, [TileOfConstant(coordinates(sizes, self.rank))])


@dataclass(frozen=True)
class TileOfConstant(RewritePattern):
    """A tile of a constant is a constant: `tile(constant w)  ->  constant w[x = 1]`."""

    at: Mapping[str, int]
    """The index of the worker along each axis."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RedistributeReplicaToShardOp, rewriter: PatternRewriter) -> None:
        found, group = _elements(op.x), op.group_name
        if found is None or op.index is None:
            return
        constant, array = found
        begin, end = tile_bounds(array.shape[op.along], op.num_workers.value.data, self.at[group])
        tile = np.ascontiguousarray(array[(slice(None),) * op.along + (slice(begin, end),)])
        name = constant.weight_name
        given = Weight(f"{name}[{group} = {self.at[group]}]", tile) if name is not None else Weight.of_content(tile)
        made = ConstantOp(WeightAttr(given), TensorType(tile.shape, from_numpy(tile.dtype)))
        made.result.name_hint = op.result.name_hint
        rewriter.insert(made)
        if made.result.type == op.result.type:
            rewriter.replace(op, [], [made.result])
        else:
            rewriter.replace(op, MatchCastOp(made.result, op.result.type))


def _elements(value: SSAValue) -> tuple[ConstantOp, np.ndarray] | None:
    """A constant, and its elements in the shape of a value that is a constant, perhaps reshaped and cast."""
    op = value.owner
    if isinstance(op, ConstantOp):
        return None if op.array is None else (op, op.array)
    if not isinstance(op, MatchCastOp | ReshapeOp) or (found := _elements(op.operands[0])) is None:
        return None
    if isinstance(op, MatchCastOp):
        return found
    constant, array = found
    infos = [each.type for each in (op.x, op.result)]
    dims = [info.known_dims for info in infos if isinstance(info, TensorType)]
    if None in dims:
        return None
    before, after = (each or () for each in dims)
    try:
        symbols = match(before, array.shape)
    except MatchError:
        return None
    known = all(dim.symbols <= symbols.keys() for dim in after)
    return (constant, array.reshape([dim.evaluate(symbols) for dim in after])) if known else None
