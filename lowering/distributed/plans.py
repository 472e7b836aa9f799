"""Ready-made plans: which parameters and constants of a known architecture to annotate, by their names.

`propagate-sharding` finds the rest. A plan says what workers share along one axis of the mesh; several plans, each with
an axis of its own, are combined by annotating one after the other: a mesh is the axes of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.distributed.factors import dims
from lowering.distributed.propagate_sharding import GATHERED
from lowering.distributed.split_stages import STAGE
from lowering.relax.call_graph import CallGraph
from relax_dialect.ops.callees import find_relax_function
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.datatype import DequantizeBlocksOp
from relax_dialect.ops.distributed import AnnotateShardingOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.normalization import LayerNormOp, RMSNormOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import REPLICATE, Placement, Shard, ShardingAttr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant, floordiv


@dataclass(frozen=True)
class Plan:
    """What is annotated along one axis: tensors whose names match patterns as of files, `*.q_proj.weight`."""

    placements: Mapping[str, Placement]
    """Of parameters and constants, by pattern; the first one that matches counts. Negative dimensions count from the
    back.
    """
    norms: int | None = None
    """The dimension along which workers share what is normalised, if they do."""
    gathered: Sequence[str] = ()
    """Matrices, by pattern, of whose matmul all workers get the result, or what is left of it."""


def data_parallel(*inputs: str) -> Plan:
    """Workers have tiles of the batch: the first dimension of some parameters."""
    return Plan({name: Shard(0) for name in inputs})


def tensor_parallel(
    columns: Sequence[str],
    rows: Sequence[str],
    vectors: Sequence[str] = (),
    tables: Sequence[str] = (),
    heads: Sequence[str] = (),
) -> Plan:
    """Workers have columns of some matrices and rows of those that follow (Shoeybi et al., 2019, Megatron-LM).

    Matrices are (inputs, outputs): `columns` go by outputs, and so do `vectors`, their biases; `rows` go by inputs.
    Of `tables` of embeddings, (vocabulary, features), workers have tiles of the vocabulary, and of `heads`, (features,
    vocabulary), too, whose results all workers get: as a whole, or what an operator finds in them, as `argmax` does.
    """
    by_output = {name: Shard(-1) for name in (*columns, *vectors, *heads)}
    return Plan(by_output | {name: Shard(0) for name in (*rows, *tables)}, gathered=heads)


def sequence_parallel(dim: int = 1) -> Plan:
    """Workers normalise tiles of the sequence (Korthikanti et al., 2022); goes with a tensor-parallel plan."""
    return Plan({}, dim)


def expert_parallel(*experts: str) -> Plan:
    """Workers have some of the experts each: the first dimension of their matrices (Lepikhin et al., 2020, GShard).

    Where all workers have all tokens, an all-reduce adds up what their experts give. Where they have tiles of the
    tokens along the same axis, an all-gather brings these to the experts, and a reduce-scatter brings the sums back.
    """
    return Plan({name: Shard(0) for name in experts})


LLAMA = tensor_parallel(
    columns=[f"*.{part}_proj.weight" for part in ("q", "k", "v", "gate", "up")],
    rows=["*.o_proj.weight", "*.down_proj.weight"],
    tables=["*embed_tokens.weight"],
    heads=["lm_head.weight"],
)
"""Heads, hidden features and the vocabulary of decoders with the names of Llama's checkpoints."""

LLAMA_CACHE = Plan({"keys*": Shard(2), "values*": Shard(2)})
"""The heads of its caches of keys and values, (batch, past, heads, head size)."""

LLAMA_PACKED = Plan(
    {"*.experts.*": Shard(1)}
    | {f"*.{part}_proj.weight": Shard(0) for part in ("q", "k", "v", "gate", "up")}
    | {f"*.{part}_proj.weight": Shard(1) for part in ("o", "down")}
    | {"*embed_tokens.weight": Shard(0), "lm_head.weight": Shard(0)}
)
"""Of decoders from GGUF files, whose matrices are packed: (outputs, bytes of inputs). Workers have tiles of
inputs that consist of whole blocks, or the whole matrix if it has fewer blocks. Of experts, whose matrices are stacked,
each worker has some of the outputs of all: tokens that go to one expert keep all workers busy."""

LLAMA_POOLS = Plan({f"{name}*": Shard(1) for name in ("keys", "values", "key_scales", "value_scales")})
"""The heads of its caches in pages, (pages, heads, positions of a page, head size)."""

BERT = tensor_parallel(
    columns=["*.self.query.weight", "*.self.key.weight", "*.self.value.weight", "*.intermediate.dense.weight"],
    rows=["*.output.dense.weight"],
    vectors=["*.self.query.bias", "*.self.key.bias", "*.self.value.bias", "*.intermediate.dense.bias"],
    tables=["*embeddings.word_embeddings.weight", "*embeddings.position_embeddings.weight"],
)
"""Heads, hidden features, the vocabulary and positions of encoders with the names of BERT's checkpoints."""


