"""Functions and control flow: `vm.func`, `vm.ret`, `vm.goto`, `vm.if`."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    successor_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, NoMemoryEffect, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import OptionalValue, Target, op_definition
from vm_dialect.types import I1, OBJECT, StorageType, is_subtype


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function of the virtual machine: blocks of calls over registers.

    A public function is entered from outside with any values, so its parameters are `!vm.object` and checks in its body
    make typed values of them. `frame_size` and `block_registers` are written by `allocate-registers`.

    ```mlir
    vm.func @main(%x : !vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["x"]} {
      %t = vm.check_tensor %x rank 1 dtype f32 as "main: argument #0 (x)"
      vm.ret %t
    }
    ```

    C1: the entry block's arguments have the types of the function's parameters.
    C2: there is at most one result, and it is not a storage.
    C3: `arg_names`, if given, names every parameter once. `result_names` says what callers call the result, or each
    field of a tuple.
    C4: a public function takes only `!vm.object`.
    C5: the body has blocks, and none of them is empty.
    """

    name = "vm.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_names = opt_prop_def(ArrayAttr[StringAttr])
    result_names = opt_prop_def(ArrayAttr[StringAttr])
    frame_size = opt_prop_def(IntegerAttr)
    block_registers = opt_prop_def(ArrayAttr)

    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoMemoryEffect())

    def __init__(
        self,
        name: str,
        function_type: FunctionType | tuple[Sequence[Attribute], Sequence[Attribute]],
        region: Region | None = None,
        *,
        arg_names: Sequence[str] | ArrayAttr[StringAttr] | None = None,
        result_names: ArrayAttr[StringAttr] | None = None,
        visibility: str | StringAttr | None = None,
    ):
        if isinstance(function_type, tuple):
            function_type = FunctionType.from_lists(*function_type)
        if arg_names is not None and not isinstance(arg_names, ArrayAttr):
            arg_names = ArrayAttr([StringAttr(arg) for arg in arg_names])
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sym_visibility": StringAttr(visibility) if isinstance(visibility, str) else visibility,
                "arg_names": arg_names,
                "result_names": result_names,
            },
            regions=[Region(Block(arg_types=function_type.inputs)) if region is None else region],
        )

    @property
    def is_public(self) -> bool:
        """Whether the function may be called from outside; true unless its visibility is `private`."""
        return self.sym_visibility is None or self.sym_visibility.data == "public"

    @property
    def result_type(self) -> Attribute | None:
        """The type of the result; `None` if the function returns null."""
        return self.function_type.outputs.data[0] if self.function_type.outputs.data else None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """One name per parameter, as errors print them: `arg_names`, or `arg0`, `arg1`, ..."""
        if self.arg_names is not None:
            return tuple(name.data for name in self.arg_names)
        return tuple(f"arg{index}" for index in range(len(self.function_type.inputs)))

    @property
    def named_results(self) -> tuple[str, ...]:
        """`result_names`, or nothing."""
        return () if self.result_names is None else tuple(name.data for name in self.result_names)

    @override
    def verify(self, verify_nested_ops: bool = True) -> None:
        # First what nested ops rely on.
        self.get_irdl_definition().verify(self)
        super().verify(verify_nested_ops)

    @override
    def verify_(self) -> None:
        inputs, outputs = self.function_type.inputs.data, self.function_type.outputs.data
        where = f"'vm.func' op @{self.sym_name.data}"
        entry = self.body.blocks.first
        if entry is None or any(block.last_op is None for block in self.body.blocks):
            raise VerifyException(f"{where} has no body, or an empty block in it")  # C5
        if tuple(entry.arg_types) != inputs:
            raise VerifyException(f"{where} entry block arguments differ from the function's parameter types")  # C1
        if len(outputs) > 1 or any(isinstance(output, StorageType) for output in outputs):
            raise VerifyException(f"{where} expected at most one result that is not a storage")  # C2
        if self.arg_names is not None and len({name.data for name in self.arg_names}) != len(inputs):
            raise VerifyException(f"{where} expected {len(inputs)} distinct arg_names, got {len(self.arg_names)}")  # C3
        if self.is_public and any(parameter != OBJECT for parameter in inputs):
            raise VerifyException(f"{where} is public, so its parameters must be {OBJECT}")  # C4

    @override
    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name, inputs, outputs, region, extra, _, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type", "sym_visibility")
        )
        func = cls(name, (inputs, outputs), region, visibility=visibility)
        attributes = dict[str, Attribute]() if extra is None else extra.data
        for key, value in attributes.items():
            store = func.properties if key in _SHOWN else func.attributes
            store[key] = value
        return func

    @override
    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(" ")
            printer.print_string(self.sym_visibility.data)
        reserved = ("sym_name", "function_type", "sym_visibility")
        shown = {key: value for key, value in self.properties.items() if key in _SHOWN}
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            shown | self.attributes,
            reserved_attr_names=reserved,
        )


