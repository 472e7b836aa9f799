"""`split-stages`: a function for each stage of a pipeline, which sends what the next ones need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from lowering.diagnostics import fail
from lowering.distributed.lower_distributed import GLOBAL_TYPE, MESH, WORKERS
from lowering.distributed.mesh import mesh_of
from lowering.distributed.propagate_sharding import captured
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.convert_dataflow import ToNonDataflowPass
from relax_dialect.function_symbols import all_symbols
from relax_dialect.ops.collective import ReceiveOp, SendOp
from relax_dialect.ops.shapes import ShapeOfOp, ShapeOp, TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp, NullOp, PrimOp, StringOp
from relax_dialect.struct_info.sharding import REPLICATE, ShardingAttr
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import FuncType, PrimType, ShapeType, StructInfo, TensorType, as_struct_infos
from tir_dialect.dims import symbol
from tir_dialect.types import SymbolAttr

STAGE = "stage"
"""The attribute of an op that has the number of the stage in which it runs at the earliest."""

ARGUMENTS = "arguments"
"""The attribute of a stage that says which arguments of the whole it has."""

FREE = (ConstantOp, PrimOp, StringOp, NullOp, ShapeOp)
"""What every stage makes for itself."""


@dataclass(frozen=True)
class SplitStagesPass(Pass):
    """Makes of each function whose ops have stages a function for every stage, each for one worker along an axis.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>) -> !relax.tensor<[n, 8], f32> {
      %0 = relax.exp %x
      %1 = relax.tanh %0 {stage = 1 : i64}
      relax.return %1
    }
    ```

    After:

    ```mlir
    relax.func @main_stage0[%p_index, %n](%workers: !relax.shape<[2, p_index, n]>, %x: !relax.tensor<[n, 8], f32>)
        -> !relax.tuple<!relax.tensor<[0], i1>> {
      %0 = relax.exp %x
      %1 = relax.ccl.send %0 to = 1 group = "p"
      %2 = relax.tuple(%1)
      relax.return %2
    }
    relax.func @main_stage1[%p_index, %n](%workers: !relax.shape<[2, p_index, n]>) -> !relax.tensor<[n, 8], f32> {
      %0 = relax.shape [n, 8]
      %1 = relax.ccl.receive %0 source = 0 dtype = f32 group = "p"
      %2 = relax.tanh %1
      relax.return %2
    }
    ```

    1. An op runs in the stage that its attribute says, or in that of its latest operand, if that is later.
    2. What several stages need, and no tensor is needed for (constants, shapes), each makes for itself.
    3. A tensor goes once to each stage that uses it. Nobody waits until it is taken: a stage may go on with the next
       call meanwhile.

    The last stage returns the result, other ones that they have sent. A stage has the parameters that it uses, after
    one that says which worker this is and the sizes of the whole. The option is the name of the axis.
    """

    name = "split-stages"

    axis: str = "p"
    """The axis of the mesh."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ToNonDataflowPass().apply(ctx, op)
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            if any(STAGE in inner.attributes for inner in func.body.block.ops):
                _Stages(func, self.axis).split()


@dataclass
class _Stages:
    """The stages of one function."""

    func: FuncOp
    axis: str
    stages: dict[Operation, int | None] = field(default_factory=dict[Operation, "int | None"])
    """The stage of each op; none of what every stage makes for itself."""

    def split(self) -> None:
        """Puts a function for each stage where the function is."""
        func = self.func
        if mesh_of(func) is not None:
            fail(func, "has stages, and tensors that workers share", "a stage is for one worker")
        if not func.function_type.pure:
            fail(func, "has stages, but is impure", "effects of stages would come in another order")
        for op in list(func.body.block.ops):
            if isinstance(op, ShapeOfOp) and (dims := op.result.type.known_dims) is not None:
                Rewriter.replace_op(op, ShapeOp(dims))
        for op in func.body.block.ops:
            self.stages[op] = self._stage(op)
        count = 1 + max(stage for stage in self.stages.values() if stage is not None)
        # The later stages that use a value, in order.
        found: dict[SSAValue, set[int]] = {}
        for op, stage in self.stages.items():
            for value in (*op.operands, *captured(op)):
                made = self.stage_of(value)
                if stage is not None and made is not None and made < stage:
                    self._require_sendable(op, value)
                    found.setdefault(value, set()).add(stage)
        needed = {value: sorted(stages) for value, stages in found.items()}
        block = func.parent_block()
        for stage in range(count):
            made = _Stage(self, stage, count, needed).make()
            if block is not None:
                block.insert_op_before(made, func)
        func.detach()
        func.erase()

    def _stage(self, op: Operation) -> int | None:
        if isinstance(op, FREE) and all(self.stage_of(operand) is None for operand in op.operands):
            return None
        own = op.attributes.get(STAGE)
        if own is not None and (not isinstance(own, IntegerAttr) or own.value.data < 0):
            fail(op, f"expected the number of a stage, got {own}")
        stages = [self.stage_of(value) for value in (*op.operands, *captured(op))]
        known = [stage for stage in stages if stage is not None]
        if isinstance(op, ReturnOp):
            known += [stage for stage in self.stages.values() if stage is not None]
        return max([0 if own is None else own.value.data, *known])

    def stage_of(self, value: SSAValue) -> int | None:
        """The stage that makes a value; none, if every stage has it."""
        return self.stages.get(value.owner) if isinstance(value.owner, Operation) else None

    def _require_sendable(self, op: Operation, value: SSAValue) -> None:
        info = value.type
        if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
            fail(op, f"expected a tensor whose dimensions are known from the stage before, got {info}",
                 "put both ops into one stage, or name the dimensions by a relax.match_cast")  # fmt: skip
        own = {each.symbol.data for each in self.func.symbols}
        if others := {name for dim in info.known_dims for name in dim.symbols} - own:
            fail(op, f"expected dimensions over symbols of the function, got {', '.join(sorted(others))} in {info}",
                 "put both ops into one stage")  # fmt: skip


class _Stage:
    """The function of one stage."""

    def __init__(self, whole: _Stages, stage: int, count: int, needed: Mapping[SSAValue, Sequence[int]]):
        self.whole, self.stage, self.count, self.needed = whole, stage, count, needed
        self.func = whole.func
        self.block = Block()
        self.values: dict[SSAValue, SSAValue] = {}
        self.tokens: list[SSAValue] = []
        self.tags = {(value, to): at for at, (value, to) in enumerate((v, to) for v in needed for to in needed[v])}

    def make(self) -> FuncOp:
        """The function, which is in no module yet."""
        func, old = self.func, self.func.function_type
        ops, used = self._ops()
        index = symbol(fresh_name(f"{self.whole.axis}_index", all_symbols(func)))
        symbols = [SymbolAttr(str(index)), *old.symbols]
        workers = ShapeType([self.count, index, *(each.symbol.data for each in old.symbols)])
        arguments = [at for at, param in enumerate(func.params) if param in used]
        params: list[StructInfo] = [workers, *(old.params[at] for at in arguments)]
        for each in symbols:
            self.block.insert_arg(PrimType(value=each.symbol.data), len(self.block.args)).name_hint = each.symbol.data
        self.values.update(zip(func.witnesses, self.block.args[1:], strict=True))
        names = [WORKERS, *(func.param_names[at] for at in arguments)]
        for info, name in zip(params, names, strict=True):
            self.block.insert_arg(info, len(self.block.args)).name_hint = name
        own = self.block.args[len(symbols) + 1 :]
        self.values.update({func.params[at]: value for at, value in zip(arguments, own, strict=True)})
        result = self._body(ops)
        local = FuncType(params, as_struct_infos([result.type])[0], pure=True, symbols=symbols)
        made = FuncOp(f"{func.sym_name.data}_stage{self.stage}", local, Region(self.block))
        made.name_params(names)
        mesh = ShardingAttr.of({self.whole.axis: self.count}, [REPLICATE])
        numbers = DenseArrayBase.from_list(i64, arguments)
        made.attributes = {**func.attributes, MESH: mesh, GLOBAL_TYPE: old, ARGUMENTS: numbers}
        inherit_location(func, made)
        return made

    def _ops(self) -> tuple[Sequence[Operation], set[SSAValue]]:
        """The ops of the stage, with what it makes for itself and needs, and the values that they use."""
        used = set[SSAValue]()
        found: list[Operation] = []
        for op in reversed(list(self.func.body.block.ops)):
            stage = self.whole.stages[op]
            if stage == self.stage or (stage is None and not used.isdisjoint(op.results)):
                used.update((*op.operands, *captured(op)))
                found.append(op)
        return found[::-1], used

    def _body(self, ops: Sequence[Operation]) -> SSAValue:
        """What the stage computes; gives what it returns."""
        for op in ops:
            for value in (*op.operands, *captured(op)):
                made = self.whole.stage_of(value)
                if value not in self.values and made is not None and made < self.stage:
                    self._receive(op, value, made)
            if isinstance(op, ReturnOp):
                break
            new = op.clone(self.values)
            new.attributes.pop(STAGE, None)
            for old_result, result in zip(op.results, new.results, strict=True):
                result.name_hint = old_result.name_hint
                self.values[old_result] = result
            self.block.add_op(new)
            for result in op.results:
                for to in self.needed.get(result, ()):
                    send = SendOp(self.values[result], to, self.tags[result, to], self.whole.axis)
                    self.tokens.append(self._insert(op, send))
        last = ops[-1] if ops else None
        if isinstance(last, ReturnOp) and self.stage == self.count - 1:
            result = self.values[last.value]
        else:
            result = self._insert(last or self.func, TupleOp(*self.tokens))
        self._insert(last or self.func, ReturnOp(result))
        return result

    def _insert(self, at: Operation, op: Operation) -> SSAValue:
        inherit_location(at, op)
        self.block.add_op(op)
        return op.results[0] if op.results else op.operands[0]

    def _receive(self, op: Operation, value: SSAValue, source: int) -> None:
        info = value.type
        if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
            return  # has been refused
        shape = self._insert(op, ShapeOp(info.known_dims))
        receive = ReceiveOp(shape, source, info.dtype, self.tags[value, self.stage], self.whole.axis)
        self.values[value] = self._insert(op, receive)
        self.values[value].name_hint = value.name_hint