def annotate(module: ModuleOp, plans: Mapping[str, Plan | Sequence[Plan]], mesh: Mapping[str, int]) -> int:
    """Annotates the functions of a module by plans, each for an axis of the mesh; gives how many tensors it found.

    What a private function is called with, its parameters are: layers may be functions. Raises `ValueError` for a plan
    whose axis the mesh does not have.
    """
    if others := plans.keys() - mesh.keys():
        raise ValueError(f"expected plans for axes of the mesh {', '.join(mesh)}, got {', '.join(sorted(others))}")
    by_axis = {axis: list(plan) if isinstance(plan, Sequence) else [plan] for axis, plan in plans.items()}
    count = 0
    for func, wanted in _wanted(module, by_axis, mesh).items():
        for name, value in _named(func):
            _gather(value, [axis for axis in mesh if _is_gathered(by_axis.get(axis, ()), name)])
        for value, placements in wanted.items():
            count += _annotate(value, ShardingAttr.of(mesh, placements))
        for op in [op for op in func.walk() if isinstance(op, LayerNormOp | RMSNormOp)]:
            placements = [_of_norms(by_axis.get(axis, ())) for axis in mesh]
            if any(placement != REPLICATE for placement in placements):
                note = AnnotateShardingOp.of(op.x, ShardingAttr.of(mesh, placements))
                Rewriter.insert_op(note, InsertPoint.before(op))
                op.operands[0] = note.result
                count += 1
    return count


_Wanted: TypeAlias = "dict[SSAValue, Sequence[Placement]]"
"""What workers have of some tensors, along each axis of the mesh."""


def _wanted(module: ModuleOp, by_axis: Mapping[str, Sequence[Plan]], mesh: Mapping[str, int]) -> dict[FuncOp, _Wanted]:
    """What plans say about the tensors of each function. A parameter of a private function that no plan names is what
    all calls give for it, if that is the same.
    """
    components = CallGraph.of(module).components()
    functions = sorted(
        (op for op in module.ops if isinstance(op, FuncOp)), key=lambda func: -components[func.sym_name.data]
    )
    found: dict[FuncOp, _Wanted] = {}
    given: dict[SSAValue, set[tuple[Placement, ...]]] = {}
    for func in functions:  # callers before what they call
        wanted: _Wanted = {}
        for name, value in _named(func):
            named = {axis: _placement(by_axis.get(axis, ()), name, value) for axis in mesh}
            wanted[value] = [each if _fits(each, value, mesh[axis]) else REPLICATE for axis, each in named.items()]
        for param in func.params:
            if func.is_private and set(wanted[param]) == {REPLICATE} and len(all_given := given.get(param, ())) == 1:
                (wanted[param],) = all_given
        for op in func.walk():
            callee = find_relax_function(op, op.callee) if isinstance(op, CallOp) else None
            if isinstance(op, CallOp) and callee is not None:
                for argument, param in zip(op.arguments, callee.params, strict=True):
                    whole = (REPLICATE,) * len(mesh)
                    given.setdefault(param, set()).add(tuple(wanted.get(argument, whole)))
        found[func] = wanted
    return found


def assign_stages(module: ModuleOp, stages: Sequence[Sequence[str]]) -> int:
    """Gives ops stages of a pipeline: those that use a parameter or constant whose name matches a pattern of a stage.

    What follows from them is in their stage or a later one (`split-stages`). Gives how many tensors it found.
    """
    count = 0
    for func in [op for op in module.ops if isinstance(op, FuncOp)]:
        for name, value in _named(func):
            matching = [at for at, patterns in enumerate(stages) if any(fnmatchcase(name, each) for each in patterns)]
            if matching:
                count += 1
                for use in value.uses:
                    use.operation.attributes[STAGE] = IntegerAttr(matching[0], i64)
    return count


def _named(func: FuncOp) -> Iterator[tuple[str, SSAValue]]:
    yield from zip(func.param_names, func.params, strict=True)
    for op in func.walk():
        if isinstance(op, ConstantOp) and op.weight_name is not None:
            yield op.weight_name, op.result


def _fits(placement: Placement, value: SSAValue, workers: int) -> bool:
    """Whether there is a whole block of a packed matrix for each worker."""
    packed = [op.block_format for op in _users(value) if isinstance(op, DequantizeBlocksOp)]
    row = dims(value)[-1:]
    counts = [size and floordiv(size, constant(each.bytes)).constant_value for each in packed for size in row]
    return placement != Shard(len(dims(value)) - 1) or all(count is None or count >= workers for count in counts)


def _users(value: SSAValue) -> Iterator[Operation]:
    """The ops that take a value, also in functions that are called with it."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            callee = find_relax_function(op, op.callee) if isinstance(op, CallOp) else None
            if callee is None:
                yield op
            elif (param := callee.params[use.index]) not in seen:
                seen.add(param)
                pending.append(param)


def _placement(plans: Sequence[Plan], name: str, value: SSAValue) -> Placement:
    rank = value.type.rank if isinstance(value.type, TensorType) else None
    for plan in plans:
        for pattern, placement in plan.placements.items():
            if rank is not None and fnmatchcase(name, pattern):
                return Shard(placement.dim % rank) if isinstance(placement, Shard) else placement
    return REPLICATE


def _is_gathered(plans: Sequence[Plan], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for plan in plans for pattern in plan.gathered)


def _of_norms(plans: Sequence[Plan]) -> Placement:
    return next((Shard(plan.norms) for plan in plans if plan.norms is not None), REPLICATE)


def _gather(matrix: SSAValue, axes: Sequence[str]) -> None:
    """Marks the matmuls of a matrix: all workers along these axes get the result, or what is left of it."""
    for use in matrix.uses:
        if axes and isinstance(use.operation, MatmulOp):
            use.operation.attributes[GATHERED] = StringAttr(", ".join(axes))


def _annotate(value: SSAValue, sharding: ShardingAttr) -> bool:
    """Says how a tensor is shared, unless all workers have all of it; whether it did."""
    if all(placement == REPLICATE for placement in sharding.placements):
        return False
    note = AnnotateShardingOp.of(value, sharding)
    owner = value.owner
    point = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
    value.replace_all_uses_with(note.result)
    note.operands[0] = value
    Rewriter.insert_op(note, point)
    return True
