"""PrimFuncs: symbols, scalars, layouts, declared regions, annotations, calls."""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import MODES, run_in_turn, runner
from tir_dialect.ops.blocks import BlockOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp

A1 = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.float32)


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def only_func(text: str) -> PrimFuncOp:
    (func,) = module_of(text).ops
    assert isinstance(func, PrimFuncOp)
    return func


def test_symbols_are_those_of_shapes_and_trailing_integers():
    func = only_func("""
        @T.prim_func(private=True)
        def f(a: T.handle, b: T.handle, k: T.int64):
            T.func_attr({"tir.noalias": True, "global_symbol": "f", "hint": 2})
            n, m = T.int64(), T.int64()
            A = T.match_buffer(a, (n, m * 2), "float32", strides=(m * 2, 1))
            B = T.match_buffer(b, (n,), "float32", elem_offset=T.int64(0), align=64)
            for i in range(n):
                B[i] = A[i, k]
        """)
    assert func.symbol_names == ("n", "m", "k")
    assert func.is_private
    assert [str(param.type) for param in func.params] == [
        "!tir.buffer<[n, 2 * m], f32>",
        "!tir.buffer<[n], f32, align = 64>",
    ]
    assert set(func.attributes) == {"hint"}


def test_scalars_between_buffers_stay_scalars():
    func = only_func("""
        @T.prim_func
        def f(A: T.Buffer((4,), "float32"), k: T.int64, s: T.float32, B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i] * s + T.Cast("float32", k)
        """)
    assert func.symbol_names == ()
    assert len(func.params) == 4


def test_layouts_are_kept():
    func = only_func("""
        @T.prim_func
        def f(A: T.Buffer((4, 4), "float32", strides=(8, 1), elem_offset=2, scope="global")):
            A[0, 0] = 1.0
        """)
    assert str(func.params[0].type) == "!tir.buffer<[4, 4], f32, strides = [8, 1], offset = 2>"


def test_regions_are_kept_where_they_say_more_than_the_accesses():
    func = only_func("""
        @T.prim_func
        def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(4):
                with T.sblock("wide"):
                    vi = T.axis.spatial(4, i)
                    T.reads(A[0:8])
                    T.writes(B[vi])
                    B[vi] = A[vi]
                with T.sblock("exact"):
                    vi = T.axis.spatial(4, i)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    B[vi] = A[vi]
        """)
    wide, exact = [op for op in func.walk() if isinstance(op, BlockOp)]
    assert [type(op) for op in wide.body.block.ops if isinstance(op, ReadsOp | WritesOp)] == [ReadsOp, WritesOp]
    assert not [op for op in exact.body.block.ops if isinstance(op, ReadsOp | WritesOp)]


def test_a_block_need_not_declare_that_it_reads_what_its_init_has_stored():
    func = only_func("""
        @T.prim_func
        def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.sblock("once"):
                    vi = T.axis.spatial(8, i)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi]
        """)
    assert not [op for op in func.walk() if isinstance(op, ReadsOp | WritesOp)]


def test_annotations_of_blocks_and_loops():
    func = only_func("""
        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in T.serial(0, 8, annotations={"pragma": "unroll", "depth": 4}):
                with T.sblock("A"):
                    vi = T.axis.spatial(8, i)
                    T.sblock_attr({"layout": [0, 1], "buffers": [A]})
                    A[vi] = 0.0
        """)
    (loop,) = [op for op in func.walk() if isinstance(op, ForOp)]
    (block,) = [op for op in func.walk() if isinstance(op, BlockOp)]
    assert loop.annotations is not None
    assert {key: str(value) for key, value in loop.annotations.data.items()} == {
        "pragma": '"unroll"',
        "depth": "4 : i64",
    }
    assert block.annotations is not None
    assert str(block.annotations.data["buffers"]) == '["A"]'


def test_a_prim_func_calls_another():
    text = """
        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def double(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
                for i in range(n):
                    B[i] = A[i] * 2.0

            @T.prim_func
            def twice(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
                C = T.alloc_buffer((n,), "float32")
                Module.double(A, C)
                Module.double(C.data, B)

            @R.function
            def main(x: R.Tensor(("n",), "float32")):
                n = T.int64()
                return R.call_tir(Module.twice, (x,), out_ty=R.Tensor((n,), "float32"))
        """
    np.testing.assert_array_equal(run_in_turn(module_of(text), "main", [A1]), A1 * 4)


