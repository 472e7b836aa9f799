"""Calls of functions, closures and packed functions; and branches and loops as blocks and jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.locations import inherit_location
from lowering.relax_to_vm.checks import TypeChecks, vm_type
from lowering.relax_to_vm.converter import ANYTHING, Constants, Converter
from lowering.rewriting import PatternIndex, op_rewrite_pattern
from relax_dialect.ops.call_tir import CallPackedOp, CallPurePackedOp
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import find_function
from relax_dialect.struct_info.match import Verdict, match_types
from relax_dialect.struct_info.symbols import erase_static
from relax_dialect.struct_info.types import TensorType, as_struct_infos
from tir_dialect.dims import constant, symbol
from vm_dialect import messages
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import structure as vm
from vm_dialect.ops.checks import AssertOp
from vm_dialect.ops.memory import ReadCondOp
from vm_dialect.ops.values import StrOp
from vm_dialect.types import I1, I64, OBJECT

EXTERN_FUNC = "vm.builtin.get_packed_func"
"""The packed function that looks up a packed function by name."""


class ConvertCall(RewritePattern):
    """A call of a function of the module, whose result is what it declares; more is checked here."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, converter: Converter) -> None:
        callee = find_function(op, op.callee.string_value())
        stated = callee.function_type.ret if isinstance(callee, FuncOp) else ANYTHING
        register = converter.result(vm_calls.CallOp(op.callee, converter.get_all(op.arguments), vm_type(stated)))
        # A check after the call that can never fail would take it out of tail position.
        what = f"result of @{op.callee.string_value()}"
        converter.set(op.result, converter.typed(register, op.result.type, what, stated))


class ConvertCallClosure(RewritePattern):
    """A call of a function value, of whose result nothing is known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallClosureOp, converter: Converter) -> None:
        closure = vm_calls.CallClosureOp(converter.get(op.callee), converter.get_all(op.arguments), OBJECT)
        converter.set(op.result, converter.typed(converter.result(closure), op.result.type, "result of a closure"))


class ConvertMakeClosure(RewritePattern):
    """A function value with captured values."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeClosureOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_calls.MakeClosureOp(op.callee, converter.get_all(op.captured))))


class ConvertExternFunc(RewritePattern):
    """A packed function as a value."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ExternFuncOp, converter: Converter) -> None:
        name = converter.result(StrOp(op.symbol))
        converter.set(op.result, converter.result(vm_calls.CallPackedOp(EXTERN_FUNC, [name], OBJECT)))


class ConvertCallPacked(RewritePattern):
    """A call for its effect or its result."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPackedOp, converter: Converter) -> None:
        _call(converter, op)


class ConvertCallPurePacked(RewritePattern):
    """A call for its result."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPurePackedOp, converter: Converter) -> None:
        _call(converter, op)


def _call(converter: Converter, op: CallPackedOp | CallPurePackedOp) -> None:
    arguments = converter.get_all(op.arguments)
    if op.result is None:
        converter.emit(vm_calls.CallPackedOp(op.symbol, arguments))
        return
    register = converter.result(vm_calls.CallPackedOp(op.symbol, arguments, OBJECT))
    what = f'result of the packed function "{op.symbol.data}"'
    converter.set(op.result, converter.typed(register, op.result.type, what))


def convert_function(func: FuncOp, constants: Constants, patterns: PatternIndex) -> vm.FuncOp:
    """The function of the machine for a function whose checks are explicit; its constants are added to `constants`."""
    name = func.sym_name.data
    entry = Block(arg_types=[OBJECT] * len(func.params))
    signature = ([OBJECT] * len(func.params), [vm_type(func.function_type.ret)])
    visibility = func.sym_visibility.data if isinstance(func.sym_visibility, StringAttr) else None
    result = vm.FuncOp(
        name,
        signature,
        Region(entry),
        arg_names=func.param_names,
        result_names=func.result_names,
        visibility=visibility,
    )
    inherit_location(func, result)
    converter = Converter(name, entry, constants, patterns)
    for param, argument in zip(func.params, entry.args, strict=True):
        converter.set(param, argument)
    converter.convert_block(func.body.block)
    return result


class ConvertReturn(RewritePattern):
    """The end of the function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReturnOp, converter: Converter) -> None:
        converter.emit(vm.ReturnOp(converter.get(op.value)))


