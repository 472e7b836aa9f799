"""The text of statements: what is written, and that reading it gives the same function back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import parse
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import matmul
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.tvmscript import ScriptError, as_tvmscript

HEAD = "tir.prim_func @f[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>, %s: f32)"
START = "%c0 = arith.constant 0 : index %c4 = arith.constant 4 : index"


def body_of(text, head=HEAD):
    script = as_tvmscript(parse_prim_func(f"{head} {{ {START} {text} }}"))
    lines = script.splitlines()
    (start,) = (number for number, line in enumerate(lines) if "func_attr" in line)
    parse(script)
    return [line.removeprefix("    ") for line in lines[start + 1 :]]


def test_a_function():
    assert (
        as_tvmscript(matmul("f32"))
        == """\
from __future__ import annotations

from typing import TypeVar

from tvm.script import tirx as T

k = TypeVar("k")
m = TypeVar("m")
n = TypeVar("n")


@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((n, k), "float32"), B: T.Buffer((k, m), "float32"), C: T.Buffer((n, m), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, r in T.grid(n, m, k):
        with T.sblock("C"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(m, j)
            vr = T.axis.reduce(k, r)
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
"""
    )


def test_a_module():
    one = matmul("f32")
    two = parse_prim_func("tir.prim_func private @nothing(%A: !tir.buffer<[], f32>) may_alias {}")
    text = as_tvmscript(ModuleOp([one, two.clone()]))
    assert "from tvm.script import ir as I\n" in text
    assert "@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n    def matmul(" in text
    assert '    @T.prim_func(private=True, s_tir=True)\n    def nothing(A: T.Buffer((), "float32")):\n' in text
    found = [op for op in parse(text).ops if isinstance(op, PrimFuncOp)]
    assert [(op.sym_name.data, op.may_alias is None) for op in found] == [("matmul", True), ("nothing", False)]


def test_symbols_that_are_no_extents_are_parameters():
    func = parse_prim_func(
        "tir.prim_func @f[%n, %k, %m](%A: !tir.buffer<[2 * n + 1, m], f32, strides = [m + 4, 1], align = 16>) {}"
    )
    assert (
        'def f(n: T.int64, A: T.Buffer((2 * n + 1, m), "float32", strides=(m + 4, 1), align=16), k: T.int64):'
        in as_tvmscript(func)
    )


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        ("floordiv(n + 3, 4) * 4", "4 * ((n + 3) // 4)"),
        ("mod(n, 4) + n * n", "n * n + n % 4"),
        ("min(n, 8)", "T.min(n, 8)"),
        ("max(2 * n, 8) - 3", "T.max(2 * n, 8) - 3"),
        ("broadcast(n, m)", "(T.max(m, n) * T.min(m, 1) * T.min(n, 1))"),
    ],
)
def test_dimensions(dim, text):
    (line, *_) = body_of(f"%d = tir.dim {dim} tir.for (%i) in (%d) {{}}", HEAD.replace("[%n]", "[%n, %m]"))
    assert line == f"for i in range({text}):"


def test_loops_of_all_kinds():
    assert body_of("""
      tir.for (%i, %j) in (%n, %c4) {
        tir.for (%k) in (%j to %n) { tir.store %s, %A[%k] }
      }
      tir.for parallel (%i) in (%n) annotations {"a" = 1 : i64, "b"} { tir.store %s, %A[%i] }
      tir.for vectorized (%i) in (%c4) { tir.for unrolled (%j) in (%c4) {} }
      tir.for thread_binding "threadIdx.x" (%i) in (%c4 to %n) {}
    """) == [
        "for i, j in T.grid(n, T.int64(4)):",
        "    for k in range(j, n):",
        "        A[k] = s",
        "for i in T.parallel(n, annotations={'a': 1, 'b': True}):",
        "    A[i] = s",
        "for i in T.vectorized(T.int64(4)):",
        "    for j in T.unroll(T.int64(4)):",
        "        pass",
        'for i in T.thread_binding(T.int64(4), n, thread="threadIdx.x"):',
        "    pass",
    ]


def test_values_have_names_where_they_are_read_before_something_is_written():
    assert body_of("""
      %x = tir.load %A[%c0]
      %y = tir.load %B[%c0]
      tir.store %s, %A[%c0]
      %z = arith.addf %y, %s : f32
      tir.store %x, %B[%c0]
      tir.store %z, %A[%c0]
    """) == [
        "x: T.let[T.float32] = A[0]",
        "y: T.let[T.float32] = B[0]",
        "A[0] = s",
        "B[0] = x",
        "A[0] = y + s",
    ]


def test_control_flow_and_effects():
    assert body_of("""
      %c1 = arith.constant 1 : index
      %ok = arith.cmpi sgt, %n, %c4 : index
      tir.assert %ok, "more than \\"four\\"" raises "TypeError"
      tir.if %ok { tir.store %s, %A[%c1] } else { tir.store %s, %A[%c0] }
      %v = tir.if %ok -> (f32) { %a = tir.load %A[%c4] tir.yield %a } else { tir.yield %s }
      tir.store %v, %B[%c0]
      tir.while { %b = tir.load %B[%c0] %more = arith.cmpf olt, %b, %s : f32 tir.condition %more } do {
        tir.call_extern "step"(%B, %n)
      }
      %r = tir.call_packed "rank"(%A) : i64
      %e = tir.call_extern pure "erff"(%s) : f32
      tir.store %e, %A[%c0]
    """) == [
        'assert n > 4, ("TypeError", ["more than \\"four\\""])',
        "if n > 4:",
        "    A[1] = s",
        "else:",
        "    A[0] = s",
        "B[0] = T.if_then_else(n > 4, A[4], s)",
        "while B[0] < s:",
        '    T.call_extern("void", "step", B.data, n)',
        'r: T.let[T.int64] = T.call_packed("rank", A.data, dtype="int64")',
        'A[0] = T.call_pure_extern("float32", "erff", s)',
    ]


def test_blocks():
    assert body_of("""
      %T = tir.alloc_buffer : !tir.buffer<[n], f32, scope = "local">
      tir.for (%i) in (%n) {
        %j = arith.addi %i, %c4 : index
        %in = arith.cmpi slt, %j, %n : index
        tir.block "b" (%v = spatial %j in %n, %o = opaque %i in %n, %t = scan %i in %n) where %in
            annotations {"k" = "v"} {
          tir.reads %A[%v]
          tir.writes %T[%c0 to %n]
          %V = tir.match_buffer %A[%c0 to %c4] : !tir.buffer<[4], f32>
          %x = tir.load %V[%c0]
          tir.store %x, %T[%v]
        }
      }
    """) == [
        'T_1 = T.sblock_alloc_buffer((n,), "float32", scope="local")',
        "for i in range(n):",
        '    with T.sblock("b"):',
        "        v = T.axis.spatial(n, i + 4)",
        "        o = T.axis.opaque(n, i)",
        "        t = T.axis.scan(n, i)",
        "        T.where(i + 4 < n)",
        "        T.reads(A[v])",
        "        T.writes(T_1[0:n])",
        "        T.sblock_attr({'k': 'v'})",
        '        V = T.match_buffer(A[0:4], (4,), "float32", offset_factor=1)',
        "        T_1[v] = V[0]",
    ]


def test_regions_of_blocks_with_memory_of_their_loops():
    lines = body_of(
        """
      tir.for (%i) in (%c4) {
        tir.block "outer" (%v = opaque %i in %n) {
          tir.block "inner" (%w = spatial %c0 in %c4) {
            tir.for (%j) in (%c4) {
              %T = tir.alloc_buffer : !tir.buffer<[4], f32>
              tir.store %s, %T[%j]
              %x = tir.load %T[%j]
              tir.store %x, %C[%v, %w]
            }
          }
        }
      }
    """,
        HEAD.replace("%s: f32", "%s: f32, %C: !tir.buffer<[n, 4], f32>"),
    )
    assert [line for line in lines if "reads" in line or "writes" in line or "alloc" in line] == [
        "        T.reads()",
        "        T.writes(C[v:v + 1, 0:1])",
        "            T.reads()",
        "            T.writes(C[v:v + 1, w:w + 1])",
        '                T_1 = T.alloc_buffer((4,), "float32")',
    ]


def test_vectors():
    assert body_of(
        """
      %x = tir.load %A[%c0] : vector<4xf32>
      %b = vector.broadcast %s : f32 to vector<4xf32>
      %y = arith.mulf %x, %b : vector<4xf32>
      %m = tir.compare olt %x, %b : vector<4xf32>
      %z = tir.select %m, %y, %b : vector<4xf32>
      tir.store %z, %B[%c4]
      %k = tir.load %A[%c4] mask %m : vector<4xf32>
      tir.store %k, %B[%c0] mask %m
    """,
        HEAD.replace("[n]", "[16]"),
    ) == [
        "x: T.let[T.float32x4] = A[T.Ramp(0, 1, 4)]",
        "B[T.Ramp(4, 1, 4)] = T.Select(x < T.Broadcast(s, 4), x * T.Broadcast(s, 4), T.Broadcast(s, 4))",
        'T.masked_store(B, T.masked_load("float32x4", A, T.Ramp(4, 1, 4), x < T.Broadcast(s, 4)), '
        "T.Ramp(0, 1, 4), x < T.Broadcast(s, 4))",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "%F = tir.flatten %A",
            "'tir.flatten' cannot be written as TVMScript: TVM has nothing",
        ),
        ("%V = tir.match_buffer %A[%c0 to %n] : !tir.buffer<[n], f32>", "T.match_buffer stands at the top of a block"),
        (
            "%ok = arith.cmpi eq, %n, %c4 : index %v = tir.if %ok -> (f32) "
            "{ tir.store %s, %A[%c0] tir.yield %s } else { tir.yield %s } tir.store %v, %A[%c0]",
            "'tir.if' cannot be written as TVMScript: it has results and statements",
        ),
        (
            "tir.while { tir.store %s, %A[%c0] %t = arith.constant true tir.condition %t } do {}",
            "'tir.while' cannot be written as TVMScript: its condition has statements",
        ),
        (
            'tir.for (%i) in (%n) { tir.block "b" (%v = scan %i in %n) { tir.init { tir.store %s, %A[%c0] } '
            "tir.store %s, %B[%v] } }",
            "'tir.block' cannot be written as TVMScript: TVM runs an init wherever the reduce iterators are 0",
        ),
        ("%c = arith.constant dense<[1.0, 2.0]> : vector<2xf32> tir.store %c, %A[%c0]", "vectors of different numbers"),
    ],
)
def test_what_cannot_be_written(text, message):
    with pytest.raises(ScriptError, match=message):
        as_tvmscript(parse_prim_func(f"{HEAD} {{ {START} {text} }}"))


def test_modules_of_other_functions():
    module = parse_module("relax.func @f(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> { relax.return %x }")
    with pytest.raises(ScriptError, match=r"'relax.func' .* expected a module of PrimFuncs alone"):
        as_tvmscript(module)


def test_what_is_neither_a_function_nor_a_module():
    with pytest.raises(TypeError, match=r"expected a tir\.prim_func or a module of them, got NoneType"):
        as_tvmscript(None)
