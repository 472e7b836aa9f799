"""Functions: of the module, nested as closures, and their return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    CallableOpInterface,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoMemoryEffect,
    Pure,
    ReturnLike,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.signature import (
    entry_region,
    names_as_written,
    names_of,
    parse_signature,
    print_signature,
    signature_mismatch,
)
from relax_dialect.scope import BindsBlockSymbols, called_functions, prover_at
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import FuncType, ObjectType, StructInfo, TensorType, TupleType
from relax_dialect.traits import (
    RunsWhenCalled,
    Violation,
    Violations,
    purity_violations,
    recursion_violations,
    unsolvable,
)
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import SymbolAttr


class _FuncCallable(CallableOpInterface):
    @classmethod
    def get_callable_region(cls, op: Operation) -> Region:
        return op.regions[0]

    @classmethod
    def get_argument_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return tuple(argument.type for argument in op.regions[0].block.args)

    @classmethod
    def get_result_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return (op.function_type.ret,) if isinstance(op, FuncOp) else ()


STRINGS = "onnx.strings"
"""Attribute of a function: for parameters and results that stand for strings, and for columns of maps, what these are.
The position after the last one of a parameter is that of all other strings.
"""


@irdl_op_definition
class FuncOp(IRDLOperation, BindsBlockSymbols):
    """A function of the module. Its symbols are bound from the arguments when it is called.

    ```mlir
    relax.func @main[%n in [1, 2048], %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    The leading block arguments are the witnesses of the symbols. A result type that is not written is that of the value
    which is returned; a function that calls itself has to say it. A function is pure unless it says `impure`;
    `force_pure` promises purity where the body cannot show it. A function that is not `private` is an entry point of
    the compiled module, under its own name.

    Errors and calls with keywords use the names of the parameters, which are those of the block arguments unless
    `arg_names` says otherwise: a model may use names that no value can have, and hints have no numbers at their end.
    `result_names` says what a model calls its results.

    ```mlir
    relax.func @main(%x: !relax.object, %x_1: !relax.object) -> !relax.object
        attributes {arg_names = ["x.2", "x.1"], result_names = ["out:0"]} {
      relax.return %x
    }
    ```

    C1: the block arguments are the witnesses, then the parameters.
    C2: the signature uses no symbol that is not bound by it.
    C3: every symbol can be solved from a parameter.
    C4: a pure function has no impure op, unless `force_pure` is set.
    C5: `force_pure` is set on pure functions only.
    C6: no dataflow region calls the function itself, directly or through others.
    C7: the visibility is `public` or `private`.
    C8: `arg_names`, if given, names every parameter, each differently.
    C9: `result_names`, if given, names a tensor, or each field of a tuple.
    """

    name = "relax.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FuncType)
    sym_visibility = opt_prop_def(StringAttr)
    force_pure = opt_prop_def(UnitAttr)
    arg_names = opt_prop_def(ArrayAttr[StringAttr])
    result_names = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(
        IsolatedFromAbove(), SymbolOpInterface(), _FuncCallable(), NoMemoryEffect(), HasParent(ModuleOp)
    )

    def __init__(
        self,
        name: str,
        function_type: FuncType,
        body: Region | None = None,
        *,
        visibility: str | None = None,
        force_pure: bool = False,
    ):
        """Without a body, the entry block is made: witnesses named like their symbols, then the parameters."""
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sym_visibility": None if visibility is None else StringAttr(visibility),
                "force_pure": UnitAttr() if force_pure else None,
            },
            regions=[entry_region(function_type) if body is None else body],
        )

    @property
    def symbols(self) -> tuple[SymbolAttr, ...]:
        """The symbols that a call binds."""
        return self.function_type.symbols

    def block_witnesses(self, block: Block) -> dict[str, BlockArgument]:
        return dict(zip(self.function_type.symbol_names, self.witnesses, strict=True))

    @property
    def witnesses(self) -> tuple[BlockArgument, ...]:
        """The block arguments that carry the values of the symbols."""
        return self.body.block.args[: len(self.symbols)]

    @property
    def params(self) -> tuple[BlockArgument, ...]:
        """The block arguments that carry the parameters."""
        return self.body.block.args[len(self.symbols) :]

    @property
    def param_names(self) -> tuple[str, ...]:
        """What each parameter is called, each differently: `arg_names`, or what their hints say."""
        if self.arg_names is not None:
            return tuple(name.data for name in self.arg_names)
        return names_of(self.params, self.witnesses)

    def name_params(self, names: Sequence[str]) -> None:
        """Calls the parameters so; `arg_names` says it if their hints do not."""
        hinted = tuple(names) == names_of(self.params, self.witnesses)
        self.arg_names = None if hinted else ArrayAttr([StringAttr(name) for name in names])

    @property
    def is_private(self) -> bool:
        """Whether the function cannot be called from outside the module."""
        return self.sym_visibility is not None and self.sym_visibility.data == "private"

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        signature = parse_signature(parser)
        force_pure = parser.parse_optional_keyword("force_pure") is not None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        position = parser.pos
        body = parser.parse_region(signature.arguments)
        if not signature.says_result and any(name in called_functions(inner) for inner in body.walk()):
            parser.raise_error(f"@{name} calls itself, so expected its result type", position, position + 1)
        info = signature.type_with(body, _returned_type(body))
        op = cls(name, info, body, visibility=visibility and visibility.data, force_pure=force_pure)
        if signature.names:
            op.name_params(names_as_written(signature.names, op.param_names))
        if attributes is not None:
            for key, value in attributes.data.items():
                store = op.properties if key in _NAMES else op.attributes
                store[key] = value
        return op

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        shown = print_signature(printer, self.function_type, self.body.block)
        if self.force_pure is not None:
            printer.print_string(" force_pure")
        # The names that the text does not have already, where parameters are called `shown`.
        named = {key: value for key, value in self.properties.items() if key in _NAMES}
        names = self.param_names
        if names == names_as_written(shown, names_of(self.params, self.witnesses)):
            named.pop("arg_names", None)
        elif self.arg_names is None:
            named = {"arg_names": ArrayAttr([StringAttr(name) for name in names]), **named}
        printer.print_op_attributes(named | self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        Violations.check(self._violations())

    def _violations(self) -> Iterator[Violation]:
        func = self.function_type
        subject = f"'relax.func' op @{self.sym_name.data}"
        if (mismatch := signature_mismatch(func, self.body.block.args)) is not None:
            yield Violation(self, f"{subject} {mismatch}")  # C1
            return
        if free := sorted(free_symbols(func)):
            yield Violation(self, f"{subject} uses the unbound symbol {free[0]}; {_way_to_bind(self, free)}")  # C2
        elif (unsolved := unsolvable(func)) is not None:
            yield Violation(self, f"{subject} {unsolved}")  # C3
        if func.pure and self.force_pure is None:
            yield from purity_violations(self.body, subject)  # C4
        if self.force_pure is not None and not func.pure:
            yield Violation(self, f"{subject} is impure, so force_pure cannot hold")  # C5
        yield from recursion_violations(self, self.sym_name.data)  # C6
        if self.sym_visibility is not None and self.sym_visibility.data not in ("public", "private"):
            visibility = self.sym_visibility.data
            yield Violation(self, f"'relax.func' op expected visibility public or private, got {visibility}")  # C7
        yield from self._wrong_names(subject)

    def _wrong_names(self, subject: str) -> Iterator[Violation]:
        """C8 and C9."""
        wanted = len(self.params)
        if self.arg_names is not None and not len(self.arg_names) == len(set(self.arg_names)) == wanted:
            yield Violation(self, f"{subject} expected {wanted} distinct arg_names, got {self.arg_names}")  # C8
        ret = self.function_type.ret
        fields = len(ret.fields) if isinstance(ret, TupleType) else 1 if isinstance(ret, TensorType) else None
        if self.result_names is not None and fields not in (None, len(self.result_names)):
            yield Violation(self, f"{subject} expected {fields} result_names, got {self.result_names}")  # C9


_NAMES = ("arg_names", "result_names")
"""Properties that text writes among the attributes."""


def _way_to_bind(func: FuncOp, free: Sequence[str]) -> str:
    """What to do about symbols that the type of a function names and does not bind."""
    close = [
        each for each in get_close_matches(free[0], [bound.symbol.data for bound in func.function_type.symbols], n=1)
    ]
    if close:
        return f"did you mean {close[0]}?"
    if free[0] not in free_symbols(TupleType(func.function_type.params)):
        return "no parameter has it, so its value is not known where the result type is written: write _ for it"
    return f"bind it: @{func.sym_name.data}[{', '.join(f'%{symbol}' for symbol in free)}](...)"


def _returned_type(body: Region) -> StructInfo:
    """The type of the value that a function returns; an object as long as it has no return."""
    block = body.blocks.first
    terminator = None if block is None else block.last_op
    info = terminator.value.type if isinstance(terminator, ReturnOp) else None
    return info if isinstance(info, StructInfo) else ObjectType()


@irdl_op_definition
class ClosureOp(IRDLOperation, BindsBlockSymbols):
    """A function value that captures what it uses of its surroundings, values and symbols.

    ```mlir
    %f = relax.closure [%m](%y: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
      %0 = relax.add %y, %x
      relax.return %0
    }
    %g = relax.closure rec %self(%y: !relax.object) -> !relax.object { ... }
    ```

    With `rec`, the first block argument is the function itself, so that it can call itself.

    C1: the block arguments are the function itself if recursive, the witnesses, then the parameters.
    C2: every bound symbol can be solved from a parameter.
    C3: a pure function has no impure op.
    """

    name = "relax.closure"

    recursive = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    result = result_def(FuncType)

    traits = traits_def(Pure(), RunsWhenCalled())

    def __init__(self, function_type: FuncType, body: Region | None = None, *, recursive: bool = False):
        """Without a body, the entry block is made as C1 says."""
        leading = [("self", function_type)] if recursive else []
        super().__init__(
            properties={"recursive": UnitAttr() if recursive else None},
            regions=[entry_region(function_type, leading) if body is None else body],
            result_types=[function_type],
        )

    @property
    def function_type(self) -> FuncType:
        """The type of the function value."""
        return self.result.type

    @property
    def symbols(self) -> tuple[SymbolAttr, ...]:
        """The symbols that a call binds."""
        return self.function_type.symbols

    def block_witnesses(self, block: Block) -> dict[str, BlockArgument]:
        return dict(zip(self.function_type.symbol_names, self.witnesses, strict=True))

    @property
    def itself(self) -> BlockArgument | None:
        """The block argument that is the function itself, if it is recursive."""
        return None if self.recursive is None else self.body.block.args[0]

    @property
    def witnesses(self) -> tuple[BlockArgument, ...]:
        """The block arguments that carry the values of the bound symbols."""
        start = self._leading
        return self.body.block.args[start : start + len(self.function_type.symbols)]

    @property
    def params(self) -> tuple[BlockArgument, ...]:
        """The block arguments that carry the parameters."""
        return self.body.block.args[self._leading + len(self.function_type.symbols) :]

    @property
    def param_names(self) -> tuple[str, ...]:
        """What each parameter is called, each differently."""
        return names_of(self.params, self.witnesses)

    @property
    def _leading(self) -> int:
        return 0 if self.recursive is None else 1

    @classmethod
    def parse(cls, parser: Parser) -> ClosureOp:
        itself = parser.parse_argument(expect_type=False) if parser.parse_optional_keyword("rec") else None
        position = parser.pos
        signature = parse_signature(parser)
        if itself is not None and not signature.says_result:
            parser.raise_error("a recursive closure is expected to say its result type", position, parser.pos)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        leading = () if itself is None else (itself.resolve(signature.type),)
        body = parser.parse_region((*leading, *signature.arguments))
        op = cls(signature.type_with(body, _returned_type(body)), body, recursive=itself is not None)
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.itself is not None:
            printer.print_string("rec ")
            printer.print_ssa_value(self.itself)
            printer.print_string(" ")
        print_signature(printer, self.function_type, self.body.block, self._leading)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        Violations.check(self._violations())

    def _violations(self) -> Iterator[Violation]:
        func, subject = self.function_type, "'relax.closure' op"
        if self.itself is not None and self.itself.type != func:
            yield Violation(self, f"{subject} expected itself of type {func}, got {self.itself.type}")  # C1
        elif (mismatch := signature_mismatch(func, self.body.block.args[self._leading :])) is not None:
            yield Violation(self, f"{subject} {mismatch}")  # C1
        elif (unsolved := unsolvable(func)) is not None:
            yield Violation(self, f"{subject} {unsolved}")  # C2
        if func.pure:
            yield from purity_violations(self.body, subject)  # C3


@op_definition
class ReturnOp(IRDLOperation):
    """Ends a function with its result.

    ```mlir
    relax.return %0
    ```

    What cannot be proved about the result is checked at run time, before the function returns.

    C1: the value can be of the declared type.
    """

    name = "relax.return"

    value = operand_def(StructInfo)

    traits = traits_def(IsTerminator(), ReturnLike(), HasParent(FuncOp, ClosureOp), Pure())

    assembly_format = "$value attr-dict"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value])

    def verify_(self) -> None:
        parent = self.parent_op()
        if isinstance(parent, FuncOp | ClosureOp):
            declared = parent.function_type.ret
            if is_subtype(self.value.type, declared, prover_at(self)) is Verdict.NEVER:
                raise VerifyException(
                    f"'relax.return' op expected {declared} as its function declares, got {self.value.type}"
                )  # C1
