"""Branches and loops as regions: `relax.if`, `relax.while` and `relax.for`, whose loops carry values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i1, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursivelySpeculatable, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from relax_dialect.external import PATTERNS
from relax_dialect.ops.signature import (
    LoopHeader,
    LoopOp,
    final_types,
    parse_symbol_names,
    print_header,
    print_symbols,
)
from relax_dialect.scope import BindsResultSymbols, prover_at, symbols_witnessed
from relax_dialect.struct_info.join import join
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.symbols import erase_symbols, free_symbols, substitute
from relax_dialect.struct_info.types import PrimType, StructInfo, TensorType, as_struct_infos
from relax_dialect.syntax import parse_block, parse_optional_result_types, print_result_types
from relax_dialect.traits import ControlFlow, EndsInYield, OnlyReadsTensors
from tir_dialect.dims import Dim, constant, is_symbol_name
from tir_dialect.ops.assembly_format import op_definition, parse_defined_operand
from tir_dialect.types import SymbolAttr

CONDITION_TYPES = "a scalar tensor of i1 or a prim of i1"


def is_condition(info: Attribute) -> bool:
    """Whether a value of this type may decide: a truth value, as a tensor of rank 0 or as a prim."""
    if isinstance(info, TensorType):
        return info.rank in (0, None) and info.dtype in (i1, None)
    return isinstance(info, PrimType) and info.dtype == i1


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """The values with which a region ends; none while it has no terminator."""
    terminator = region.blocks.first and region.block.last_op
    return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()


def yielded_types(region: Region) -> tuple[StructInfo, ...]:
    """The types of the values with which a region ends."""
    return as_struct_infos(value.type for value in yielded(region))


def bound_in(region: Region) -> set[str]:
    """The symbols that the ops of a region bind."""
    return {name for op in region.blocks.first.ops for name in symbols_witnessed(op)} if region.blocks.first else set()


def visible_yields(region: Region) -> tuple[StructInfo, ...]:
    """The types with which a region ends, without the symbols that are bound in it."""
    bound = bound_in(region)
    return tuple(erase_symbols(info, bound) for info in yielded_types(region))


def common_symbols(then_region: Region, else_region: Region) -> set[str]:
    """The symbols that both regions bind, each for itself, and yield at the same position."""
    pairs = zip(yielded_types(then_region), yielded_types(else_region), strict=False)
    same = {left.symbol for left, right in pairs if isinstance(left, PrimType) and left == right}
    return {name for name in same & bound_in(then_region) & bound_in(else_region) if name is not None}


@irdl_op_definition
class IfOp(IRDLOperation, BindsResultSymbols, HasCanonicalizationPatternsInterface):
    """Runs one of two regions and has the values with which that region ends.

    ```mlir
    %r = relax.if %c {
      %0 = relax.exp %x
      relax.yield %0
    } else {
      relax.yield %x
    }
    ```

    Result types that are not written are the joins of what the regions yield. A result that is a prim of a new symbol
    witnesses that symbol, so that result types may use it; each region gives the symbol its value. Two regions that
    yield a symbol of the same name at the same position do so without more ado.

    ```mlir
    %r, %k = relax.if %c {
      %0, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
      relax.yield %0, %m
    } else {
      relax.yield %x, %n
    } : !relax.tensor<[k], f32>, !relax.prim<i64, k>
    ```

    C1: the condition is a truth value: a scalar tensor of `i1` or a prim of `i1`.
    C2: both regions yield as many values as there are results.
    C3: what a region yields is of the result's type, with the values that the region gives to new symbols.
    C4: these values are provably not negative, as no symbol is.
    """

    name = "relax.if"

    condition = operand_def(StructInfo)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    res = var_result_def(StructInfo)

    # The condition is the only operand.
    traits = traits_def(ControlFlow(), RecursiveMemoryEffect(), RecursivelySpeculatable(), OnlyReadsTensors())

    def __init__(
        self,
        condition: SSAValue | Operation,
        then_region: Region,
        else_region: Region,
        result_types: Sequence[StructInfo] | None = None,
    ):
        """Without result types they are the joins of what the regions yield."""
        if result_types is None:
            result_types = join_yields(then_region, else_region)
        super().__init__(operands=[condition], regions=[then_region, else_region], result_types=[result_types])

    @property
    def result_witnesses(self) -> dict[str, OpResult]:
        prims = {result: info for result in self.res if isinstance(info := result.type, PrimType) and info.symbol}
        if not prims:
            return {}
        inside = bound_in(self.then_region) | bound_in(self.else_region)
        ends = [yielded_types(region) for region in (self.then_region, self.else_region)]
        found: dict[str, OpResult] = {}
        for result, info in prims.items():
            if info.symbol in inside or any(end[result.index : result.index + 1] != (info,) for end in ends):
                found.setdefault(str(info.symbol), result)
        return found

    def values_given_by(self, region: Region) -> dict[str, Dim]:
        """The values that a region gives to the symbols which the results witness."""
        types = yielded_types(region)
        values: dict[str, Dim] = {}
        for name, result in self.result_witnesses.items():
            info = types[result.index] if result.index < len(types) else None
            if isinstance(info, PrimType) and info.value is not None:
                values[name] = info.value
        return values

    def types_seen_by(self, region: Region) -> tuple[StructInfo, ...]:
        """The result types with the values that a region gives to the symbols which the results witness."""
        values = self.values_given_by(region)
        return tuple(substitute(info, values) for info in as_struct_infos(self.result_types))

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return PATTERNS.of(cls.name)()

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parse_defined_operand(parser)
        then_region = parse_block(parser, YieldOp)
        parser.parse_keyword("else")
        else_region = parse_block(parser, YieldOp)
        attributes = parser.parse_optional_attr_dict()
        op = cls(condition, then_region, else_region, parse_optional_result_types(parser))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region)
        printer.print_string(" else ")
        printer.print_region(self.else_region)
        printer.print_op_attributes(self.attributes)
        if tuple(self.result_types) != join_yields(self.then_region, self.else_region):
            print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        if not is_condition(self.condition.type):
            got = self.condition.type
            raise VerifyException(f"'relax.if' op condition expected {CONDITION_TYPES}, got {got}")  # C1
        for region, label in ((self.then_region, "then"), (self.else_region, "else")):
            types = yielded_types(region)
            if len(types) != len(self.res):
                raise VerifyException(
                    f"'relax.if' op {label} region expected {len(self.res)} values as the op has results, "
                    f"got {len(types)}"
                )  # C2
            prover = prover_at(self)
            for index, (info, result) in enumerate(zip(types, self.types_seen_by(region), strict=True)):
                if is_subtype(info, result, prover) is not Verdict.YES:
                    raise VerifyException(
                        f"'relax.if' op {label} region value #{index} expected {result}, got {info}"
                    )  # C3
            for name, value in self.values_given_by(region).items():
                if prover.less_equal(0, value) is not True:
                    raise VerifyException(
                        f"'relax.if' op {label} region expected a value for {name} that is provably not negative, "
                        f"got {value}; bind it with 'relax.match_cast' before"
                    )  # C4


def join_yields(then_region: Region, else_region: Region) -> tuple[StructInfo, ...]:
    """The join of what two regions yield, value by value; nothing if they yield different numbers of values."""
    then_types, else_types = yielded_types(then_region), yielded_types(else_region)
    if len(then_types) != len(else_types):
        return ()
    kept = common_symbols(then_region, else_region)
    then_lost, else_lost = bound_in(then_region) - kept, bound_in(else_region) - kept
    pairs = zip(then_types, else_types, strict=True)
    return tuple(join(erase_symbols(left, then_lost), erase_symbols(right, else_lost)) for left, right in pairs)


@op_definition
class YieldOp(IRDLOperation):
    """Ends a region of a branch or a loop with its values.

    ```mlir
    relax.yield %a, %b
    ```
    """

    name = "relax.yield"

    values = var_operand_def(StructInfo)

    traits = traits_def(IsTerminator(), ReturnLike(), Pure())

    assembly_format = "$values attr-dict"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and not (parent.has_trait(ControlFlow) or parent.has_trait(EndsInYield)):
            raise VerifyException(
                f"'relax.yield' op expected to end a region of a branch, loop or group, got '{parent.name}'"
            )


@irdl_op_definition
class WhileOp(LoopOp):
    """Runs its second region as long as its first yields true.

    ```mlir
    %r = relax.while [%m](%x: !relax.tensor<[m, 4], f32> = %init) {
      %c = relax.call_pure_packed "go_on"(%x) : !relax.tensor<[], i1>
      relax.yield %c
    } do [%m_1 as m](%y) {
      %0 = relax.concat %y, %y axis = 0
      relax.yield %0
    }
    ```

    Both regions have the symbols and the carried values as arguments. The results are the carried values for which the
    condition was false; dimensions that use the loop's symbols are unknown after it.

    C1: both blocks have the symbols and the carried values as arguments.
    C2: the initial values can be carried.
    C3: the first region yields a truth value.
    C4: what the second region yields can be carried.
    C5: the results have the carried types, without the loop's symbols.
    """

    name = "relax.while"

    condition_region = region_def("single_block")
    body = region_def("single_block")

    def __init__(
        self, inits: Sequence[SSAValue], condition: Region, body: Region, symbols: Sequence[SymbolAttr | str] = ()
    ):
        attrs = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols]
        names = [symbol.symbol.data for symbol in attrs]
        super().__init__(
            operands=[inits],
            properties={"symbols": ArrayAttr(attrs)},
            regions=[condition, body],
            result_types=[final_types(condition.block, 0, names)],
        )

    @property
    def leading(self) -> int:
        return 0

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        header = LoopHeader(parser)
        condition = parser.parse_region(header.arguments)
        parser.parse_keyword("do")
        body = parser.parse_region(parse_symbol_names(parser, header))
        op = cls(header.inits, condition, body, header.symbols)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_header(printer, self, self.condition_region.block)
        printer.print_string(" ")
        printer.print_region(self.condition_region, print_entry_block_args=False)
        printer.print_string(" do ")
        print_symbols(printer, self, self.body.block)
        with printer.in_parens():
            printer.print_list(self.carried(self.body.block), printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        for region in self.regions:
            self.verify_block(region.block)  # C1
        self.verify_carried(self.inits, "initial value")  # C2
        condition = yielded(self.condition_region)
        if len(condition) != 1 or not is_condition(condition[0].type):
            got = ", ".join(str(value.type) for value in condition)
            raise VerifyException(f"'relax.while' op condition expected {CONDITION_TYPES}, got ({got})")  # C3
        self.verify_carried(yielded(self.body), "yielded value")  # C4
        self.verify_results()  # C5


@irdl_op_definition
class ForOp(LoopOp, HasCanonicalizationPatternsInterface):
    """Runs its region for `lower`, `lower + step`, ... below `upper`, or above it if the step is negative.

    ```mlir
    %r = relax.for %i = %lower to %upper (%acc: !relax.tensor<[4], f32> = %init) {
      %0 = relax.add %acc, %x
      relax.yield %0
    }
    %s = relax.for %i as i = %zero to %n step %two (%acc: !relax.object = %init) { ... }
    ```

    With `as i` the counter is also a symbol of the body. Without `step` it is 1; a step that turns out to be 0 is an
    error at run time.

    C1: the block has the counter, the symbols and the carried values as arguments.
    C2: the bounds and the step are prims of `i64`.
    C3: the counter is a symbol only if it is provably never negative: if neither the lower bound is, where it may count
    up, nor what follows the upper one, where it may count down.
    C4: the initial values can be carried.
    C5: what the region yields can be carried.
    C6: the results have the carried types, without the loop's symbols.
    C7: the step is not provably 0.
    C8: no carried type names the counter, which is another number in the next iteration.
    """

    name = "relax.for"

    counter_symbol = opt_prop_def(StringAttr)
    lower = operand_def(PrimType)
    upper = operand_def(PrimType)
    step = opt_operand_def(PrimType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        lower: SSAValue,
        upper: SSAValue,
        inits: Sequence[SSAValue],
        body: Region,
        *,
        step: SSAValue | None = None,
        symbols: Sequence[SymbolAttr | str] = (),
        counter_symbol: str | None = None,
    ):
        attrs = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols]
        names = [symbol.symbol.data for symbol in attrs]
        hidden = () if counter_symbol is None else (counter_symbol,)
        super().__init__(
            operands=[lower, upper, step, inits],
            properties={
                "symbols": ArrayAttr(attrs),
                "counter_symbol": None if counter_symbol is None else StringAttr(counter_symbol),
            },
            regions=[body],
            result_types=[final_types(body.block, 1, names, hidden)],
        )

    @property
    def leading(self) -> int:
        return 1

    @property
    def counter(self) -> BlockArgument:
        """The block argument that is `lower`, `lower + step`, ..."""
        return self.body.block.args[0]

    @property
    def counts_up(self) -> bool | None:
        """Whether the step is certainly positive, or certainly negative; `None` if that turns out at run time."""
        step, prover = self._bound(self.step), prover_at(self)
        if step is not None and prover.less_equal(1, step) is True:
            return True
        return False if step is not None and prover.less_equal(step, -1) is True else None

    @property
    def bounds(self) -> tuple[Dim | None, Dim | None, Dim | None]:
        """What is known about the lower bound, the upper one and the step."""
        return self._bound(self.lower), self._bound(self.upper), self._bound(self.step)

    @property
    def is_dense(self) -> bool:
        """Whether the step is certainly 1 or -1: the counter meets the upper bound, and nothing beyond it."""
        step = self._bound(self.step)
        return step is not None and step.constant_value in (1, -1)

    def block_witnesses(self, block: Block) -> dict[str, BlockArgument]:
        own = {} if self.counter_symbol is None else {self.counter_symbol.data: block.args[0]}
        return {**own, **super().block_witnesses(block)}

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return PATTERNS.of(cls.name)()

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        counter = parser.parse_argument(expect_type=False)
        symbol = parser.parse_identifier() if parser.parse_optional_keyword("as") else None
        parser.parse_punctuation("=")
        lower = parse_defined_operand(parser)
        parser.parse_keyword("to")
        upper = parse_defined_operand(parser)
        step = parse_defined_operand(parser) if parser.parse_optional_keyword("step") else None
        header = LoopHeader(parser)
        body = parser.parse_region([counter.resolve(PrimType(value=symbol)), *header.arguments])
        op = cls(lower, upper, header.inits, body, step=step, symbols=header.symbols, counter_symbol=symbol)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.counter)
        if self.counter_symbol is not None:
            printer.print_string(f" as {self.counter_symbol.data}")
        for word, value in (("=", self.lower), ("to", self.upper), ("step", self.step)):
            if value is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(value)
        printer.print_string(" ")
        print_header(printer, self, self.body.block)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        symbol = None if self.counter_symbol is None else self.counter_symbol.data
        if symbol is not None and not is_symbol_name(symbol):
            raise VerifyException(f"'relax.for' op counter_symbol expected the name of a symbol, got '{symbol}'")  # C1
        if not self.body.block.args or self.counter.type != PrimType(value=symbol):
            raise VerifyException(
                f"'relax.for' op expected the counter as first argument, a {PrimType(value=symbol)}"
            )  # C1
        self.verify_block(self.body.block)  # C1
        for argument in self.carried(self.body.block):
            if symbol is not None and symbol in free_symbols(argument.type):
                raise VerifyException(
                    f"'relax.for' op expected carried types that do not name the counter {symbol}, got {argument.type}"
                )  # C8
        first, last, step = self.bounds
        prover, counts_up = prover_at(self), self.counts_up
        if step is not None and prover.equal(step, 0) is True:
            raise VerifyException("'relax.for' op expected a step other than 0, got 0")  # C7
        if self.counter_symbol is not None:
            ends = (
                [(first, 0, "a lower bound that is provably not negative", self.lower)]
                if counts_up is not False
                else []
            )
            ends += (
                [(last, -1, "an upper bound that is provably at least -1", self.upper)] if counts_up is not True else []
            )
            for end, least, expected, value in ends:
                if end is None or prover.less_equal(least, end) is not True:
                    raise VerifyException(
                        f"'relax.for' op counts by a symbol, so expected {expected}, got {value.type}"
                    )  # C3
        self.verify_carried(self.inits, "initial value")  # C4
        self.verify_carried(yielded(self.body), "yielded value")  # C5
        self.verify_results(() if symbol is None else (symbol,))  # C6

    def _bound(self, value: SSAValue | None) -> Dim | None:
        """What is known about a bound or of the step."""
        if value is None:
            return constant(1)
        if not isinstance(value.type, PrimType) or value.type.dtype != i64:
            raise VerifyException(f"'relax.for' op expected bounds and step of i64, got {value.type}")  # C2
        return value.type.value