def condition(converter: Converter, value: SSAValue) -> SSAValue:
    """A truth value as `i1`."""
    register = converter.get(value)
    if register.type == I1:
        return register
    (known,) = as_struct_infos((value.type,))
    return converter.result(ReadCondOp(converter.typed(register, TensorType((), i1), "condition", known)))


class ConvertIf(RewritePattern):
    """Two blocks, and one where they meet; if the result is returned at once, each returns by itself.

    The latter keeps calls at the end of a branch in tail position.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, converter: Converter) -> None:
        returned = isinstance(op.next_op, ReturnOp) and [op.next_op.value] == list(op.res)
        then_block, else_block = converter.new_block(), converter.new_block()
        converter.emit(vm.IfOp(condition(converter, op.condition), then_block, [], else_block, []))
        join = None if returned else converter.new_block([vm_type(result.type) for result in op.res])
        for region, block in ((op.then_region, then_block), (op.else_region, else_block)):
            converter.continue_in(block)
            converter.sizes.enter()
            values = convert_region(converter, region)
            converter.emit(vm.ReturnOp(values[0]) if join is None else vm.GotoOp(join, values))
            converter.sizes.leave()
        if join is None:
            converter.close()
            return
        converter.continue_in(join)
        for result, argument in zip(op.res, join.args, strict=True):
            converter.set(result, argument)


def convert_region(converter: Converter, region: Region) -> list[SSAValue]:
    """Converts the ops of a region; gives what it yields."""
    converter.convert_block(region.block)
    terminator = region.block.last_op
    return converter.get_all(terminator.operands) if isinstance(terminator, YieldOp) else []


class ConvertYield(RewritePattern):
    """Whoever has the region passes the values on."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: YieldOp, converter: Converter) -> None:
        return


class ConvertWhile(RewritePattern):
    """A block that asks, and one that goes back to it."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: WhileOp, converter: Converter) -> None:
        head = _enter_loop(converter, op, op.condition_region.block, [])
        _bind_carried(converter, op, op.condition_region.block, head.args)
        (go_on,) = _yielded(op.condition_region)
        converter.convert_block(op.condition_region.block)
        body, done = converter.new_block(), converter.new_block()
        converter.emit(vm.IfOp(condition(converter, go_on), body, [], done, []))
        converter.continue_in(body)
        converter.sizes.enter()
        # A second region of the loop sees the same values under its own names.
        for old, new in zip(op.condition_region.block.args, op.body.block.args, strict=True):
            converter.set(new, converter.get(old))
        convert_region(converter, op.body)
        _iterate(converter, op, head, [], _yielded(op.body))
        converter.sizes.leave()
        _leave_loop(converter, op, done, head.args)


class ConvertFor(RewritePattern):
    """A block that compares the counter, and one that goes back to it with the next."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, converter: Converter) -> None:
        upper = converter.get(op.upper)
        step = converter.size(constant(1)) if op.step is None else _checked_step(converter, op, op.step)
        goes_on = _condition_of_counter(converter, op, upper, step)
        head = _enter_loop(converter, op, op.body.block, [converter.get(op.lower)])
        counter, carried = head.args[0], head.args[1:]
        converter.set(op.counter, counter)
        # What the last iteration yields is checked too: it is the result.
        _bind_carried(converter, op, op.body.block, carried)
        body, done = converter.new_block(), converter.new_block()
        converter.emit(vm.IfOp(goes_on(counter), body, [], done, []))
        converter.continue_in(body)
        converter.sizes.enter()
        convert_region(converter, op.body)
        # Where the next number has more than 64 bits, the greatest or least that they hold ends the loop.
        _iterate(converter, op, head, [converter.sizes.apply("add_sat", counter, step)], _yielded(op.body))
        converter.sizes.leave()
        _leave_loop(converter, op, done, carried)


