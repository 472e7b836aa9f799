"""From `vm.func` with registers to the bytecode of an executable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import tvm_ffi
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa

from vm_dialect.dtypes import ELEMENT_TYPES, element_type
from vm_dialect.exec_builder import Argument as BuilderArgument
from vm_dialect.exec_builder import ExecBuilder
from vm_dialect.executable import Executable, FunctionKind, Metadata, NativeObject, SignatureTypes
from vm_dialect.executable.model import BUILTIN_PREFIX, UNTYPED, Operand
from vm_dialect.ops.base import Argument, BuiltinOp, ConstantOp, DTypeRef, FunctionRef, TensorRef
from vm_dialect.ops.calls import CallKernelOp, CallOp, CallPackedOp
from vm_dialect.ops.memory import KillOp
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp, ReturnOp
from vm_dialect.ops.values import ConstantSymbolOp, KeptTensor
from vm_dialect.registers import frame_size, parallel_moves, value_register
from vm_dialect.tensors import Array, from_numpy, numpy_dtype


def no_location(location: LocationAttr) -> str:
    """Describes every location as unknown."""
    return ""


def emit_executable(
    module: ModuleOp,
    *,
    tensors: Mapping[str, Array | tvm_ffi.Tensor] | None = None,
    metadata: Metadata | None = None,
    native: Sequence[NativeObject] = (),
    describe: Callable[[LocationAttr], str] = no_location,
    types: Mapping[str, SignatureTypes] = MappingProxyType({}),
) -> Executable:
    """The executable with the bytecode of every `vm.func` in `module`.

    `tensors` holds the elements of constants that the module only declares; `describe` turns the location of an op into
    what errors and profiles show; `types` are those that callers are told, by function. `DiagnosticException` if a
    function has no registers yet, if a constant has no elements, or if an op cannot be emitted.
    """
    builder = ExecBuilder()
    if metadata is not None:
        builder.set_metadata(metadata)
    for item in native:
        builder.add_native_object(item)
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    constants = {op.sym_name.data: op for op in module.ops if isinstance(op, ConstantSymbolOp)}
    pool = ConstantPool(builder, constants, tensors or {})
    for func in functions:
        builder.declare_function(func.sym_name.data, FunctionKind.BYTECODE, func.parameter_names, public=func.is_public)
    for func in functions:
        FunctionEmitter(builder, pool, func, describe).emit(types.get(func.sym_name.data, UNTYPED))
    return builder.get()


class ConstantPool:
    """Constants of the executable that is being emitted: each tensor is entered at its first use."""

    def __init__(
        self,
        builder: ExecBuilder,
        constants: Mapping[str, ConstantSymbolOp],
        tensors: Mapping[str, Array | tvm_ffi.Tensor],
    ):
        self.builder = builder
        self.constants = constants
        self.tensors = tensors
        self.operands: dict[str, Operand] = {}

    def tensor(self, name: str, user: Operation) -> Operand:
        """The constant tensor called `name`."""
        if name not in self.operands:
            self.operands[name] = self.builder.convert_constant(self._elements(name, user), name)
        return self.operands[name]

    def _elements(self, name: str, user: Operation) -> Array | tvm_ffi.Tensor:
        declared = self.constants.get(name)
        value = None if declared is None else declared.value
        if isa(value, DenseIntOrFPElementsAttr):
            return from_numpy(dense_array(value))
        kept = value if isinstance(value, KeptTensor) else None
        if kept is not None and (array := kept.kept_array()) is not None:
            return from_numpy(array)
        elements = self.tensors.get(name if kept is None else kept.weight_name)
        if elements is None:
            raise DiagnosticException(
                f"'{user.name}' op constant @{name} has no elements; give them to build as `weights`, or with --weights"
            )
        tensor = elements if isinstance(elements, tvm_ffi.Tensor) else from_numpy(elements)
        if declared is not None:
            expected = f"{declared.tensor_type.element_type}{list(declared.tensor_type.get_shape())}"
            got = f"{element_type(tensor.dtype).name}{list(tensor.shape)}"
            if got != expected:
                raise DiagnosticException(
                    f"'{user.name}' op constant @{name} expected {expected}, got elements of {got}"
                )
        return tensor


def dense_array(value: DenseIntOrFPElementsAttr) -> Array:
    """The elements of a dense attribute as an array."""
    element = ELEMENT_TYPES[str(value.type.element_type)]
    # Without a dtype NumPy makes floats of integers of which only some are 2**63 or more.
    raw = np.float64 if element.is_float else np.uint64 if element.name.startswith("ui") else np.int64
    values = np.array(value.get_values(), raw).astype(numpy_dtype(element))
    shape = value.type.get_shape()
    return np.full(shape, values.reshape(-1)[0]) if values.size == 1 else values.reshape(shape)


_Move: TypeAlias = tuple[int, BuilderArgument]
"""A register and what it receives."""


class FunctionEmitter:
    """Emits one function. Jumps are counted in instructions, so every block is laid out before anything is emitted."""

    def __init__(self, builder: ExecBuilder, pool: ConstantPool, func: FuncOp, describe: Callable[[LocationAttr], str]):
        size = frame_size(func)
        if size is None:
            raise DiagnosticException(f"'vm.func' op @{func.sym_name.data} has no registers: run allocate-registers")
        self.builder = builder
        self.pool = pool
        self.func = func
        self.describe = describe
        self.frame_size = size
        self.emitters: list[Callable[[], None]] = []
        self.offsets: dict[object, int] = {}
        """First instruction of each block, and of the moves of edges that have some."""

    def emit(self, types: SignatureTypes) -> None:
        """Emits the function; callers are told its `types`."""
        blocks = list(self.func.body.blocks)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            self.offsets[block] = len(self.emitters)
            for op in block.ops:
                self._op(op, following)
        names = self.func.parameter_names
        with self.builder.function(
            self.func.sym_name.data,
            len(names),
            names,
            public=self.func.is_public,
            frame_size=self.frame_size,
            result_names=self.func.named_results,
            types=types,
        ):
            for emitter in self.emitters:
                emitter()

    def _op(self, op: Operation, following: Block | None) -> None:
        match op:
            case ConstantOp():
                pass
            case ReturnOp():
                value = None if op.value is None else self._argument(op.value, op)
                self.emitters.append(lambda: self.builder.emit_ret(value))
            case GotoOp():
                self._jump(op.target, self._moves(op.target, op.arguments, op), following, op)
            case IfOp():
                # The condition; moves and jump of one edge; moves and jump of the other one, if it has moves.
                moves = self._moves(op.else_block, op.else_arguments, op)
                else_offset: object = object() if moves else op.else_block
                condition = self._argument(op.condition, op)
                here = len(self.emitters)
                self.emitters.append(lambda: self.builder.emit_if(condition, self.offsets[else_offset] - here))
                self._jump(
                    op.then_block, self._moves(op.then_block, op.then_arguments, op), None if moves else following, op
                )
                if moves:
                    self.offsets[else_offset] = len(self.emitters)
                    self._jump(op.else_block, moves, following, op)
            case KillOp():
                register = value_register(op.value)
                if register is not None:
                    self._call(f"{BUILTIN_PREFIX}{op.builtin_name}", (), register, op)
            case _:
                self._call_op(op)

    def _call_op(self, op: Operation) -> None:
        match op:
            case BuiltinOp():
                name, arguments = f"{BUILTIN_PREFIX}{op.builtin_name}", op.bytecode_args()
            case CallOp():
                name, arguments = op.callee.root_reference.data, op.arguments
            case CallPackedOp():
                name, arguments = op.function.data, op.arguments
            case CallKernelOp():
                name, arguments = op.callee.root_reference.data, (*op.sizes, *op.arguments)
                self.builder.declare_function(name, FunctionKind.KERNEL)
            case _:
                raise DiagnosticException(f"'{op.name}' op has no bytecode: lower it to the vm dialect first")
        destination = value_register(op.results[0]) if op.results else None
        self._call(name, [self._argument(argument, op) for argument in arguments], destination, op)

    def _call(self, name: str, arguments: Sequence[BuilderArgument], destination: int | None, op: Operation) -> None:
        target = None if destination is None else self.builder.r(destination)
        location = self.describe(op.location)
        self.emitters.append(lambda: self.builder.emit_call(name, arguments, target, location))

    def _jump(self, target: Block, moves: Sequence[_Move], following: Block | None, op: Operation) -> None:
        """The moves of an edge, then a jump unless the block comes next anyway."""
        for destination, source in moves:
            self._call(f"{BUILTIN_PREFIX}copy", (source,), destination, op)
        if target is not following:
            here = len(self.emitters)
            self.emitters.append(lambda: self.builder.emit_goto(self.offsets[target] - here))

    def _moves(self, target: Block, values: Iterable[SSAValue], op: Operation) -> list[_Move]:
        """What an edge does to registers: moves among them in an order that loses nothing, then constants."""
        between: list[tuple[int, int]] = []
        constants: list[_Move] = []
        for argument, value in zip(target.args, values, strict=True):
            destination, source = value_register(argument), value_register(value)
            if destination is None:
                continue
            if source is None:
                constants.append((destination, self._argument(value, op)))
            else:
                between.append((destination, source))
        ordered = parallel_moves(between, self.frame_size - 1)
        return [*((destination, self.builder.r(source)) for destination, source in ordered), *constants]

    def _argument(self, argument: Argument, op: Operation) -> BuilderArgument:
        """An argument of a bytecode call as the builder takes it."""
        match argument:
            case SSAValue():
                if isinstance(argument.owner, ConstantOp):
                    return self._argument(argument.owner.bytecode_value(), op)
                register = value_register(argument)
                if register is None:
                    raise DiagnosticException(f"'{op.name}' op has an operand without a register")
                return self.builder.r(register)
            case FunctionRef(name):
                return self.builder.f(name)
            case DTypeRef(name):
                return element_type(name)
            case TensorRef(name):
                return self.pool.tensor(name, op)
            case _:
                return argument