_SHOWN = ("arg_names", "result_names", "frame_size", "block_registers")
"""Properties that text writes among the attributes."""


@op_definition
class ReturnOp(IRDLOperation):
    """Leaves the function with a value, or with null: `vm.ret %v`.

    C1: the operand has the function's result type, or a subtype; there is none if the function has no result.
    """

    name = "vm.ret"

    value = opt_operand_def()

    traits = traits_def(Pure(), IsTerminator(), HasParent(FuncOp))

    custom_directives = (OptionalValue,)
    assembly_format = "custom<OptionalValue>($value, type($value)) attr-dict"

    def __init__(self, value: SSAValue | Operation | None = None):
        super().__init__(operands=[value])

    @override
    def verify_(self) -> None:
        func = self.parent_op()
        if not isinstance(func, FuncOp):
            return
        expected = func.result_type
        got = None if self.value is None else self.value.type
        if expected is None and got is None:
            return
        if expected is None or got is None or not is_subtype(got, expected):
            raise VerifyException(f"'vm.ret' op expected {expected or 'no value'}, got {got or 'no value'}")  # C1


@op_definition
class GotoOp(IRDLOperation):
    """Jumps to a block: `vm.goto ^b(%a)`.

    C1: the operands have the types of the block's arguments, or subtypes.
    """

    name = "vm.goto"

    arguments = var_operand_def()
    target = successor_def()

    traits = traits_def(Pure(), IsTerminator(), HasParent(FuncOp))

    custom_directives = (Target,)
    assembly_format = "custom<Target>($target, $arguments, type($arguments)) attr-dict"

    def __init__(self, target: Block, arguments: Sequence[SSAValue | Operation] = ()):
        super().__init__(operands=[arguments], successors=[target])

    @override
    def verify_(self) -> None:
        _verify_edge(self, "target", self.target, self.arguments)  # C1


@op_definition
class IfOp(IRDLOperation):
    """Jumps to the first block if the condition holds, else to the second: `vm.if %c, ^then(%a), ^else`.

    C1: on each edge the operands have the types of the block's arguments, or subtypes.
    """

    name = "vm.if"

    condition = operand_def(I1)
    then_arguments = var_operand_def()
    else_arguments = var_operand_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    then_block = successor_def()
    else_block = successor_def()

    traits = traits_def(Pure(), IsTerminator(), HasParent(FuncOp))

    custom_directives = (Target,)
    assembly_format = (
        "$condition `,` custom<Target>($then_block, $then_arguments, type($then_arguments)) `,` "
        "custom<Target>($else_block, $else_arguments, type($else_arguments)) attr-dict"
    )

    def __init__(
        self,
        condition: SSAValue | Operation,
        then_block: Block,
        then_arguments: Sequence[SSAValue | Operation],
        else_block: Block,
        else_arguments: Sequence[SSAValue | Operation],
    ):
        super().__init__(operands=[condition, then_arguments, else_arguments], successors=[then_block, else_block])

    @override
    def verify_(self) -> None:
        _verify_edge(self, "then", self.then_block, self.then_arguments)  # C1
        _verify_edge(self, "else", self.else_block, self.else_arguments)  # C1


def _verify_edge(op: Operation, edge: str, block: Block, operands: Sequence[SSAValue]) -> None:
    if len(operands) != len(block.args):
        raise VerifyException(f"'{op.name}' op {edge} block expected {len(block.args)} arguments, got {len(operands)}")
    for index, (operand, argument) in enumerate(zip(operands, block.args, strict=True)):
        if not is_subtype(operand.type, argument.type):
            raise VerifyException(
                f"'{op.name}' op {edge} block argument #{index} expected type {argument.type}, got {operand.type}"
            )