def _checked_step(converter: Converter, op: ForOp, step: SSAValue) -> SSAValue:
    """The step, which must not be 0 or the loop would not end."""
    register = converter.get(step)
    if op.counts_up is None:
        message = messages.zero_step(f"{converter.function}: {converter.at('step')}")
        converter.emit(
            AssertOp(converter.sizes.apply("ne", register, converter.size(constant(0))), message, [register])
        )
    return register


def _condition_of_counter(
    converter: Converter, op: ForOp, upper: SSAValue, step: SSAValue
) -> Callable[[SSAValue], SSAValue]:
    """Tells of a counter whether its iteration runs; what is the same for all of them is computed here."""
    apply = converter.sizes.apply
    if op.counts_up is not None:
        return lambda counter: apply("lt" if op.counts_up else "gt", counter, upper)
    zero = converter.size(constant(0))
    up, down = apply("gt", step, zero), apply("lt", step, zero)

    def either(counter: SSAValue) -> SSAValue:
        below, above = apply("lt", counter, upper), apply("gt", counter, upper)
        return apply("or", apply("and", up, below), apply("and", down, above))

    return either


def _enter_loop(converter: Converter, op: LoopOp, block: Block, leading: Sequence[SSAValue]) -> Block:
    """The head of a loop, entered with the initial values; opens the scope of the loop."""
    types = [vm_type(argument.type) for argument in op.carried(block)]
    head = converter.new_block([*([I64] * len(leading)), *types])
    _iterate(converter, op, head, leading, op.inits)
    converter.continue_in(head)
    converter.sizes.enter()
    return head


def _bind_carried(converter: Converter, op: LoopOp, block: Block, registers: Sequence[SSAValue]) -> None:
    """The symbols of an iteration, bound from what is carried into it."""
    declared = as_struct_infos(argument.type for argument in op.carried(block))
    descriptions = [converter.at(f"carried value #{index}") for index in range(len(declared))]
    checks = TypeChecks(converter.emit, converter.sizes, converter.function, declared, descriptions, list(registers))
    # Whether what is carried into any iteration is certainly of the carried types, which bind no
    # symbols.
    values = (op.inits, _yielded(op.regions[-1]))
    known = (
        declared
        if (not op.symbols and all(op.match(carried).verdict is Verdict.YES for carried in values))
        else [erase_static(info) for info in declared]
    )
    checked = checks.run(match_types(declared, known, op.symbols))
    for argument, register in zip(op.carried(block), checked, strict=True):
        converter.set(argument, register)
    for name, witness in zip(op.symbol_names, op.witnesses(block), strict=True):
        converter.set(witness, converter.size(symbol(name)))


def _iterate(
    converter: Converter, op: LoopOp, head: Block, leading: Sequence[SSAValue], values: Sequence[SSAValue]
) -> None:
    """Jumps to the head of a loop with the values to carry, whose kinds are checked here and their dimensions there."""
    carried = as_struct_infos(argument.type for argument in op.carried(op.regions[0].block))
    actual = as_struct_infos(value.type for value in values)
    checked = [
        converter.typed(converter.get(value), erase_static(declared), f"carried value #{index}", known)
        for index, (value, declared, known) in enumerate(zip(values, carried, actual, strict=True))
    ]
    converter.emit(vm.GotoOp(head, [*leading, *checked]))


def _leave_loop(converter: Converter, op: LoopOp, done: Block, registers: Sequence[SSAValue]) -> None:
    """Code after the loop, which sees the values that were carried last."""
    converter.sizes.leave()
    converter.continue_in(done)
    for result, register in zip(op.res, registers, strict=True):
        converter.set(result, register)


def _yielded(region: Region) -> Sequence[SSAValue]:
    terminator: Operation | None = region.block.last_op
    return terminator.operands if terminator is not None else ()
