"""Functions."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import CallableOpInterface, IsolatedFromAbove, NoMemoryEffect, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Bounds, is_symbol_name
from tir_dialect.dtypes import is_dtype, scalar_type
from tir_dialect.ops.control_flow import insert_numbers
from tir_dialect.ops.effects import VERIFIERS
from tir_dialect.types import BufferType, SymbolAttr, as_name_hint, parse_symbol, print_bounds


class _PrimFuncCallable(CallableOpInterface):
    @classmethod
    def get_callable_region(cls, op: Operation) -> Region:
        return op.regions[0]

    @classmethod
    def get_argument_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return tuple(argument.type for argument in op.regions[0].block.args)

    @classmethod
    def get_result_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return ()


@irdl_op_definition
class PrimFuncOp(IRDLOperation):
    """A function over buffers in destination-passing style: it writes its results to parameters and returns nothing.

    ```mlir
    tir.prim_func @exp[%n in [1, 2048]](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      tir.for (%i) in (%n) {
        %x = tir.load %X[%i]
        %y = math.exp %x : f32
        tir.store %y, %Y[%i]
      }
    }
    ```

    The region arguments are the symbols (`index`), then the parameters: buffers or scalars. A symbol whose value has
    another name is written `%x as n`. The memory of different parameters does not overlap unless `may_alias` is set. A
    function that is not `private` is an entry point of the compiled module.

    C1: the region arguments start with one `index` per symbol.
    C2: the symbols are distinct.
    C3: a parameter is a buffer, or a scalar of a type that can be loaded from a buffer.
    C4: types and `tir.dim` refer only to symbols that the function binds.
    C5: the visibility is `public` or `private`.
    C6: no access or viewed region is provably out of bounds of its buffer, and no binding of a block iterator out of
        its domain. (What can be neither proved nor refuted is checked at run time, see `check-accesses`.)
    C7: no two iterations of a parallel loop provably store to the same element.
    """

    name = "tir.prim_func"

    sym_name = prop_def(SymbolNameConstraint())
    symbols = prop_def(ArrayAttr[SymbolAttr])
    may_alias = opt_prop_def(UnitAttr)
    sym_visibility = opt_prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), _PrimFuncCallable(), NoMemoryEffect(), NoTerminator())

    def __init__(
        self,
        name: str,
        symbols: Sequence[str | SymbolAttr],
        params: Sequence[tuple[str, Attribute]] | Region,
        *,
        may_alias: bool = False,
        visibility: str | None = None,
    ):
        """`params` is either a list of (name, type), for which an empty entry block is made, or the body."""
        attrs = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols]
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "symbols": ArrayAttr(attrs),
                "may_alias": UnitAttr() if may_alias else None,
                "sym_visibility": None if visibility is None else StringAttr(visibility),
            },
            regions=[params if isinstance(params, Region) else _entry_region(attrs, params)],
        )

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols, in order."""
        return tuple(symbol.symbol.data for symbol in self.symbols)

    @property
    def bounds(self) -> Bounds:
        """The bounds of the symbols."""
        return Bounds({symbol.symbol.data: symbol.interval for symbol in self.symbols})

    @property
    def symbol_args(self) -> tuple[BlockArgument, ...]:
        """The region arguments that carry the values of the symbols."""
        return self.body.block.args[: len(self.symbols)]

    @property
    def params(self) -> tuple[BlockArgument, ...]:
        """The region arguments that carry the parameters."""
        return self.body.block.args[len(self.symbols) :]

    @property
    def buffer_params(self) -> tuple[SSAValue[BufferType], ...]:
        """The parameters that are buffers."""
        return tuple(
            SSAValue.get(param, type=BufferType) for param in self.params if isinstance(param.type, BufferType)
        )

    @property
    def is_private(self) -> bool:
        """Whether the function cannot be called from outside the module."""
        return self.sym_visibility is not None and self.sym_visibility.data == "private"

    def symbol_arg(self, name: str) -> BlockArgument | None:
        """The region argument that carries the value of a symbol; `None` if the function does not bind it."""
        for argument, symbol in zip(self.body.block.args, self.symbols, strict=False):
            if symbol.symbol.data == name:
                return argument
        return None

    @classmethod
    def parse(cls, parser: Parser) -> PrimFuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        symbols = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_symbol(parser))
        params = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_parameter(parser))
        may_alias = parser.parse_optional_keyword("may_alias") is not None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        witnesses = [argument.resolve(IndexType()) for argument, _ in symbols or ()]
        body = parser.parse_region([*witnesses, *params])
        insert_numbers(body)
        op = cls(
            name,
            [symbol for _, symbol in symbols or ()],
            body,
            may_alias=may_alias,
            visibility=visibility and visibility.data,
        )
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.symbols:
            pairs = tuple(zip(self.symbol_args, self.symbols, strict=False))
            with printer.in_square_brackets():
                printer.print_list(pairs, lambda pair: _print_symbol(printer, *pair))
        with printer.in_parens():
            printer.print_list(self.params, printer.print_block_argument)
        if self.may_alias is not None:
            printer.print_string(" may_alias")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @override
    def verify(self, verify_nested_ops: bool = True) -> None:
        # First what nested ops rely on.
        self.get_irdl_definition().verify(self)
        super().verify(verify_nested_ops)

    def verify_(self) -> None:
        self._verify_signature()
        if self.sym_visibility is not None and self.sym_visibility.data not in ("public", "private"):
            raise VerifyException(
                f"'tir.prim_func' op expected visibility public or private, got {self.sym_visibility.data}"
            )  # C5
        VERIFIERS.of(self.name)(self)  # C4, C6, C7

    def _verify_signature(self) -> None:
        witnesses = [argument.type for argument in self.symbol_args]
        if len(witnesses) != len(self.symbols) or any(not isinstance(type, IndexType) for type in witnesses):
            raise VerifyException(
                f"'tir.prim_func' op expected {len(self.symbols)} leading index arguments, one per symbol, "
                f"got {len(self.body.block.args)} arguments"
            )  # C1
        names = self.symbol_names
        for index, name in enumerate(names):
            if name in names[:index]:
                raise VerifyException(f"'tir.prim_func' op binds symbol {name} twice")  # C2
        for index, param in enumerate(self.params):
            scalar = is_dtype(param.type) and scalar_type(param.type) == param.type
            if not scalar and not isinstance(param.type, BufferType):
                raise VerifyException(
                    f"'tir.prim_func' op parameter #{index} expected a buffer or a scalar, got {param.type}"
                )  # C3


