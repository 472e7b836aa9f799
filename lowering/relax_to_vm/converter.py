"""The rewriter that converts one function: what it emits has its checks before it.

Types are checked, symbols bound and dimensions compared before the first use of what they are about. The constant
tensors of the module are shared by its functions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.diagnostics import fail
from lowering.locations import source_position
from lowering.relax_to_vm.checks import Sizes, TypeChecks, UnboundSymbolError
from lowering.rewriting import ConversionRewriter, PatternIndex, op_rewrite_pattern
from relax_dialect.analysis.effects import may_be_observed
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp, Relation
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.match import Mismatch, match_types
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import ObjectType, PrimType, StructInfo, as_struct_infos
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.weights import TensorAttr, WeightAttr
from vm_dialect import messages
from vm_dialect.ops.checks import AssertOp
from vm_dialect.ops.values import ConstantSymbolOp


@dataclass
class Constants:
    """Symbols of constant tensors, one for each distinct value."""

    taken: set[str]
    """Names that the module has already."""
    _made: dict[tuple[TensorType, TensorAttr], ConstantSymbolOp] = field(
        default_factory=dict[tuple[TensorType, TensorAttr], ConstantSymbolOp]
    )

    def get(self, tensor_type: TensorType, value: TensorAttr) -> ConstantSymbolOp:
        """The symbol of a tensor; that of a weight has its name, if that is free."""
        key = (tensor_type, value)
        found = self._made.get(key)
        if found is None:
            name = value.data.name if isinstance(value, WeightAttr) else "constant"
            unique = name if isinstance(value, WeightAttr) and name not in self.taken else fresh_name(name, self.taken)
            self.taken.add(unique)
            found = self._made[key] = ConstantSymbolOp(unique, tensor_type, value)
        return found

    def __iter__(self) -> Iterator[ConstantSymbolOp]:
        """The symbols in the order in which they were first used."""
        return iter(self._made.values())


ANYTHING = ObjectType()


_BEFORE = "run the passes of the pipeline up to 'lower-shapes' first"


class Converter(ConversionRewriter):
    """Converts the body of one relax function, op by op, in program order."""

    def __init__(self, function: str, entry: Block, constants: Constants, patterns: PatternIndex):
        """`entry` receives the first ops; errors at run time begin with the name `function`."""
        super().__init__(patterns, entry)
        self.function = function
        self.constants = constants
        self._values: dict[SSAValue, SSAValue] = {}
        self._current: Operation | None = None
        self._closed = False
        self.sizes = Sizes(self.emit)
        self.checked: set[Operation] = set()
        """The guards whose checks are made."""

    # Emission

    def emit(self, op: Operation) -> Operation:
        """Inserts an op at the insertion point, with the location of the op that is being converted."""
        if self._current is not None:
            op.location = self._current.location
        return self.insert(op)

    def result(self, op: Operation) -> SSAValue:
        """Inserts an op and gives its only result."""
        return self.emit(op).results[0]

    @property
    def block(self) -> Block:
        """The block that receives ops."""
        return self.insertion_point.block

    def new_block(self, argument_types: Sequence[Attribute] = ()) -> Block:
        """A further block of the function, behind those that there are."""
        region = self.block.parent
        if region is None:
            raise ValueError("the block is not in a function")
        block = Block(arg_types=argument_types)
        region.add_block(block)
        return block

    def close(self) -> None:
        """The current block has ended the function: what follows in the relax block cannot be reached."""
        self._closed = True

    def continue_in(self, block: Block) -> None:
        """Ops go to the end of `block` from now on."""
        self._closed = False
        self.insertion_point = InsertPoint.at_end(block)

    # Values

    def set(self, value: SSAValue, register: SSAValue) -> None:
        """`register` holds the relax value from here on; a prim value witnesses its dimension."""
        self._values[value] = register
        register.name_hint = register.name_hint or value.name_hint
        if isinstance(value.type, PrimType) and value.type.value is not None:
            self.sizes.bind(value.type.value, register)

    def get(self, value: SSAValue) -> SSAValue:
        """The register that holds a relax value."""
        return self._values[value]

    def get_all(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The registers of several relax values."""
        return [self._values[value] for value in values]

    def size(self, dim: Dim) -> SSAValue:
        """The value of a dimension."""
        return self.sizes.value(dim)

    def typed(self, register: SSAValue, info: Attribute, what: str, known: StructInfo = ANYTHING) -> SSAValue:
        """A register as a value of type `info`, checked as far as `known` leaves open; errors call it `what`."""
        if not isinstance(info, StructInfo):
            return register
        checks = TypeChecks(self.emit, self.sizes, self.function, [info], [self.at(what)], [register])
        return checks.run(match_types([info], [known]))[0]

    def at(self, what: str) -> str:
        """`what` with the location in the source of the op that is being converted."""
        where = str(source_position(self._current.location)) if self._current is not None else ""
        return f"{what} at {where}" if where else what

    # Control

    def convert_block(self, block: Block) -> None:
        """Converts the ops of a block in order; its arguments have registers already."""
        for op in block.ops:
            if self._closed:
                return
            self.convert(op)

    def convert(self, op: Operation) -> None:
        """Converts one op; an error at the op if no pattern is about it, or values are not checked and bound yet."""
        with self.converting(op):
            try:
                if not self.apply_pattern(op):
                    fail(op, "has no form in the virtual machine", _BEFORE)
            except (UnboundSymbolError, Mismatch) as error:
                fail(op, f"has no form in the virtual machine: {error}", _BEFORE)

    @contextmanager
    def converting(self, op: Operation) -> Generator[None]:
        """Ops that are inserted have the location of `op`."""
        outer, self._current = self._current, op
        yield
        self._current = outer


