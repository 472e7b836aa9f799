"""The printer's text is what LLVM reads back: each case is parsed, verified and, where it computes, run."""

import ctypes
import math
import struct

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.llvm import LLVM
from xdsl.parser import Parser

from lowering.llvm.binding import CodegenError
from lowering.llvm.compiler import CompileOptions, compile_object, emit_llvm_ir
from lowering.llvm.llvm_ext import LLVM_EXT
from lowering.llvm.llvm_text import llvm_text
from lowering.runtime.loading import load_objects
from tir_dialect.target import Target


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, LLVM, LLVM_EXT):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def run(text: str, name: str, signature: type, *arguments: object, opt_level: int = 3) -> object:
    target = Target.host()
    code = load_objects([compile_object(parse(text), target, CompileOptions(opt_level))])
    return signature(code.address(name))(*arguments)


I64 = ctypes.c_int64
F32 = ctypes.c_float


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("chosen", [True, False])
def test_branch_to_one_block_twice(chosen: bool, opt_level: int):
    text = """
    llvm.func @f(%c: i1, %a: i64, %b: i64) -> i64 {
      llvm.cond_br %c, ^exit(%a : i64), ^exit(%b : i64)
    ^exit(%r: i64):
      llvm.return %r : i64
    }"""
    signature = ctypes.CFUNCTYPE(I64, ctypes.c_bool, I64, I64)
    assert run(text, "f", signature, chosen, 11, 22, opt_level=opt_level) == (11 if chosen else 22)


@pytest.mark.parametrize("x", [0, 1, 2, 3, 9])
def test_switch_with_shared_successors(x: int):
    text = """
    llvm.func @f(%x: i64, %a: i64, %b: i64) -> i64 {
      llvm_ext.switch %x : i64, [
        default: ^exit(%x : i64),
        1: ^exit(%a : i64),
        2: ^exit(%b : i64),
        3: ^other
      ]
    ^other:
      %minus = llvm.mlir.constant(-1 : i64) : i64
      llvm.br ^exit(%minus : i64)
    ^exit(%r: i64):
      llvm.return %r : i64
    }"""
    signature = ctypes.CFUNCTYPE(I64, I64, I64, I64)
    assert run(text, "f", signature, x, 100, 200) == {1: 100, 2: 200, 3: -1}.get(x, x)


def test_loop_with_phi_of_a_later_block():
    text = """
    llvm.func @sum(%n: i64) -> i64 {
      %zero = llvm.mlir.constant(0 : i64) : i64
      %one = llvm.mlir.constant(1 : i64) : i64
      llvm.br ^head(%zero, %zero : i64, i64)
    ^head(%i: i64, %s: i64):
      %more = llvm.icmp "slt" %i, %n : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %t = llvm.add %s, %i overflow<nsw> : i64
      %j = llvm.add %i, %one overflow<nsw> : i64
      llvm.br ^head(%j, %t : i64, i64) {llvm_ext.loop = {llvm.loop.unroll.disable}}
    ^exit:
      llvm.return %s : i64
    }"""
    assert run(text, "sum", ctypes.CFUNCTYPE(I64, I64), 10) == 45
    assert '!{!"llvm.loop.unroll.disable"}' in llvm_text(parse(text))
    assert "!llvm.loop !1" in llvm_text(parse(text))


CONVERSIONS = [
    ("llvm_ext.uitofp %x : i32 to f32", "i32", "f32", ctypes.c_uint32, F32, 4294967295, 4294967296.0),
    ("llvm.sitofp %x : i32 to f32", "i32", "f32", ctypes.c_int32, F32, -7, -7.0),
    ("llvm_ext.fptosi %x : f32 to i32", "f32", "i32", F32, ctypes.c_int32, -7.9, -7),
    ("llvm_ext.fptoui %x : f32 to i8", "f32", "i8", F32, ctypes.c_uint8, 200.5, 200),
    ("llvm.fpext %x : f32 to f64", "f32", "f64", F32, ctypes.c_double, 1.5, 1.5),
    (
        "llvm.fptrunc %x : f64 to f32",
        "f64",
        "f32",
        ctypes.c_double,
        F32,
        0.1,
        struct.unpack("f", struct.pack("f", 0.1))[0],
    ),
    ("llvm.trunc %x : i64 to i8", "i64", "i8", I64, ctypes.c_int8, 257, 1),
    ("llvm.zext %x : i8 to i64", "i8", "i64", ctypes.c_uint8, I64, 255, 255),
    ("llvm.sext %x : i8 to i64", "i8", "i64", ctypes.c_int8, I64, -1, -1),
    ("llvm.bitcast %x : f32 to i32", "f32", "i32", F32, ctypes.c_int32, 1.0, 0x3F800000),
    ("llvm.fneg %x : f32", "f32", "f32", F32, F32, 1.5, -1.5),
    ("llvm.intr.fabs(%x) : (f32) -> f32", "f32", "f32", F32, F32, -1.5, 1.5),
    ("llvm.intr.floor(%x) : (f32) -> f32", "f32", "f32", F32, F32, -1.5, -2.0),
    ("llvm.intr.exp(%x) : (f64) -> f64", "f64", "f64", ctypes.c_double, ctypes.c_double, 1.0, math.e),
]


