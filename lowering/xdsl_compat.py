"""What xDSL 0.74 lacks or does wrong, where we work around it, and how to see that the work-around can go.

`tests/lowering/test_xdsl_compat.py` calls every `needed`; it fails as soon as one answers no.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, ModuleOp, StringAttr, VectorType, bf16, f32, i1, i32, i64
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.utils.exceptions import LLVMTranslationException, PyRDLOpDefinitionError, VerifyException


@dataclass(frozen=True)
class WorkAround:
    """One limit of xDSL."""

    limit: str
    """What xDSL does not do."""

    answer: str
    """Where our code makes up for it."""

    needed: Callable[[], bool]
    """Whether the limit is still there."""


def _op_is_missing(class_name: str) -> Callable[[], bool]:
    return lambda: not hasattr(llvm, class_name)


def _vector_fcmp_is_rejected() -> bool:
    (value,) = Block(arg_types=[VectorType(f32, [4])]).args
    op = llvm.FCmpOp.create(
        operands=[value, value],
        result_types=[VectorType(i1, [4])],
        properties=llvm.FCmpOp(value, value, "oeq").properties,
    )
    return _is_rejected(op)


def _vector_select_is_rejected() -> bool:
    condition, value = Block(arg_types=[VectorType(i1, [4]), VectorType(f32, [4])]).args
    return _is_rejected(llvm.SelectOp(condition, value, value))


def _vector_cmpi_is_rejected() -> bool:
    (value,) = Block(arg_types=[VectorType(i32, [4])]).args
    properties = arith.CmpiOp(value, value, "eq").properties
    return _is_rejected(
        arith.CmpiOp.create(operands=[value, value], result_types=[VectorType(i1, [4])], properties=properties)
    )


def _vector_arith_select_is_rejected() -> bool:
    condition, value = Block(arg_types=[VectorType(i1, [4]), VectorType(f32, [4])]).args
    return _is_rejected(arith.SelectOp(condition, value, value))


def _is_rejected(op: Operation) -> bool:
    try:
        op.verify()
    except VerifyException:
        return True
    return False


def _duplicate_edge_gives_one_phi_entry_twice() -> bool:
    from xdsl.backend.llvm.convert import convert_module

    exit_block = Block(arg_types=[i32])
    exit_block.add_op(llvm.ReturnOp(exit_block.args[0]))
    entry = Block(arg_types=[i1, i32, i32])
    condition, a, b = entry.args
    entry.add_op(llvm.CondBrOp(condition, exit_block, [a], exit_block, [b]))
    function = llvm.FuncOp("f", llvm.LLVMFunctionType([i1, i32, i32], i32), body=Region([entry, exit_block]))
    text = str(convert_module(ModuleOp([function]), fallback_target_triple=""))
    (phi,) = (line for line in text.splitlines() if "phi" in line)
    sources = [part.rsplit("%", 1)[1] for part in phi.split("],")]
    return sources[0].strip('"] ') == sources[1].strip('"] ')


def _bf16_is_rejected() -> bool:
    from xdsl.backend.llvm.convert_type import convert_type

    try:
        convert_type(bf16)
    except LLVMTranslationException:
        return True
    return False


def _passthrough_is_parsed_as_attribute() -> bool:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser

    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(llvm.LLVM)
    function = llvm.FuncOp(
        "f",
        llvm.LLVMFunctionType([i64]),
        llvm.LinkageAttr("external"),
        other_props={"passthrough": ArrayAttr([StringAttr("nounwind")])},
    )
    parsed = Parser(context, str(function)).parse_op()
    return "passthrough" in parsed.attributes


def _parsed(text: str) -> ModuleOp:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.test import Test
    from xdsl.parser import Parser

    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Test)
    return Parser(context, text).parse_module()


def _use_before_definition_verifies() -> bool:
    module = _parsed('"test.op"(%a) : (i32) -> ()  %a = "test.op"() : () -> i32')
    try:
        module.verify()
    except VerifyException:
        return False
    return True


def _parsed_ops_have_no_location() -> bool:
    (op,) = _parsed('"test.op"() : () -> ()').ops
    return op.location == UNKNOWN_LOC


def _rewriting_loses_locations() -> bool:
    from xdsl.dialects.test import TestOp
    from xdsl.pattern_rewriter import PatternRewriter

    module = _parsed('"test.op"() : () -> () loc("here")')
    (old,) = module.ops
    PatternRewriter(old).replace(old, TestOp())
    (new,) = module.ops
    return new.location == UNKNOWN_LOC


def _open_strings_backtrack() -> bool:
    from xdsl.utils.mlir_lexer import MLIRLexer

    return "*+" not in str(vars(MLIRLexer)["_unescaped_characters_regex"])


def _bits_of_dense_floats_are_integers() -> bool:
    (op,) = _parsed('"test.op"() {x = dense<0x4B400000> : vector<2xf32>} : () -> ()').ops
    return "0x4B400000" not in str(op)


def _formats_are_read_with_definitions() -> bool:
    class FaultyOp(IRDLOperation):
        name = "test.faulty"
        assembly_format = "no format"

    try:
        irdl_op_definition(FaultyOp)
    except PyRDLOpDefinitionError:
        return True
    return False


def _dialects_are_loaded_as_a_whole() -> bool:
    from xdsl.context import Context
    from xdsl.dialects.test import Test

    context = Context()
    context.register_dialect("test", lambda: Test)
    context.get_optional_op("test.op")
    return len(tuple(context.loaded_ops)) > 1


def _names_of_numbers_are_empty_hints() -> bool:
    (op,) = _parsed('%_1 = "test.op"() : () -> i32').ops
    return op.results[0].name_hint == ""


def _dead_ops_are_erased_in_whole_modules() -> bool:
    from xdsl.transforms import dead_code_elimination

    return not hasattr(dead_code_elimination, "erase_dead")


def _writes_end_common_subexpressions() -> bool:
    from xdsl.context import Context
    from xdsl.dialects.memref import AllocOp, LoadOp, StoreOp
    from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

    read, written = (AllocOp.get(i32, shape=[]) for _ in range(2))
    first = LoadOp.get(read, [])
    between = StoreOp.get(first, written, [])
    second = LoadOp.get(read, [])
    module = ModuleOp([read, written, first, between, second, StoreOp.get(second, written, [])])
    CommonSubexpressionElimination().apply(Context(), module)
    return sum(isinstance(op, LoadOp) for op in module.ops) == 2


def _unneeded_functions_and_results_stay() -> bool:
    from xdsl.context import Context
    from xdsl.dialects import func, scf
    from xdsl.transforms.dead_code_elimination import DeadCodeElimination

    condition = arith.ConstantOp.from_int_and_width(1, 1)
    branches: list[list[Operation]] = []
    for number in range(2):
        value = arith.ConstantOp.from_int_and_width(number, 32)
        branches.append([value, scf.YieldOp(value, value)])
    choice = scf.IfOp(condition, [i32, i32], branches[0], branches[1])
    user = func.CallOp("used", [choice.results[0]], [])
    private = func.FuncOp("unused", ((), ()), Region(Block([func.ReturnOp()])), "private")
    module = ModuleOp([private, condition, choice, user])
    DeadCodeElimination().apply(Context(), module)
    return private.parent is not None and len(choice.results) == 2


WORK_AROUNDS: tuple[WorkAround, ...] = (
    WorkAround("dominance is not verified", "lowering/verify.py", _use_before_definition_verifies),
    WorkAround(
        "the parser gives ops no location", "LocatedParser in lowering/parsing.py", _parsed_ops_have_no_location
    ),
    WorkAround(
        "a string that is not closed takes exponential time",
        "LinearLexer in lowering/parsing.py",
        _open_strings_backtrack,
    ),
    WorkAround(
        "the bits of elements of dense floats are read as integers",
        "LocatedParser in lowering/parsing.py",
        _bits_of_dense_floats_are_integers,
    ),
    WorkAround("a dialect is loaded as a whole for one op", "lowering/context.py", _dialects_are_loaded_as_a_whole),
    WorkAround(
        "assembly formats are read when ops are defined, needed or not",
        "op_definition in vm_dialect/ops/base.py",
        _formats_are_read_with_definitions,
    ),
    WorkAround(
        "a value named %_1 has an empty name hint, which cannot be copied",
        "tir_dialect/types.py, also for what LocatedParser reads",
        _names_of_numbers_are_empty_hints,
    ),
    WorkAround(
        "dead ops are erased in whole modules only", "tir_dialect/fast_ops.py", _dead_ops_are_erased_in_whole_modules
    ),
    WorkAround(
        "cse takes any write to change all memory",
        "lowering/relax/redundant_ops.py, which asks relax_dialect/analysis/effects.py",
        _writes_end_common_subexpressions,
    ),
    WorkAround(
        "dce keeps functions and results of regions that nothing needs",
        "lowering/relax/redundant_ops.py",
        _unneeded_functions_and_results_stay,
    ),
    WorkAround("rewrites lose locations", "keep_locations in lowering/locations.py", _rewriting_loses_locations),
    *(
        WorkAround(f"the llvm dialect has no {name}", "lowering/llvm/llvm_ext.py", _op_is_missing(name))
        for name in ("UIToFPOp", "FPToSIOp", "FPToUIOp", "ExtractElementOp", "SwitchOp", "MaskedLoadOp", "AtomicRMWOp")
    ),
    WorkAround("llvm.fcmp takes no vectors", "llvm_ext.fcmp", _vector_fcmp_is_rejected),
    WorkAround("llvm.select takes no vector condition", "llvm_ext.select", _vector_select_is_rejected),
    WorkAround(
        "arith comparisons give no vectors",
        "lowering/tir_to_llvm/control_flow.py makes lanes of scalar code",
        _vector_cmpi_is_rejected,
    ),
    WorkAround(
        "arith.select takes no vector condition",
        "lowering/tir_to_llvm/control_flow.py makes lanes of scalar code",
        _vector_arith_select_is_rejected,
    ),
    WorkAround(
        "a branch that names one block twice makes wrong LLVM code",
        "FunctionText.edges in lowering/llvm/module_text.py",
        _duplicate_edge_gives_one_phi_entry_twice,
    ),
    WorkAround("the LLVM backend has no bf16", "lowering/llvm/llvm_types.py", _bf16_is_rejected),
    WorkAround(
        "llvm.func parses passthrough as a discardable attribute",
        "_function_attributes in lowering/llvm/module_text.py",
        _passthrough_is_parsed_as_attribute,
    ),
)