class ConvertCheckArgs(RewritePattern):
    """The entry check of a function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckArgsOp, converter: Converter) -> None:
        declared = as_struct_infos(value.type for value in op.values)
        captured = op.captured_count
        descriptions = messages.describe_parameters([name.data for name in op.arg_names], captured)
        values = converter.get_all(op.arguments)
        checks = TypeChecks(converter.emit, converter.sizes, op.function.data, declared, descriptions, values, captured)
        registers = checks.run(match_types(declared, [ObjectType()] * len(declared), op.symbols.data))
        for value, register in zip(op.values, registers, strict=True):
            converter.set(value, register)
        _set_witnesses(converter, op.result_witnesses)


class ConvertMatchCast(RewritePattern):
    """Checks that are left of a cast; the value stays what it is."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatchCastOp, converter: Converter) -> None:
        (declared,) = as_struct_infos((op.result.type,))
        description = converter.at(op.subject)
        values = [converter.get(op.value)]
        checks = TypeChecks(converter.emit, converter.sizes, converter.function, [declared], [description], values)
        converter.set(op.result, checks.run(op.match())[0])
        _set_witnesses(converter, op.result_witnesses)


def _set_witnesses(converter: Converter, witnesses: Mapping[str, SSAValue]) -> None:
    for name, witness in witnesses.items():
        converter.set(witness, converter.size(symbol(name)))


class ConvertGuard(RewritePattern):
    """A check of two dimensions, unless it is made already; the value stays what it is."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: GuardOp, converter: Converter) -> None:
        check(converter, op)
        converter.set(op.result, converter.get(op.value))


def check(converter: Converter, op: GuardOp) -> None:
    """Makes the check of a guard at the insertion point, if it is not made yet."""
    if op not in converter.checked:
        converter.checked.add(op)
        with converter.converting(op):
            sizes = converter.sizes
            lhs, rhs = sizes.value(op.lhs.data), sizes.value(op.rhs.data)
            condition = sizes.apply("le" if op.relation.data is Relation.AT_MOST else "eq", lhs, rhs)
            if op.relation.data is Relation.BROADCAST:
                one = sizes.value(constant(1))
                for side in (lhs, rhs):
                    condition = sizes.apply("or", condition, sizes.apply("eq", side, one))
            where = converter.at(f"{converter.function}: {op.message.data}")
            facts, dims = op.check.facts
            converter.emit(AssertOp(condition, f"{where}: {facts}", [sizes.value(dim) for dim in dims]))


def guards_of_sizes(value: SSAValue) -> Iterator[GuardOp]:
    """The guards that sizes of a tensor are not negative, which is made with them."""
    for use in value.uses:
        if isinstance(op := use.operation, GuardOp):
            if _is_of_sizes(op):
                yield op
            yield from guards_of_sizes(op.result)


def _is_of_sizes(op: GuardOp) -> bool:
    value = op.value
    while isinstance(value.owner, GuardOp):
        value = value.owner.value
    made = value.owner
    if not isinstance(made, AllocTensorOp | StorageTensorOp) or made.result.type.known_dims is None:
        return False
    is_at_least_0 = op.relation.data is Relation.AT_MOST and op.lhs.data is constant(0)
    return is_at_least_0 and op.rhs.data in made.result.type.known_dims


def guards_ahead(storage: AllocStorageOp, sizes: Sizes) -> Iterator[GuardOp]:
    """The guards that can be checked before an arena is made: with dimensions that are known there, and nothing in
    between that anybody could observe. What has no size because of them would make the size of the arena wrong.
    """
    op = storage.next_op
    while op is not None and _is_unobserved(op):
        if isinstance(op, GuardOp) and sizes.knows(op.lhs.data) and sizes.knows(op.rhs.data):
            yield op
        op = op.next_op


def _is_unobserved(op: Operation) -> bool:
    return isinstance(op, _MEMORY) or not may_be_observed(op)


_MEMORY = (AllocStorageOp, AllocTensorOp, CallKernelOp, GuardOp, KillOp, StorageTensorOp)