def test_values_of_symbols_come_with_the_call():
    text = """
        @T.prim_func
        def shift(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), k: T.int64):
            for i in range(n):
                B[i] = A[(i + k) % n]

        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("k",), "float32")):
            n, k = T.int64(), T.int64()
            return R.call_tir(shift, (x,), out_sinfo=R.Tensor((n,), "float32"), tir_vars=R.shape([k]))
        """
    result = run_in_turn(module_of(text), "main", [A1, A1[:3]])
    np.testing.assert_array_equal(result, np.roll(A1, -3))


SIZE_AND_SHAPE = """
    @T.prim_func
    def copy(A: T.Buffer(("n",), "float32"), n: T.int64, B: T.Buffer(("n",), "float32")):
        for i in range(n):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor({shape}, "float32"), y: R.Tensor(("k",), "float32")) -> R.Tensor:
        k = T.int64()
        return R.call_tir(copy, (x, {size}), out_sinfo=R.Tensor({shape}, "float32"))
    """


def test_sizes_that_shapes_tell_too_are_compared():
    """When the text is read if that is enough, else at run time."""
    with pytest.raises(TVMScriptError, match="calls @copy, value of n: 5 does not match n with n = 4"):
        module_of(SIZE_AND_SHAPE.format(shape="(4,)", size="5"))
    module = module_of(SIZE_AND_SHAPE.format(shape='("m",)', size="k"))
    np.testing.assert_array_equal(run_in_turn(module, "main", [A1, A1]), A1)
    for mode in MODES:
        with pytest.raises(ValueError, match=r"n = 3|value of n in @copy.* m = 8, k = 3"):
            runner(module, "main", mode)(A1, A1[:3])


def test_handles_take_the_type_of_their_first_declaration():
    func = only_func("""
        @T.prim_func
        def f(a: T.handle("float32"), n: T.int64, b: T.handle("int8", "shared"), unused: T.handle, c: T.handle):
            for i in range(n):
                A = T.decl_buffer((n, 2), "float32", data=a)
                A[i, 0] = T.float32(1)
            T.evaluate(T.call_extern("free", b, c, dtype="int32"))
        """)
    assert [str(param.type) for param in func.params] == [
        "!tir.buffer<[n, 2], f32>",
        "!tir.buffer<[b_size], i8>",
        "!tir.buffer<[c_size], ui8>",
    ]
    assert func.symbol_names == ("n", "b_size", "c_size")


CALLED_BEFORE = """
    @I.ir_module
    class M:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            z = T.bind(T.float32(2))
            k = T.float32()
            T.bind(z + T.undef(), var=k)
            M.scale(A.data, k, B, A)

        @T.prim_func(private=True)
        def scale(a: T.handle("float32"), k: T.float32, B: T.Buffer((8,), "float32"), unused: T.handle):
            A = T.decl_buffer((8,), "float32", data=a)
            for i in T.serial(8, dtype="int32"):
                T.assume(i < 9)
                B[i] = A[i] * k + T.call_extern("abs", T.int32(i) << 1, dtype="int32")

        @R.function
        def relax(x: R.Tensor((8,), "float32")):
            return R.call_tir(M.main, (x,), out_ty=R.Tensor((8,), "float32"))
    """


def test_functions_may_stand_below_their_calls():
    result = run_in_turn(module_of(CALLED_BEFORE), "relax", [A1])
    np.testing.assert_array_equal(result, A1 * 2 + 2 * np.arange(8, dtype=np.float32))


LOWERED = """
    @I.ir_module
    class M:
        @T.prim_func(private=True)
        def scale(x: T.handle, y: T.handle, n: T.int64):
            m = T.int64()
            A = T.match_buffer(x, (m,), "float32")
            B = T.match_buffer(y, (m,), "float32")
            for i in range(m):
                B[i] = A[i] * T.Cast("float32", n)

        @R.function(pure=False)
        def main(x: R.Tensor(("m",), "float32")):
            m = T.int64()
            y = R.builtin.alloc_tensor(R.shape([m]), dtype="float32", runtime_device_index=0)
            R.vm.call_tir_dyn(M.scale, (x, y, R.shape([m + 1])))
            return y
    """


def test_lowered_calls_have_sizes_behind_the_tensors():
    np.testing.assert_array_equal(run_in_turn(module_of(LOWERED), "main", [A1]), A1 * 9)