@pytest.mark.parametrize(("op", "source", "target", "c_source", "c_target", "x", "expected"), CONVERSIONS)
def test_scalar_ops(op: str, source: str, target: str, c_source: type, c_target: type, x: object, expected: object):
    text = f"""
    llvm.func @f(%x: {source}) -> {target} {{
      %r = {op}
      llvm.return %r : {target}
    }}"""
    assert run(text, "f", ctypes.CFUNCTYPE(c_target, c_source), x) == expected


def test_masked_access_touches_only_set_lanes():
    text = """
    llvm.func @f(%from: !llvm.ptr, %to: !llvm.ptr) {
      %mask = llvm.mlir.constant(dense<[true, false, true, false]> : vector<4xi1>) : vector<4xi1>
      %zero = llvm.mlir.constant(dense<0.5> : vector<4xf32>) : vector<4xf32>
      %v = llvm_ext.masked_load %from, %mask, %zero {alignment = 4 : i32} : vector<4xi1>, vector<4xf32>
      %w = llvm.fadd %v, %zero : vector<4xf32>
      llvm_ext.masked_store %w, %to, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1>
      llvm.return
    }"""
    source, target = (F32 * 4)(1, 2, 3, 4), (F32 * 4)(9, 9, 9, 9)
    run(text, "f", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p), source, target)
    assert list(target) == [1.5, 9, 3.5, 9]


def test_gather_and_scatter():
    text = """
    llvm.func @f(%from: !llvm.ptr, %to: !llvm.ptr) {
      %mask = llvm.mlir.constant(dense<[true, false, true, true]> : vector<4xi1>) : vector<4xi1>
      %there = llvm.mlir.constant(dense<[3, 99, 0, 1]> : vector<4xi64>) : vector<4xi64>
      %here = llvm.mlir.constant(dense<[1, 99, 2, 2]> : vector<4xi64>) : vector<4xi64>
      %zero = llvm.mlir.constant(dense<0.5> : vector<4xf32>) : vector<4xf32>
      %v = llvm_ext.gather %from, %there, %mask, %zero
        {alignment = 4 : i32} : vector<4xi64>, vector<4xi1>, vector<4xf32>
      llvm_ext.scatter %v, %to, %here, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi64>, vector<4xi1>
      llvm.return
    }"""
    source, target = (F32 * 4)(1, 2, 3, 4), (F32 * 4)(9, 9, 9, 9)
    run(text, "f", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p), source, target)
    assert list(target) == [9, 4, 2, 9]


def test_vectors_shuffles_and_intrinsics():
    text = """
    llvm.func @f(%p: !llvm.ptr, %x: f32) -> f32 {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %none = llvm.mlir.undef : vector<4xf32>
      %one = llvm.insertelement %x, %none[%zero : i32] : vector<4xf32>
      %all = llvm.shufflevector %one, %none [0, 0, 0, 0] : vector<4xf32>
      %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %fma = llvm.intr.fma(%v, %all, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %less = llvm_ext.fcmp "olt" %fma, %all : vector<4xf32>, vector<4xi1>
      %low = llvm_ext.select %less, %fma, %all : vector<4xi1>, vector<4xf32>
      %start = llvm.mlir.constant(-0.0 : f32) : f32
      %sum = llvm.call_intrinsic "llvm.vector.reduce.fadd.v4f32"(%start, %low)
        {fastmathFlags = #llvm.fastmath<reassoc>} : (f32, vector<4xf32>) -> f32
      %last = llvm_ext.extractelement %low[%zero : i32] : vector<4xf32> -> f32
      %r = llvm.fadd %sum, %last {fastmathFlags = #llvm.fastmath<contract>} : f32
      llvm.return %r : f32
    }"""
    data = (F32 * 4)(0.5, 1.0, 2.0, 3.0)
    low = [min(v * 2 + v, 2.0) for v in data]
    assert run(text, "f", ctypes.CFUNCTYPE(F32, ctypes.c_void_p, F32), data, 2.0) == sum(low) + low[0]
    assert "call reassoc float @llvm.vector.reduce.fadd.v4f32(float" in llvm_text(parse(text))