def require_prim_func(what: str, given: object) -> None:
    """`TypeError` if `what` was given something else than a function."""
    if not isinstance(given, PrimFuncOp):
        raise TypeError(f"{what} expected a tir.prim_func, got {type(given).__name__}")


def _entry_region(symbols: Sequence[SymbolAttr], params: Sequence[tuple[str, Attribute]]) -> Region:
    block = Block(arg_types=[*(IndexType() for _ in symbols), *(type for _, type in params)])
    names = [*(symbol.symbol.data for symbol in symbols), *(name for name, _ in params)]
    for argument, name in zip(block.args, names, strict=True):
        argument.name_hint = as_name_hint(name)
    return Region(block)


def _parse_symbol(parser: Parser) -> tuple[Parser.UnresolvedArgument, SymbolAttr]:
    argument = parser.parse_argument(expect_type=False)
    name = argument.name.text[1:]
    if parser.parse_optional_keyword("as") is not None:
        name = parser.parse_identifier(" as a symbol")
    if not is_symbol_name(name):
        parser.raise_error(f"{name} cannot name a symbol; write %{name} as <symbol>", argument.name)
    return argument, parse_symbol(parser, name)


def _parse_parameter(parser: Parser) -> Parser.Argument:
    argument = parser.parse_argument()
    argument.location = parser.parse_optional_location()
    return argument


def _print_symbol(printer: Printer, argument: BlockArgument, symbol: SymbolAttr) -> None:
    if printer.print_ssa_value(argument) != symbol.symbol.data:
        printer.print_string(f" as {symbol.symbol.data}")
    print_bounds(printer, symbol)
