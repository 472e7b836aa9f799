"""`lower-distributed`: the program that each worker runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.distributed.factors import Factors, admits, factors_of
from lowering.distributed.local_shapes import LocalShapes
from lowering.distributed.mesh import shardings_in
from lowering.distributed.mesh_pass import MeshPass
from lowering.distributed.redistribution import FEWEST, STEPS, collective, sharding_of
from lowering.locations import inherit_location
from lowering.relax.substitution import all_symbols
from lowering.rewriting import apply_patterns
from relax_dialect.ops.binding import MatchCastOp
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
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.sharding import Partial, Replicate, ShardingAttr
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.symbols import SymbolAttr

GLOBAL_TYPE = "global_type"
"""The attribute of a worker's function that has the type of the function of the whole."""

MESH = "mesh"
"""The attribute of a worker's function that has its mesh."""

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
    def rewrite(self, func: FuncOp, mesh: ShardingAttr) -> None:
        apply_patterns(func, FEWEST)
        apply_patterns(func, STEPS)
        _LocalFunction(func, mesh).make()


class _LocalFunction:
    """One function of the whole, and the function of a worker that takes its place."""

    def __init__(self, func: FuncOp, mesh: ShardingAttr):
        self.func = func
        self.mesh = mesh
        self.block = Block()
        self.values: dict[SSAValue, SSAValue] = {}
        self.shapes = LocalShapes(mesh.mesh, all_symbols(func), self._insert)
        self._location: Operation = func

    def make(self) -> None:
        """Replaces the function."""
        func, old = self.func, self.func.function_type
        names = func.param_names
        for name, info in zip(names, old.params, strict=True):
            self._require_known(f"parameter {name}", info)
        indices = [SymbolAttr(str(index)) for index in self.shapes.indices.values()]
        symbols = [*indices, *old.symbols]
        witnesses = [self.block.insert_arg(_prim(each), at) for at, each in enumerate(symbols)]
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

    def _require_known(self, what: str, info: StructInfo) -> None:
        try:
            self.shapes.exactly(info)
        except VerifyException as error:
            fail(self.func, f"{what}: {error}", "name the dimension by a symbol")

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
        self._returned = info
        value, exact = self.values[op.value], self.shapes.exactly(info)
        if value.type != exact and free_symbols(exact) <= {each.symbol.data for each in self.func.symbols} | {
            str(index) for index in self.shapes.indices.values()
        }:
            cast = MatchCastOp(value, exact)
            self._insert(cast)
            value = cast.result
        self._insert(ReturnOp(value))
        (result,) = as_struct_infos([value.type])
        return result

    def _translate(self, op: Operation) -> None:
        if isinstance(op, RedistributeOp):
            self.values[op.result] = collective(op, self.values[op.x], self.shapes, self._insert)
        elif isinstance(op, LocalViewOp | GlobalViewOp):
            self._view(op)
        elif isinstance(op, ConstantOp):
            self._constant(op)
        elif isinstance(op, TupleOp | TupleGetOp):
            made = op.clone(self.values)
            for result, old in zip(made.results, op.results, strict=True):
                Rewriter.replace_value_with_new_type(result, self.shapes.of(as_struct_infos([old.type])[0]))
            self._keep(op, made)
        elif isinstance(op, ShapeOfOp) and op.result.type.known_dims is not None:
            self._keep(op, ShapeOp(op.result.type.known_dims))
        elif all(map(self._is_whole, (*op.operands, *op.results))):
            made = op.clone(self.values)
            for result, old in zip(made.results, op.results, strict=True):
                if isinstance(old.type, TensorType):
                    Rewriter.replace_value_with_new_type(result, old.type.with_sharding(None))
            self._keep(op, made)
        elif isinstance(op, Operator) and not isinstance(op, PlacementOp) and (factors := factors_of(op)) is not None:
            self._require_choice(op, factors)
            self._localize(op)
        else:
            fail(op, f"expected operands that all workers have, got {', '.join(map(str, op.operand_types))}",
                 "use propagate-sharding first, which redistributes them")  # fmt: skip

    def _view(self, op: LocalViewOp | GlobalViewOp) -> None:
        """A worker's tile is what it has; that it is as large as the view says is checked."""
        if isinstance(op, LocalViewOp) and sharding_of(op.x, self.mesh).placements != op.sharding.placements:
            fail(op, f"expected a tensor shared as {op.sharding.text}, got {op.x.type}", "use propagate-sharding first")
        self.values[op.result] = self._as_local(self.values[op.x], as_struct_infos([op.result.type])[0])

    def _constant(self, op: ConstantOp) -> None:
        """A constant is there as a whole; a worker takes its tile."""
        made = ConstantOp(op.value, op.result.type.with_sharding(None))
        made.attributes = dict(op.attributes)
        self._keep(op, made)
        sharding = op.result.type.sharding
        for dim, axis in sharding.shards.items() if sharding is not None else ():
            size, count = (op.result.type.dims or ())[dim], axis.size.constant_value
            if size is None or count is None:
                fail(op, f"expected known dimensions, got {op.result.type}")
            tile, index = self.shapes.tile(size, axis), self.shapes.indices[axis.name]
            cut = RedistributeReplicaToShardOp(self.values[op.result], count, dim, axis.name, tile, index)
            self._insert(cut)
            self.values[op.result] = cut.result

    def _keep(self, old: Operation, new: Operation) -> None:
        for result, made in zip(old.results, new.results, strict=True):
            made.name_hint = result.name_hint
            self.values[result] = made
        self._insert(new)

    def _is_whole(self, value: SSAValue) -> bool:
        placements = [each for sharding in shardings_in(value.type) for each in sharding.placements]
        return all(isinstance(placement, Replicate) for placement in placements)

    def _require_choice(self, op: Operation, factors: Factors) -> None:
        """Fails unless operands and results are what a rule of the op says, along each axis."""
        for at, axis in enumerate(self.mesh.mesh):
            operands = tuple(sharding_of(value, self.mesh).placements[at] for value in op.operands)
            results = tuple(sharding_of(value, self.mesh).placements[at] for value in op.results)
            for factor in (None, *factors.names):
                choice = factors.placements(factor)
                fits = factor is None or admits(op, factors, factor, axis)
                if fits and (choice.operands, choice.results) == (operands, results):
                    break
            else:
                fail(
                    op,
                    f"cannot be shared so along axis {axis}: ({', '.join(map(str, operands))}) -> "
                    f"({', '.join(map(str, results))})",
                    "use propagate-sharding first, which redistributes operands",
                )

    def _localize(self, op: Operator) -> None:
        """The op on a worker's tiles, whose results have the types of its tiles."""
        operands = [self.values[operand] for operand in op.operands]
        wanted = [self.shapes.of(as_struct_infos([result.type])[0]) for result in op.results]
        if isinstance(op, ReshapeOp | BroadcastToOp | FilledOp | FullOp):
            (first,) = wanted
            shape = ShapeOp(_known(op, first))
            self._insert(shape)
            operands[list(op.operands).index(op.shape)] = shape.result
        made = op.clone(dict(zip(op.operands, operands, strict=True)))
        for at, operand in enumerate(operands):
            made.operands[at] = operand
        if isinstance(made, SqueezeOp) and made.axes is None:
            made = SqueezeOp(operands[0], _units(op))
        inferred = type(made).infer_result_types([value.type for value in operands], made.properties)
        for result, info in zip(made.results, inferred, strict=True):
            Rewriter.replace_value_with_new_type(result, info)
        self._keep(op, made)
        for result, local, info in zip(op.results, made.results, wanted, strict=True):
            if local.type != info:
                cast = MatchCastOp(local, info)
                self._insert(cast)
                self.values[result] = cast.result


def _prim(each: SymbolAttr) -> PrimType:
    return PrimType(value=each.symbol.data)


def _known(op: Operation, info: StructInfo) -> Sequence[Dim]:
    dims = info.known_dims if isinstance(info, TensorType) else None
    if dims is None:
        fail(op, f"expected a result with known dimensions, got {info}", "name them by a relax.match_cast")
    return dims


def _units(op: Operation) -> list[int]:
    """The dimensions of the first operand that are 1."""
    info = op.operands[0].type
    dims = info.dims if isinstance(info, TensorType) else None
    return [at for at, dim in enumerate(dims or ()) if dim == constant(1)]