def test_long_constants_are_written_once():
    values = ", ".join(f"{number}.25" for number in range(32))
    text = f"""
    llvm.func @f(%x: vector<32xf32>) -> vector<32xf32> {{
      %table = llvm.mlir.constant(dense<[{values}]> : vector<32xf32>) : vector<32xf32>
      %sum = llvm.fadd %x, %table : vector<32xf32>
      %all = llvm.fadd %sum, %table : vector<32xf32>
      llvm.return %all : vector<32xf32>
    }}"""
    printed = llvm_text(parse(text))
    assert printed.count("float 0x3FD0000000000000") == 1
    assert "bitcast" not in emit_llvm_ir(parse(text), Target.host(), CompileOptions(1))


def test_globals_structs_calls_and_indirect_calls():
    text = """
    llvm.mlir.global internal constant @text("hi\\22\\n")
    llvm.mlir.global internal constant @table(dense<[10, 20, 30]> : tensor<3xi64>) : !llvm.array<3 x i64>
    llvm.func internal @twice(%x: i64) -> i64 {
      %r = llvm.add %x, %x : i64
      llvm.return %r : i64
    }
    llvm.func @f(%i: i64) -> i64 {
      %table = llvm.mlir.addressof @table : !llvm.ptr
      %element = llvm.getelementptr inbounds %table[0, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x i64>
      %x = llvm.load %element : !llvm.ptr -> i64
      %direct = llvm.call @twice(%x) : (i64) -> i64
      %callee = llvm.mlir.addressof @twice : !llvm.ptr
      %indirect = llvm.call %callee(%direct) : !llvm.ptr, (i64) -> i64
      %pair = llvm.mlir.undef : !llvm.struct<(i64, i64)>
      %pair1 = llvm.insertvalue %direct, %pair[0] : !llvm.struct<(i64, i64)>
      %pair2 = llvm.insertvalue %indirect, %pair1[1] : !llvm.struct<(i64, i64)>
      %y = llvm.extractvalue %pair2[1] : !llvm.struct<(i64, i64)>
      llvm.return %y : i64
    }
    llvm.func @g() -> i8 {
      %text = llvm.mlir.addressof @text : !llvm.ptr
      %quote = llvm.getelementptr %text[2] : (!llvm.ptr) -> !llvm.ptr, i8
      %c = llvm.load %quote : !llvm.ptr -> i8
      llvm.return %c : i8
    }"""
    assert run(text, "f", ctypes.CFUNCTYPE(I64, I64), 2) == 120
    assert run(text, "g", ctypes.CFUNCTYPE(ctypes.c_int8)) == ord('"')


def test_atomics():
    text = """
    llvm.func @f(%p: !llvm.ptr, %x: i64) -> i64 {
      %old = llvm_ext.atomicrmw "add" %p, %x : i64
      %new = llvm.load %p atomic seq_cst {alignment = 8 : i64} : !llvm.ptr -> i64
      %r = llvm.sub %new, %old : i64
      llvm.return %r : i64
    }"""
    cell = (I64 * 1)(5)
    assert run(text, "f", ctypes.CFUNCTYPE(I64, ctypes.c_void_p, I64), cell, 37) == 37
    assert cell[0] == 42


