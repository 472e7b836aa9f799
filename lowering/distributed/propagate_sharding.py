"""`propagate-sharding`: from a few annotations to a sharding of every tensor, with what moves between workers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail, refuse
from lowering.distributed.cost import FLOPS_PER_BYTE, all_gather, bytes_of, estimate, redistribution, work
from lowering.distributed.demands import Demands, along, is_stored, written_in_place
from lowering.distributed.factors import Choice, Factors, admits, choices, units_of
from lowering.distributed.mesh import MeshPass, shardings_in
from lowering.locations import inherit_location
from relax_dialect.ops.callees import find_relax_function
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.control_flow import IfOp, YieldOp, yielded
from relax_dialect.ops.distributed import AnnotateShardingOp, LocalViewOp, PlacementOp, RedistributeOp
from relax_dialect.ops.shapes import ShapeOfOp, TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import REPLICATE, Partial, Placement, Shard, ShardingAttr
from relax_dialect.struct_info.symbols import erase_to_scope
from relax_dialect.struct_info.types import FuncType, ObjectType, TensorType, TupleType, as_struct_infos
from tir_dialect.dims import Dim

GATHERED = "gathered"
"""The attribute of an op with the axes along which all workers get its whole results, however they share the work:
`"x, y"`.
"""


@dataclass(frozen=True)
class PropagateShardingPass(MeshPass):
    """Decides how workers share every tensor of a function, from the shardings of some parameters and annotations.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>,
        %w: !relax.tensor<[16, 8], f32>) -> !relax.tensor<[n, 8], f32> {
      %0 = relax.matmul %x, %v
      %1 = relax.nn.relu %0
      %2 = relax.matmul %1, %w
      relax.return %2
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>,
        %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n, 8], f32, sharding<x = 2: R>> {
      %0 = relax.matmul %x, %v : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
      %1 = relax.nn.relu %0 : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
      %2 = relax.matmul %1, %w : !relax.tensor<[n, 8], f32, sharding<x = 2: P>>
      %3 = relax.dist.redistribute %2 mesh = [2] placement = "R" axes = "x"
      relax.return %3
    }
    ```

    1. Annotations are passed on forwards and backwards, by the rules of operator families: a parameter or constant that
       nobody has annotated gets what its users want.
    2. Each operator, in program order, is shared along the factor that moves the fewest parameters and constants, and
       among these costs least: bytes that operands take to be there, what its result takes to be as its users want it,
       and operations per worker.
    3. A `relax.dist.redistribute` stands where an operand is shared otherwise; its attribute `conflict` says where both
       shardings come from.

    What has no rule is computed by all workers. Two annotations of one tensor that differ are refused, with both
    origins. Options give axes other sizes than the program says, and numbers for symbols: `propagate-sharding{x=4}`.
    """

    name = "propagate-sharding"

    @override
    def rewrite(self, func: FuncOp, mesh: ShardingAttr, shared: Collection[str]) -> None:
        demands = Demands(func, mesh)
        refuse(demands.findings)
        _Propagation(demands).run()


class _Propagation:
    """The placements of the values of one function, decided in program order."""

    def __init__(self, demands: Demands):
        self.demands = demands
        self.func = demands.func
        self.mesh = demands.mesh
        self.axes = range(len(self.mesh.mesh))
        self._made: dict[tuple[SSAValue, tuple[Placement, ...], Block], SSAValue] = {}
        """Redistributions by operand, placements and the block that they are in."""

    def run(self) -> None:
        for param in self.func.params:
            if isinstance(param.type, TensorType):
                self._share(param, [self._wanted(param, at) for at in self.axes])
        for op in [op for op in self.func.walk() if isinstance(op, AnnotateShardingOp)]:
            self._annotate(op)
        self._block(self.func.body.block)
        old = self.func.function_type
        params = as_struct_infos(param.type for param in self.func.params)
        ret = (
            as_struct_infos([self._returned.type])[0]
            if isinstance(self._returned.type, TensorType | TupleType)
            else old.ret
        )
        ret = old.ret if isinstance(old.ret, ObjectType) else erase_to_scope(ret, old.symbol_names)
        self.func.function_type = FuncType(params, ret, pure=old.pure, symbols=old.symbols)

    def _block(self, block: Block) -> None:
        """Decides about the ops of a block, in program order."""
        for op in list(block.ops):
            match op:
                case ReturnOp():
                    self._return(op)
                case ConstantOp():
                    self._share(op.result, [self._wanted(op.result, at) for at in self.axes])
                case LocalViewOp():
                    self._require(op, 0, op.sharding.placements, op.x)
                case PlacementOp() | ShapeOfOp() | YieldOp():
                    # They say what they give, or want no elements; the op with the region says what it yields.
                    pass
                case TupleOp() | TupleGetOp():
                    self._pass_on(op)
                case IfOp():
                    self._branches(op)
                case LoopOp():
                    self._loop(op)
                case CallOp():
                    self._call(op)
                case _ if op in self.demands.rules:
                    self._decide(op, self.demands.rules[op])
                case _:
                    self._require_whole(op)

    def _annotate(self, op: AnnotateShardingOp) -> None:
        """Says in which units workers have tiles, if what is made of them needs some."""
        sharding = self.mesh.with_placements([self._wanted(op.result, at) for at in self.axes])
        op.placement = StringAttr(", ".join(map(str, sharding.placements)))
        self._share(op.result, sharding.placements)

    def _require_whole(self, op: Operation) -> None:
        """Gives an op everything that it takes, or uses in its regions, as all workers have it."""
        whole = (REPLICATE,) * len(self.axes)
        for index in written_in_place(op):
            if self._placements(op.operands[index]) != whole:
                _fail_to_write(op, index)
        for index, operand in enumerate(op.operands):
            if isinstance(operand.type, TupleType):
                op.operands[index] = self._whole_tuple(op, operand)
            else:
                self._require(op, index, whole, operand)
        for value, uses in captured(op).items():
            moved = self._whole_tuple(op, value) if isinstance(value.type, TupleType) else self._moved(op, value, whole)
            for user, index in uses:
                user.operands[index] = moved

    def _whole_tuple(self, op: Operation, value: SSAValue) -> SSAValue:
        """A tuple whose fields all workers have; the tuple itself, if they do already."""
        info = value.type
        if not isinstance(info, TupleType) or not any(shardings_in(info)):
            return value
        fields: list[SSAValue] = []
        for index, field in enumerate(info.fields):
            get = TupleGetOp(value, index)
            Rewriter.replace_value_with_new_type(get.result, field)
            made: SSAValue = self._insert(op, get)
            whole = (REPLICATE,) * len(self.axes)
            nested = isinstance(field, TupleType)
            fields.append(self._whole_tuple(op, made) if nested else self._moved(op, made, whole))
        return self._insert(op, TupleOp(*fields))

    def _insert(self, before: Operation, op: Operation) -> SSAValue:
        inherit_location(before, op)
        Rewriter.insert_op(op, InsertPoint.before(before))
        return op.results[0]

    def _branches(self, op: IfOp) -> None:
        """Both branches yield what they give in the same way: as wanted, else as they have it, terms added up."""
        for region in op.regions:
            self._block(region.block)
        hidden = set(op.result_witnesses)
        for at, result in enumerate(op.res):
            ends = [yielded(region)[at] for region in (op.then_region, op.else_region)]
            self._share(result, self._common(result, [result], ends, hidden))
        for region in (op.then_region, op.else_region):
            self._yield(region, op.res)

    def _loop(self, op: LoopOp) -> None:
        """What is carried is shared in the same way in every iteration: as wanted, else as it is at first.

        A dimension whose size changes is not shared: the sizes of its tiles would be other ones in each iteration.
        """
        carried = [op.carried(region.block) for region in op.regions]
        for at, (init, result) in enumerate(zip(list(op.inits), op.res, strict=True)):
            values = [result, *(arguments[at] for arguments in carried)]
            placements = self._common(carried[0][at], values, [init], set(op.symbol_names))
            for value in values:
                self._share(value, placements)
            self._require(op, len(op.operands) - len(op.inits) + at, placements, init)
        for region in op.regions:
            self._block(region.block)
            self._yield(region, op.res if region is op.regions[-1] else ())

    def _yield(self, region: Region, results: Sequence[SSAValue]) -> None:
        """What a region yields is shared as the results are; all workers have what comes without one, a condition."""
        end = region.block.last_op
        if end is None:
            return
        for index, operand in enumerate(end.operands):
            needed = self._placements(results[index]) if index < len(results) else (REPLICATE,) * len(self.axes)
            if isinstance(operand.type, TupleType):
                end.operands[index] = self._whole_tuple(end, operand)
            else:
                self._require(end, index, needed, operand)

    def _common(
        self, typed: SSAValue, wanted: Sequence[SSAValue], given: Sequence[SSAValue], hidden: set[str]
    ) -> list[Placement]:
        """A placement along each axis for values of one type: one that is wanted, else one that a given value has.

        Dimensions have to be there as tiles for all: those that are not known, or that name a hidden symbol, are not.
        """
        info = typed.type
        dims = (info.dims or ()) if isinstance(info, TensorType) else ()
        found: list[Placement] = []
        for at in self.axes:
            options = [self._wanted(value, at) for value in wanted]
            options += [self._placements(value)[at] for value in given]
            fitting = (
                each
                for each in options
                if isinstance(each, Shard) and each.dim not in map(along, found) and _is_tiled(dims, each.dim, hidden)
            )
            found.append(next(fitting, REPLICATE))
        return found

    def _call(self, op: CallOp) -> None:
        """Arguments are shared as the parameters of the callee are, and the result as what it returns."""
        callee = find_relax_function(op, op.callee)
        if callee is None or not any(map(shardings_in, ((*callee.function_type.params, callee.function_type.ret)))):
            self._require_whole(op)
            return
        for index, (operand, info) in enumerate(zip(list(op.arguments), callee.function_type.params, strict=True)):
            if isinstance(info, TensorType):
                sharding = info.sharding
                needed = (REPLICATE,) * len(self.axes) if sharding is None else sharding.placements
                self._require(op, index, needed, operand)
            elif any(shardings_in(info)) or any(shardings_in(operand.type)):
                fail(op, f"takes a tuple of which workers share fields: {info}", "use inline-functions first")
        outcome = op.outcome()
        if outcome is not None:
            Rewriter.replace_value_with_new_type(op.result, outcome.ret)

    def _wanted(self, value: SSAValue, at: int) -> Placement:
        demand = self.demands.wanted.get((value, at))
        return REPLICATE if demand is None else demand.placement

    def _placements(self, value: SSAValue) -> tuple[Placement, ...]:
        info = value.type
        sharding = info.sharding if isinstance(info, TensorType) else None
        return (REPLICATE,) * len(self.axes) if sharding is None else sharding.placements

    def _share(self, value: SSAValue, placements: Sequence[Placement]) -> None:
        """Says in its type how a tensor is shared, unless all workers have all of it."""
        info = value.type
        if isinstance(info, TensorType) and any(placement != REPLICATE for placement in placements):
            shared = info.with_sharding(self.mesh.with_placements(placements))
            new = Rewriter.replace_value_with_new_type(value, shared)
            for at in self.axes:
                if (demand := self.demands.wanted.get((value, at))) is not None:
                    self.demands.wanted[new, at] = demand

    def _require(self, op: Operation, index: int, needed: Sequence[Placement], operand: SSAValue) -> None:
        """Gives an op an operand that is shared as it needs it."""
        op.operands[index] = self._moved(op, operand, tuple(needed))

    def _moved(self, op: Operation, operand: SSAValue, placements: tuple[Placement, ...]) -> SSAValue:
        """A value as an op needs it: redistributed where it is shared otherwise, before the loops that do not change
        it.
        """
        if not isinstance(operand.type, TensorType) or self._placements(operand) == placements:
            return operand
        point = _outside_of_loops(op, operand)
        block: Block | None = point.parent_block()
        while block is not None:
            if (known := self._made.get((operand, placements, block))) is not None:
                return known
            block = block.parent_block()
        moved = RedistributeOp.of(operand, self.mesh.with_placements(placements))
        if (conflict := self._conflict(op, operand, placements)) is not None:
            moved.attributes["conflict"] = StringAttr(conflict)
        moved.result.name_hint = operand.name_hint
        self._insert(point, moved)
        if (block := point.parent_block()) is not None:
            self._made[operand, placements, block] = moved.result
        return moved.result

    def _conflict(self, op: Operation, operand: SSAValue, needed: Sequence[Placement]) -> str | None:
        """Where both shardings come from, if different annotations want them."""
        for at in self.axes:
            given = self.demands.wanted.get((operand, at))
            others = [self.demands.wanted.get((value, at)) for value in (*op.operands, *op.results)]
            other = next((each for each in others if each is not None and given is not None and each != given), None)
            if (
                given is not None
                and other is not None
                and given.origin != other.origin
                and needed[at] != given.placement
            ):
                return f"{given.placement} by {given.origin}, {other.placement} by {other.origin}"
        return None

    def _pass_on(self, op: TupleOp | TupleGetOp) -> None:
        """A tuple has what its fields are; terms are added up first."""
        if isinstance(op, TupleOp):
            for index, operand in enumerate(op.operands):
                self._require(op, index, _without_terms(self._placements(operand)), operand)
            info = TupleType(as_struct_infos(operand.type for operand in op.operands))
        else:
            (whole,) = as_struct_infos([op.operands[0].type])
            info = whole.fields[op.index.value.data] if isinstance(whole, TupleType) else op.results[0].type
        Rewriter.replace_value_with_new_type(op.results[0], info)

    def _return(self, op: ReturnOp) -> None:
        declared = self.func.function_type.ret
        wanted = declared.sharding if isinstance(declared, TensorType) else None
        needed = _without_terms(self._placements(op.value)) if wanted is None else wanted.placements
        self._require(op, 0, needed, op.value)
        self._returned = op.operands[0]

    def _decide(self, op: Operation, factors: Factors) -> None:
        """Shares an op along each axis by what costs least."""
        chosen: list[Choice] = []
        for at in self.axes:
            units = units_of(factors, [self._placements(value)[at] for value in (*op.operands, *op.results)])
            for each in self.demands.factors_in(op, factors, at):
                units.setdefault(each.factor, set()).add(each.unit)
            found = [
                choice
                for choice in choices(op, factors, self.mesh.mesh[at], units)
                if (choice.factor is None or choice.factor in units) and _is_free(choice, chosen)
            ]
            for index in written_in_place(op):
                placement = self._placements(op.operands[index])[at]
                found = [choice for choice in found if choice.operands[index] == placement]
                if not found:
                    _fail_to_write(op, index)
            chosen.append(min(found, key=lambda choice: self._cost(op, factors, choice, at)))
        for index, operand in enumerate(op.operands):
            self._require(op, index, [choice.operands[index] for choice in chosen], operand)
        for index, result in enumerate(op.results):
            self._share(result, [choice.results[index] for choice in chosen])
        if isinstance(gathered := op.attributes.pop(GATHERED, None), StringAttr):
            names = gathered.data.split(", ")
            self._gather(op, {at for at in self.axes if self.mesh.mesh[at].name in names})

    def _gather(self, op: Operation, axes: set[int]) -> None:
        """Gives the users of an op its whole results along some axes, or leaves that to users that take tiles and give
        no more than they take: of logits, all workers get what a search finds.
        """
        for result in op.results:
            kept = self._placements(result)
            placements = [REPLICATE if at in axes else placement for at, placement in enumerate(kept)]
            users = {use.operation for use in result.uses}
            if tuple(placements) == kept:
                continue
            if users and all(self._takes_tiles(user, result, axes) for user in users):
                names = ", ".join(self.mesh.mesh[at].name for at in sorted(axes))
                for user in users:
                    user.attributes[GATHERED] = StringAttr(names)
                continue
            moved = RedistributeOp.of(result, self.mesh.with_placements(placements))
            inherit_location(op, moved)
            Rewriter.insert_op(moved, InsertPoint.after(op))
            result.replace_uses_with_if(moved.result, lambda use, moved=moved: use.operation is not moved)

    def _takes_tiles(self, op: Operation, value: SSAValue, axes: set[int]) -> bool:
        """Whether workers can share an op as they share an operand, and it gives no more than that."""
        factors = self.demands.rules.get(op)
        if factors is None or op.parent_block() is not _block_of(value):
            return False
        for index, (operand, labels) in enumerate(zip(op.operands, factors.operands, strict=True)):
            for at in axes if operand is value else ():
                placement = self._placements(value)[at]
                factor = labels[placement.dim] if isinstance(placement, Shard) else None
                if factor is None or not isinstance(placement, Shard):
                    return False
                if not admits(op, factors, factor, self.mesh.mesh[at], factors.unit(factor, index, placement)):
                    return False
        infos = [each.type for each in (value, *op.results)]
        taken, *given = [estimate(bytes_of(info)) if isinstance(info, TensorType) else 0 for info in infos]
        return sum(given) <= taken

    def _cost(self, op: Operation, factors: Factors, choice: Choice, at: int) -> tuple[int, float]:
        """How many parameters and constants are gathered, whose tiles are there to save memory; and bytes that a
        worker sends for an op, with what its operations take in bytes.
        """
        gathered = [
            operand
            for operand, needed in zip(op.operands, choice.operands, strict=True)
            if is_stored(operand) and self._placements(operand)[at] not in (needed, REPLICATE)
        ]
        return len(gathered), self._seconds(op, factors, choice, at)

    def _seconds(self, op: Operation, factors: Factors, choice: Choice, at: int) -> float:
        """What an op takes, in the time in which a worker sends a byte."""
        axis = self.mesh.mesh[at]
        workers = self.mesh.mesh[at].size.constant_value or 1
        total = estimate(work(op, factors)) / FLOPS_PER_BYTE / (1 if choice.factor is None else workers)
        if choice.factor is not None and (brought := factors.brought.get(choice.factor)) is not None:
            total += estimate(all_gather(brought * workers, workers).bytes)
        for operand, needed in zip(op.operands, choice.operands, strict=True):
            if isinstance(operand.type, TensorType):
                total += estimate(redistribution(operand.type, axis, self._placements(operand)[at], needed).bytes)
        for result, placement in zip(op.results, choice.results, strict=True):
            if isinstance(result.type, TensorType) and (
                (result, at) in self.demands.wanted or isinstance(placement, Partial)
            ):
                total += estimate(redistribution(result.type, axis, placement, self._wanted(result, at)).bytes)
        return total


def _fail_to_write(op: Operation, index: int) -> NoReturn:
    fail(
        op,
        f"writes in place into a tensor of which workers have tiles that it does not fit: {op.operands[index].type}",
        "share a dimension that the PrimFunc indexes by the same loop variable everywhere, or none",
    )


def _is_tiled(dims: Sequence[Dim | None], at: int, hidden: set[str]) -> bool:
    """Whether a dimension has a size, in symbols that are visible where the tensor is."""
    size = dims[at] if at < len(dims) else None
    return size is not None and hidden.isdisjoint(size.symbols)


def _outside_of_loops(op: Operation, value: SSAValue) -> Operation:
    """The outermost loop around an op, without branches in between, that does not make a value; the op, if none is."""
    while isinstance(parent := op.parent_op(), LoopOp) and not _is_inside(value, parent):
        op = parent
    return op


def _block_of(value: SSAValue) -> Block | None:
    """The block that a value is made in."""
    return value.owner if isinstance(value.owner, Block) else value.owner.parent_block()


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made in a region of an op."""
    block = _block_of(value)
    while block is not None and (parent := block.parent_op()) is not None:
        if parent is op:
            return True
        block = parent.parent_block()
    return False


def captured(op: Operation) -> dict[SSAValue, list[tuple[Operation, int]]]:
    """The values from outside that the regions of an op use, with the uses."""
    found: dict[SSAValue, list[tuple[Operation, int]]] = {}
    for inner in op.walk():
        for index, operand in enumerate(inner.operands):
            if inner is not op and not _is_inside(operand, op):
                found.setdefault(operand, []).append((inner, index))
    return found


def _without_terms(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    return tuple(REPLICATE if isinstance(placement, Partial) else placement for placement in placements)


def _is_free(choice: Choice, others: Sequence[Choice]) -> bool:
    """Whether no dimension would be shared along two axes, and no result would have terms of two kinds."""
    for other in others:
        pairs = zip((*choice.operands, *choice.results), (*other.operands, *other.results), strict=True)
        for one, two in pairs:
            if isinstance(one, Shard) and along(one) == along(two):
                return False
            if isinstance(one, Partial) and isinstance(two, Partial) and one != two:
                return False
    return True
