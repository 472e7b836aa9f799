"""Programs that write between reads, by hand and at random, and what each pass has to leave as it is.

All have one function `main` of a matrix of f32 and a truth value, with PrimFuncs and packed functions that write.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tvm_ffi
from hypothesis import strategies as st

from lowering.parsing import parse_module
from lowering.registry import PASSES
from tests.support.programs import Tolerance, assert_same, run_pipeline, run_with_copies, runner
from vm_dialect.tensors import to_numpy

INCREMENT = "tests.impure.increment"
"""A packed function that adds 1 to what it gets."""

COPY = "tests.impure.copy"
"""A packed function that copies a tensor into another one."""

SAME = "tests.impure.same"
"""A packed function that gives back what it gets."""


def increment(tensor: tvm_ffi.Tensor) -> None:
    """Adds 1 to all elements."""
    to_numpy(tensor)[...] += 1


def copy(source: tvm_ffi.Tensor, target: tvm_ffi.Tensor) -> None:
    """Makes the elements of the second those of the first."""
    to_numpy(target)[...] = to_numpy(source)


def same(tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """The argument."""
    return tensor


tvm_ffi.register_global_func(INCREMENT, increment, override=True)
tvm_ffi.register_global_func(COPY, copy, override=True)
tvm_ffi.register_global_func(SAME, same, override=True)

HEAD = """
tir.prim_func @inc[%n](%X: !tir.buffer<[n, 4], f32>) {
  %c4 = tir.dim 4
  tir.for (%i, %j) in (%n, %c4) {
    %x = tir.load %X[%i, %j]
    %c = arith.constant 1.0 : f32
    %y = arith.addf %x, %c : f32
    tir.store %y, %X[%i, %j]
  }
}
tir.prim_func @both[%n](%A: !tir.buffer<[n, 4], f32>, %B: !tir.buffer<[n, 4], f32>, %S: !tir.buffer<[n, 4], f32>,
                        %D: !tir.buffer<[n, 4], f32>) {
  %c4 = tir.dim 4
  tir.for (%i, %j) in (%n, %c4) {
    tir.block "both" (%v = spatial %i in %n, %w = spatial %j in %c4) {
      %a = tir.load %A[%v, %w]
      %b = tir.load %B[%v, %w]
      %half = arith.constant 0.5 : f32
      %s = arith.mulf %b, %half : f32
      %t = arith.addf %a, %s : f32
      tir.store %t, %S[%v, %w]
      %c = tir.load %A[%v, %w]
      %d = arith.subf %c, %s : f32
      tir.store %d, %D[%v, %w]
    }
  }
}
relax.func private @writes[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 4], f32> impure {
  relax.call_packed "tests.impure.increment"(%x)
  relax.return %x
}
relax.func private @twice[%n](%x: !relax.tensor<[n, 4], f32>)
    -> !relax.tuple<!relax.tensor<[n, 4], f32>, !relax.tensor<[n, 4], f32>> {
  %0 = relax.exp %x
  %1 = relax.exp %x
  %2 = relax.tuple(%0, %1)
  relax.return %2
}
relax.func private @same[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 4], f32> {
  relax.return %x
}
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %cc: !relax.prim<i1>) -> !relax.object impure {
"""
T = "!relax.tensor<[n, 4], f32>"
PACKED = 'relax.call_packed "tests.impure.increment"(%x)'
END = "%t = relax.tuple(%p, %q)\nrelax.return %t"
IN_PLACE = "%d = relax.call_tir_inplace @inc(%x) inplace [0] : " + T

PROGRAMS = {
    "equal ops": f"%p = relax.add %x, %x {PACKED} %q = relax.add %x, %x {END}",
    "equal ops, in place": f"%p = relax.add %x, %x {IN_PLACE} %q = relax.add %x, %x {END}",
    "equal ops, callee": f"%p = relax.add %x, %x %u = relax.call @writes(%x) impure %q = relax.add %x, %x {END}",
    "equal ops, view": f"""%s = relax.shape [4 * n] %v = relax.reshape %x, %s %p = relax.exp %x
        relax.call_packed "{INCREMENT}"(%v) %q = relax.exp %x {END}""",
    "equal ops, tuple": f"""%g = relax.tuple(%x, %x) %v = relax.tuple_get %g[1] %p = relax.exp %x
        relax.call_packed "{INCREMENT}"(%v) %q = relax.exp %x {END}""",
    "equal ops, result of a call": f"""%y = relax.call_packed "{SAME}"(%x) : {T} %p = relax.exp %x
        relax.call_packed "{INCREMENT}"(%y) %q = relax.exp %x {END}""",
    "equal ops, result of a pure call": f"""%y = relax.call @same(%x) %p = relax.exp %x
        relax.call_packed "{INCREMENT}"(%y) %q = relax.exp %x {END}""",
    "equal results": f"""%t2 = relax.call @twice(%x) %p = relax.tuple_get %t2[0] %q = relax.tuple_get %t2[1]
        relax.call_packed "{INCREMENT}"(%p) {END}""",
    "one is written": f"""%a = relax.exp %x %b = relax.exp %x
        %p = relax.call_tir_inplace @inc(%a) inplace [0] : {T} %q = relax.add %b, %b {END}""",
    "constants": f"""%s = relax.constant dense<1.0> : tensor<2x4xf32> %r = relax.constant dense<1.0> : tensor<2x4xf32>
        relax.call_packed "{INCREMENT}"(%s) %p = relax.add %s, %s %q = relax.add %r, %r {END}""",
    "a constant that is returned": f"""%q = relax.constant dense<1.0> : tensor<2x4xf32> %o = relax.exp %q
        relax.call_packed "{INCREMENT}"(%q) %p = relax.add %q, %q {END}""",
    "elementwise": f"%e = relax.exp %x {PACKED} %p = relax.log %e %q = relax.add %x, %p {END}",
    "softmax": f"""%e = relax.exp %x {PACKED} %s = relax.sum %e axes = [1] keepdims %p = relax.divide %e, %s
        %q = relax.exp %p {END}""",
    "norm": f"""%m = relax.mean %x axes = [1] keepdims %d = relax.subtract %x, %m %d2 = relax.multiply %d, %d {PACKED}
        %v = relax.mean %d2 axes = [1] keepdims %c = relax.constant dense<0.001> : tensor<f32> %ve = relax.add %v, %c
        %r = relax.rsqrt %ve %p = relax.multiply %d, %r %q = relax.exp %p {END}""",
    "permute": f"""%y = relax.permute_dims %x axes = [1, 0] {PACKED} %p = relax.matmul %x, %y
        %z = relax.permute_dims %y axes = [1, 0] %q = relax.exp %z {END}""",
    "view": f"""%s = relax.shape [4, n] %v = relax.reshape %x, %s %p = relax.exp %v {PACKED}
        %s2 = relax.shape [n, 4] %v2 = relax.reshape %v, %s2 %q = relax.exp %v2 {END}""",
    "astype": f"%y = relax.astype %x dtype = f32 {PACKED} %p = relax.exp %y %q = relax.exp %x {END}",
    "times one": f"""%o = relax.constant dense<1.0> : tensor<f32> %y = relax.multiply %x, %o {PACKED}
        %p = relax.exp %y %q = relax.exp %x {END}""",
    "number that is written": f"""%o = relax.constant dense<1.0> : tensor<f32> relax.call_packed "{INCREMENT}"(%o)
        %p = relax.multiply %x, %o %q = relax.exp %x {END}""",
    "negative of what is written": f"""%y = relax.negative %x relax.call_packed "{INCREMENT}"(%y) %p = relax.negative %y
        %q = relax.exp %x {END}""",
    "permute of what is written": f"""%y = relax.permute_dims %x axes = [1, 0] relax.call_packed "{INCREMENT}"(%y)
        %p = relax.permute_dims %y axes = [1, 0] %q = relax.exp %x {END}""",
    "shape that is written": f"""%s = relax.shape [4, n] %y = relax.shape_to_tensor %s
        %u = relax.constant dense<[2, 4]> : tensor<2xi64> relax.call_packed "{COPY}"(%u, %y)
        %s2 = relax.tensor_to_shape %y : !relax.shape<[_, _]> %p = relax.reshape %x, %s2 %q = relax.exp %x {END}""",
    "permute identity": f"%y = relax.permute_dims %x axes = [0, 1] {PACKED} %p = relax.exp %y %q = relax.exp %x {END}",
    "double permute": f"""%y0 = relax.permute_dims %x axes = [1, 0] %y = relax.permute_dims %y0 axes = [1, 0] {PACKED}
        %p = relax.exp %y %q = relax.exp %x {END}""",
    "permute back behind a write": f"""%p = relax.permute_dims %x axes = [1, 0] {PACKED}
        %q = relax.permute_dims %p axes = [1, 0] {END}""",
    "broadcast identity": f"""%s = relax.shape [n, 4] %y = relax.broadcast_to %x, %s {PACKED} %p = relax.exp %y
        %q = relax.exp %x {END}""",
    "closure captures": f"""%g = relax.closure (%u: {T}) -> {T} {{ %w = relax.add %x, %u relax.return %w }} {PACKED}
        %p = relax.call_closure %g(%x) %q = relax.exp %x {END}""",
    "dataflow": f"""%p = relax.dataflow {{ %1 = relax.exp %x relax.output %1 }} {PACKED}
        %q = relax.dataflow {{ %1 = relax.exp %x relax.output %1 }} {END}""",
    "concat one": f"%y = relax.concat %x axis = 0 {PACKED} %p = relax.exp %y %q = relax.exp %x {END}",
    "slice": f"""%y = relax.strided_slice %x axes = [0] begin = [0] end = [2] {PACKED} %p = relax.exp %y
        %q = relax.exp %x {END}""",
    "if": f"""%p = relax.exp %x %u = relax.if %cc {{ {PACKED} relax.yield %x }} else {{ relax.yield %x }}
        %q = relax.exp %x {END}""",
    "equal ifs": f"""%p = relax.if %cc {{ %1 = relax.exp %x relax.yield %1 }} else {{ relax.yield %x }} {PACKED}
        %q = relax.if %cc {{ %1 = relax.exp %x relax.yield %1 }} else {{ relax.yield %x }} {END}""",
    "relu relu": f"%y = relax.nn.relu %x {PACKED} %p = relax.nn.relu %y %q = relax.exp %x {END}",
    "loop": f"""%a = relax.exp %x %lo = relax.prim 0 %hi = relax.prim 3
        %p = relax.for %i = %lo to %hi (%s: {T} = %a) {{ %e = relax.exp %x %r = relax.add %s, %e {PACKED}
        relax.yield %r }} %q = relax.exp %x {END}""",
}
"""Each writes between two reads."""

_LOWERING = (
    "flatten-buffers to-mixed-precision apply-schedule bind-params bind-symbolic-vars update-param-struct-info "
    "fuse-ops-by-pattern verify-stage convert-tir-to-llvm convert-vm-to-llvm convert-relax-to-vm relax-to-llvm "
    "relax-to-llvm-plain relax-to-vm relax-to-vm-plain tir-to-llvm lower-shapes poison-memory plan-memory insert-kills "
    "allocate-registers lower-call-tir cut-constants"
)
_KERNELS = "lambda-lift,copy-constants,bind-unknown-dims,insert-guards,legalize-ops,fuse-ops,fuse-tir"
IN_MEMORY = f"{_KERNELS},to-non-dataflow,lower-call-tir,write-parts-in-place,use-inplace-calls"
"""To calls of kernels, whose results are where the memory of their operands was, or in slices of others."""

PIPELINES = (
    *(name for name in PASSES if name not in _LOWERING.split()),
    "cut-constants{rank=0}",
    "cse",
    "canonicalize",
    "dce",
    "cse,canonicalize,cse",
    "convert-to-dataflow,topological-sort",
    "fuse-ops-by-pattern{backend=torch},merge-composites",
    _KERNELS,
    IN_MEMORY,
)
"""Passes and lists of passes after which the interpreter runs a program as before."""

COMMON = (
    "eliminate-common-subexpr",
    "cse,canonicalize,dce",
    "optimize-graph",
    "fuse-ops-by-pattern{backend=torch},merge-composites",
    _KERNELS,
    IN_MEMORY,
)
"""Those that a quick run looks at."""


def arguments() -> tuple[np.ndarray, bool]:
    """Arguments for all of the programs; the matrix is `[2, 4]`."""
    return np.arange(8).reshape(2, 4).astype(np.float32) / 8 - 0.3, True


def text(body: str) -> str:
    """The module with a body of `main`."""
    return f"{HEAD}{body}\n}}"


def check_pipelines(body: str, pipelines: Iterable[str], tolerance: Tolerance) -> None:
    """Interprets a program before and after each of some lists of passes."""
    module = parse_module(text(body))
    expected = run_with_copies(runner(module, "main", "interpret"), arguments())
    for pipeline in pipelines:
        made = module.clone()
        run_pipeline(made, pipeline)
        assert_same(run_with_copies(runner(made, "main", "interpret"), arguments()), expected, tolerance, pipeline)


_PRODUCERS = ("sort {}", "cumsum {} axis = 0", "tanh {}", "nn.softmax {}")
"""What makes a value that one op uses; the first two are not fused with it."""


_FREQUENT = 3 * ("two results", "scatter", "equal")
"""Kinds of statements of which the ones that passes may get wrong are rare."""


@st.composite
def impure_bodies(draw: st.DrawFn, statements: int = 10) -> str:
    """A body of `main` that computes, passes memory on under other names, and writes, in any order."""
    values, lines, constants = ["%x"], list[str](), set[str]()

    turned, axes = "relax.permute_dims", "axes = [1, 0]"

    def choice() -> str:
        return draw(st.sampled_from(values[-6:]))

    for number in range(draw(st.integers(3, statements))):
        name, a, b = f"%v{number}", choice(), choice()
        cut = draw(st.integers(0, 2))
        made = {
            "tanh": f"{name} = relax.tanh {a}",
            "relu": f"{name} = relax.nn.relu {a}",
            "equal": f"{name} = relax.exp {draw(st.sampled_from(values[:2]))}",
            "add": f"{name} = relax.add {a}, {b}",
            "turn": f"{name}t = {turned} {a} {axes}\n{name} = {turned} {name}t {axes}",
            "turned sum": f"{name}t = {turned} {a} {axes}\n{name}u = {turned} {b} {axes}\n"
            f"{name}w = relax.add {name}t, {name}u\n{name} = {turned} {name}w {axes}",
            "softmax": f"{name}e = relax.exp {a}\n{name}s = relax.sum {name}e axes = [1] keepdims\n"
            f"{name} = relax.divide {name}e, {name}s",
            "view": f"{name}s = relax.shape [4 * n]\n{name}f = relax.reshape {a}, {name}s\n"
            f"{name}t = relax.shape [n, 4]\n{name} = relax.reshape {name}f, {name}t",
            "copy": f"{name}s = relax.shape [n, 4]\n{name} = relax.broadcast_to {a}, {name}s",
            "tuple": f"{name}t = relax.tuple({a}, {b})\n{name} = relax.tuple_get {name}t[{draw(st.integers(0, 1))}]",
            "same": f'{name} = relax.call_pure_packed "{SAME}"({a}) : {T}',
            "call": f"{name} = relax.call @same({a})",
            "constant": f"{name}c = relax.constant dense<0.5> : tensor<2x4xf32>\n"
            f"{name} = relax.match_cast {name}c : {T}",
            "dataflow": f"{name} = relax.dataflow {{ %1 = relax.tanh {a} %2 = relax.add %1, {b} relax.output %2 }}",
            "if": f"{name} = relax.if %cc {{ %1 = relax.tanh {a} relax.yield %1 }} else {{ relax.yield {b} }}",
            "writing if": f'{name} = relax.if %cc {{ relax.call_packed "{INCREMENT}"({a}) relax.yield {b} }} '
            f"else {{ relax.yield {a} }}",
            "sort": f"{name} = relax.sort {a} axis = {draw(st.integers(0, 1))}",
            "cumsum": f"{name}c = relax.cumsum {a} axis = 0\n{name} = relax.tanh {name}c",
            "sums": f"{name} = relax.cumsum {a} axis = 1",
            "matmul": f"{name}w = relax.constant dense<0.25> : tensor<4x4xf32>\n{name} = relax.matmul {a}, {name}w",
            "slices": f"{name}l = relax.strided_slice {a} axes = [1] begin = [{cut}] end = [{cut + 2}]\n"
            f"{name}r = relax.strided_slice {b} axes = [1] begin = [2] end = [4]\n"
            f"{name} = relax.concat {name}l, {name}r axis = 1",
            "scatter": f"{name}p = relax.strided_slice {a} axes = [1] begin = [0] end = [2]\n"
            f"{name}s = relax.{draw(st.sampled_from(_PRODUCERS)).format(f'{name}p')}\n"
            f"{name} = relax.slice_scatter {b}, {name}s start = {cut} end = {cut + 2} axis = 1",
            "two results": f"{name}p = relax.{draw(st.sampled_from(_PRODUCERS)).format(a)}\n"
            f"{name}, {name}d = relax.call_tir @both({name}p, {b}) : {T}, {T}",
            "packed": f'relax.call_packed "{INCREMENT}"({a})',
            "in place": f"{name} = relax.call_tir_inplace @inc({'%x' if a in constants else a}) inplace [0] : {T}",
            "callee": f"{name} = relax.call @writes({a}) impure",
        }
        kind = draw(st.sampled_from([*made, "packed", "in place", *_FREQUENT]))
        lines.append(made[kind])
        if kind == "constant" or (kind == "view" and a in constants):
            constants.add(name)  # what no PrimFunc may write
        if kind != "packed":
            values += [name, f"{name}d"] if kind == "two results" else [name]
    kept = [*dict.fromkeys([*values[-4:], "%x"])]
    return "\n".join([*lines, f"%result = relax.tuple({', '.join(kept)})", "relax.return %result"])