FLOAT_CONSTANTS = [0.0, -0.0, 1.0, 0.1, -3.5e38, 1e-46, 65504.0, 70000.0, 1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("value", FLOAT_CONSTANTS)
@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_float_constants_round_as_the_type_says(type_: str, value: float):
    import ml_dtypes
    import numpy as np
    from xdsl.dialects.builtin import Float64Type, FloatAttr

    from lowering.llvm.llvm_types import constant

    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[type_]
    name = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}[type_]
    with np.errstate(over="ignore"):
        expected = np.float64(np.asarray(value).astype(dtype))
    operand = f"{name} {constant(FloatAttr(value, Float64Type()), name)}"
    text = f"define double @f() {{ %r = fpext {operand} to double ret double %r }}"
    if type_ == "f64":
        text = f"define double @f() {{ ret {operand} }}"
    code = load_objects([compile_object(text, Target.host())])
    got = ctypes.CFUNCTYPE(ctypes.c_double)(code.address("f"))()
    assert struct.pack("d", got) == struct.pack("d", expected) or (math.isnan(got) and math.isnan(expected))


def test_parameter_and_function_attributes():
    text = """
    "llvm.func"() <{sym_name = "f", function_type = !llvm.func<void (!llvm.ptr, i64)>, CConv = #llvm.cconv<ccc>,
      linkage = #llvm.linkage<"external">, visibility_ = 0 : i64, no_unwind,
      passthrough = ["willreturn", ["prefer-vector-width", "512"]],
      arg_attrs = [{llvm.noalias, llvm.align = 64 : i64, llvm.nocapture, llvm.dereferenceable = 8 : i64},
                   {llvm.noundef}]}> ({
    ^entry(%p: !llvm.ptr, %n: i64):
      llvm.return
    }) : () -> ()"""
    ir = emit_llvm_ir(parse(text), Target.host())
    assert "ptr noalias align 64 captures(none) dereferenceable(8) %a0, i64 noundef %a1" in ir
    assert '"prefer-vector-width"="512"' in ir
    assert "nounwind willreturn" in ir


REFUSED = [
    ("func.func @f() { func.return }", "'func.func' op cannot stand in an LLVM module"),
    (
        'llvm.func @f() { "test.op"() : () -> () \n llvm.return }',
        "'test.op' op has no LLVM text, lower it to the llvm dialect",
    ),
    (
        "llvm.func @f() { %v = llvm.mlir.undef : index \n llvm.call @g(%v) : (index) -> () \n llvm.return }\n"
        "llvm.func @g()",
        "type index has no LLVM spelling",
    ),
    (
        "llvm.func @f(%v: vector<2xf32>, %p: !llvm.ptr) { llvm.br ^a \n ^a: llvm.return \n ^b(%x: i64): llvm.return }",
        "block b2 of @f has no predecessor",
    ),
    (
        "llvm.func @f(%p: !llvm.ptr {llvm.sparkling}) { llvm.return }",
        "'llvm.func' op has an unknown parameter attribute llvm.sparkling",
    ),
    (
        "llvm.mlir.global internal @g() : i64 { }\n"
        'llvm.func @f(%x: f32) { "llvm.call_intrinsic"(%x) <{intrin = "llvm.x", fastmathFlags = #llvm.fastmath<none>,'
        " op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> ()\n"
        "%y = llvm.fpext %x : f32 to f64 \n"
        '"llvm.call_intrinsic"(%y) <{intrin = "llvm.x", fastmathFlags = #llvm.fastmath<none>,'
        " op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 1, 0>}> : (f64) -> ()\n llvm.return }",
        "intrinsic llvm.x is used with two signatures",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str):
    from xdsl.dialects.func import Func
    from xdsl.dialects.test import Test

    context = Context()
    for dialect in (Builtin, LLVM, LLVM_EXT, Func, Test):
        context.load_dialect(dialect)
    with pytest.raises(CodegenError, match=message):
        llvm_text(Parser(context, text).parse_module())


def test_llvm_verifies_before_it_optimises():
    with pytest.raises(CodegenError, match="LLVM rejects the module"):
        compile_object("define i32 @f() { ret i64 0 }", Target.host())
    with pytest.raises(CodegenError, match="one entry for each predecessor"):
        compile_object(
            "define i32 @f(i1 %c) {\n br i1 %c, label %a, label %a\na:\n %x = phi i32 [1, %0]\n ret i32 %x }",
            Target.host(),
        )


def test_every_op_of_the_dialects_has_an_emitter():
    from xdsl.dialects import llvm

    from lowering.llvm.llvm_text import EMITTERS

    outside = {llvm.FuncOp, llvm.GlobalOp}
    assert {*LLVM.operations, *LLVM_EXT.operations} - outside == set(EMITTERS)
