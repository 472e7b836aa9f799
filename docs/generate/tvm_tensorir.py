"""TensorIR's nodes (TVM 0.27), each with a text that has one, and what it becomes.

A text stands in `def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"))`. The
tests read each, look for the operations in backticks, and run it natively and interpreted.
"""

from __future__ import annotations

_BLOCK = 'for i in range(8):\n  with T.sblock("b"):\n    v = T.axis.{kind}(8, i)\n    {body}'
_SUM = (
    'for i, j in T.grid(8, 8):\n  with T.sblock("b"):\n    v, r = T.axis.remap("SR", [i, j])\n    with T.init():\n'
    "      B[v] = T.float32(1)\n    B[v] = B[v] + A[r]"
)

STATEMENTS = {
    "SeqStmt": ("operations in their order", "B[0] = A[0]\nB[1] = A[1]"),
    "Bind, LetStmt": ("an SSA value", "x: T.let[T.float32] = A[0] * A[1]\nB[0] = x + x"),
    "AttrStmt": (
        "the statements inside; what TVM's passes read there is not kept",
        'with T.attr(0, "pragma", 1):\n  B[0] = A[0]',
    ),
    "AssertStmt": ("`tir.assert`", 'assert K[0] > -100, "too small"\nB[0] = A[0]'),
    "BufferStore": ("`tir.store`", "B[1] = A[2]"),
    "BufferStore with a predicate": (
        "`tir.store` with a mask",
        "B.vstore([T.Ramp(0, 1, 8)], A[0:8], predicate=T.get_active_lane_mask('uint1x8', 0, 5))",
    ),
    "AllocBuffer": ("`tir.alloc_buffer`", "t = T.alloc_buffer((8,))\nfor i in range(8):\n  t[i] = A[i]\nB[3] = t[3]"),
    "DeclBuffer": (
        "the buffer, flattened, or a view: `tir.view`",
        'x = T.decl_buffer((2, 2), "float32", data=A.data, elem_offset=1)\nB[0] = x[1, 1]',
    ),
    "Evaluate": ("the operations", 'T.evaluate(T.call_extern("float32", "fabsf", A[0]))'),
    "IfThenElse": ("`tir.if`", "if K[0] > 0:\n  B[0] = A[0]\nelse:\n  B[1] = A[0]"),
    "For": ("`tir.for`", "for i in range(1, 7):\n  B[i] = A[i]"),
    "For with a step": ("`tir.for`; its variable times the step", "for i in T.serial(0, 8, step=3):\n  B[i] = A[i]"),
    "For, annotations": ("`tir.for`", 'for i in T.serial(8, annotations={"note": 1}):\n  B[i] = A[i]'),
    "While": ("`tir.while`", "n: T.int32 = 0\nwhile n < 8:\n  B[n] = A[n]\n  n = n + 1"),
    "Break": ("a flag in memory and `tir.if`", "for i in range(8):\n  if K[i] > 3:\n    break\n  B[i] = A[i]"),
    "Continue": ("a flag in memory and `tir.if`", "for i in range(8):\n  if K[i] > 3:\n    continue\n  B[i] = A[i]"),
    "Return": ("a state, and a last parameter for a value", "B[0] = A[0]\nif K[0] > 0:\n  return\nB[1] = A[1]"),
    "SBlock, SBlockRealize": ("`tir.block`", _BLOCK.format(kind="spatial", body="B[v] = A[v]")),
    "SBlockRealize.predicate": (
        "`where` of `tir.block`",
        _BLOCK.format(kind="spatial", body="T.where(i < 5)\n    B[v] = A[v]"),
    ),
    "SBlock.init": ("`tir.init`", _SUM),
    "SBlock.reads, writes": (
        "`tir.reads`, if the region cannot be inferred",
        _BLOCK.format(kind="spatial", body="T.reads(A[0:8])\n    T.writes(B[v])\n    B[v] = A[v]"),
    ),
    "SBlock.alloc_buffers": (
        "`tir.alloc_buffer`",
        _BLOCK.format(kind="spatial", body="t = T.sblock_alloc_buffer((1,))\n    t[0] = A[v]\n    B[v] = t[0]"),
    ),
    "SBlock.match_buffers": (
        "`tir.match_buffer`",
        _BLOCK.format(kind="spatial", body="M = T.match_buffer(A[v:v + 1], (1,))\n    B[v] = M[0]"),
    ),
    "SBlock.annotations": (
        "annotations of `tir.block`",
        _BLOCK.format(kind="spatial", body='T.sblock_attr({"note": 1})\n    B[v] = A[v]'),
    ),
}

LOOPS = {
    "ForKind.SERIAL": ("`tir.for`", "for i in T.serial(8):\n  B[i] = A[i]"),
    "ForKind.PARALLEL": ("`tir.for` parallel", "for i in T.parallel(8):\n  B[i] = A[i]"),
    "ForKind.VECTORIZED": ("`tir.for` vectorized", "for i in T.vectorized(8):\n  B[i] = A[i]"),
    "ForKind.UNROLLED": ("`tir.for` unrolled", "for i in T.unroll(8):\n  B[i] = A[i]"),
    "ForKind.THREAD_BINDING": (
        "`tir.for` thread_binding, executed serially on CPUs",
        'for i in T.thread_binding(8, thread="threadIdx.x"):\n  B[i] = A[i]',
    ),
    "IterVar.DataPar": ("spatial of `tir.block`", _BLOCK.format(kind="spatial", body="B[v] = A[v]")),
    "IterVar.CommReduce": ("reduce of `tir.block`", _SUM),
    "IterVar.Ordered": (
        "scan of `tir.block`",
        _BLOCK.format(kind="scan", body="B[v] = A[v] + T.if_then_else(v > 0, B[v - 1], 0.0)"),
    ),
    "IterVar.Opaque": ("opaque of `tir.block`", _BLOCK.format(kind="opaque", body="B[v] = A[v]")),
    "IterVar.ThreadIndex": ("`tir.for` thread_binding", 'for i in T.thread_binding(8, "blockIdx.x"):\n  B[i] = A[i]'),
    "IterVar.Unrolled, Vectorized, Parallelized, Tensorized": (
        "kinds of `tir.for`; TVM itself creates no such iterators",
        "for i in T.unroll(8):\n  B[i] = A[i]",
    ),
}

EXPRESSIONS = {
    "Var": ("an SSA value or a symbol", "for i in range(8):\n  B[i] = A[7 - i]"),
    "IntImm, FloatImm": ("`arith.constant`", "B[0] = 2.5\nK[0] = 7"),
    "StringImm": ("the message of `tir.assert`, or an argument of a call", 'assert K[0] > -100, "text"\nB[0] = A[0]'),
    "Cast": ("`arith.sitofp` and others", 'B[0] = T.Cast("float32", K[0])'),
    "Add, Sub, Mul": (
        "`arith.addi`, `arith.subi`, `arith.muli`; floats likewise",
        "K[0] = (K[1] + K[2]) * K[3] - K[4]",
    ),
    "Div, Mod": ("`arith.divsi`, `arith.remsi`", "K[0] = T.truncdiv(K[1], 3)\nK[2] = T.truncmod(K[1], 3)"),
    "FloorDiv, FloorMod": (
        "`arith.floordivsi`, and the remainder computed from it",
        "K[0] = K[1] // 3\nK[2] = K[1] % 3",
    ),
    "Min, Max": ("`arith.minsi`, `arith.maxsi`", "K[0] = T.min(K[1], K[2])\nK[3] = T.max(K[1], K[2])"),
    "EQ, NE, LT, LE, GT, GE": ("`arith.cmpi`", "K[0] = T.Cast('int32', K[1] < K[2])"),
    "And, Or, Not": (
        "`tir.if`, since they short-circuit; `arith.xori`",
        "if K[0] > 0 and not K[3] > 0:\n  B[0] = A[0]",
    ),
    "Select": ("`arith.select`", "B[0] = T.Select(K[0] > 0, A[0], A[1])"),
    "BufferLoad": ("`tir.load`", "B[0] = A[1]"),
    "BufferLoad with a predicate": (
        "`tir.load` with a mask",
        "B[0:8] = A.vload([T.Ramp(0, 1, 8)], predicate=T.get_active_lane_mask('uint1x8', 0, 5))",
    ),
    "Ramp": ("`tir.ramp`, or consecutive elements", "B[T.Ramp(0, 2, 4)] = A[T.Ramp(1, 2, 4)]"),
    "Broadcast": ("`vector.broadcast`", "B[0:8] = T.Broadcast(A[0], 8)"),
    "Shuffle": ("a `tir.alloc_buffer` for the vector", "B[0] = T.Shuffle([A[0:4]], [2])"),
    "Let": ("an SSA value", "x = T.float32()\nB[0] = T.Let(x * x, where={x: A[0]})"),
    "Call": ("an operation, or a call: the list of intrinsics", "B[0] = T.exp(A[0])"),
    "BitwiseAnd, Or, Xor, Not, LShift, RShift": (
        "`arith.andi`, `arith.xori`, `arith.shli`",
        "K[0] = ((K[1] & 7) ^ K[2]) | ~K[3]\nK[4] = K[5] << 2",
    ),
}

BUFFERS = {
    "dtype": (
        "all of i1, i8 to i64, ui8 to ui64, f16, bf16, f32, f64, f8 and f4",
        't = T.alloc_buffer((8,), "bfloat16")\nt[0] = T.Cast("bfloat16", A[0])\nB[0] = T.Cast("float32", t[0])',
    ),
    "shape": (
        "dimensions, which are polynomials, quotients, remainders, `min` and `max` over symbols",
        "t = T.alloc_buffer((2, 4))\nfor i, j in T.grid(2, 4):\n  t[i, j] = A[i * 4 + j]\nB[0] = t[1, 2]",
    ),
    "strides, elem_offset": (
        "`strides` of `!tir.buffer`; an offset there of parameters, behind `at` of a `tir.view`; symbols that "
        "stand for nothing else are those of the tensor that is given, which has no gaps where a program is built of "
        "the kernel; `Kernels.packed` and `run_prim_func` take tensors with gaps",
        'M = T.decl_buffer((2, 2), "float32", data=A.data, strides=[4, 1], elem_offset=1)\nB[0] = M[1, 1]',
    ),
    "data_alignment": ("`align` of `!tir.buffer`", "t = T.alloc_buffer((8,), align=128)\nt[1] = A[1]\nB[0] = t[1]"),
    "storage_scope": (
        "`scope`: `global`, `local`; `shared` and `warp` are global without threads, others are of GPUs",
        't = T.alloc_buffer((8,), scope="local")\nt[1] = A[1]\nB[0] = t[1]',
    ),
    "offset_factor": (
        "read by TVMScript and not kept: an offset may be any number of elements",
        "M = T.decl_buffer((4,), data=A.data, elem_offset=3, offset_factor=2)\nB[0] = M[1]",
    ),
    "MakeSlice": (
        "`tir.match_buffer`",
        'with T.sblock("b"):\n  M = T.match_buffer(A[2:6], (4,))\n  B[0] = M[1]',
    ),
    "MakeStrideView": ("`tir.view`", "M = T.decl_buffer((4,), data=A.data, strides=[2])\nB[0] = M[3]"),
    "vload, vstore": (
        "`tir.load`, `tir.store` of vectors",
        "B.vstore([T.Ramp(0, 1, 8)], A.vload([T.Ramp(0, 1, 8)]) * T.Broadcast(T.float32(2), 8))",
    ),
}

TYPES = {
    "Buffer.layout, allocated_addr": "- GPU tiles",
    "PrimFunc.params, body, attrs": "`tir.prim_func`",
    "PrimFunc.ret_type": "a last parameter of rank 0",
    "PrimFunc.specialize": "`tir_dialect.specialize`; `bind-symbolic-vars`, of relax functions too",
    "IndexMap": "`tir_dialect.schedule.index_map`: `apply`, `map_shape`, `inverse`, `non_surjective_inverse`",
    "TensorIntrin": "`register_tensor_intrin`, `registered_tensor_intrin`; `tensorize` replaces a block by one",
    "TVMScript": "read by `relax_dialect.frontend.tvmscript`, written by `tir_dialect.tvmscript.as_tvmscript`",
    "ProducerLoad, Reduce, CommReducer": "`te`: they do not occur in functions",
    "ScopeIdDefStmt, TilePrimitiveCall, TileLayout": "- GPU tiles",
}

TE = {
    "TensorSlice": "`TensorSlice`, as `a[i][j]`",
    "CommReducer": "`Reducer`",
    "Reduce": "- inside of `compute` only",
    "operation": "`Operation`",
    "tag": "`tag_scope`",
    "tensor": "`Tensor`",
    "thread_axis": "- GPUs only; `Schedule.bind` binds a loop",
    "trace": "- debug output",
}
"""The functions of TVM's `te` that have another name here, or no counterpart."""

TE_NAMES = """
CommReducer ComputeOp ExternOp PlaceholderOp Reduce ScanOp Tensor TensorSlice abs acos acosh all any asin asinh
atan atanh ceil comm_reducer compute const cos cosh create_prim_func div erf exp extern extern_primfunc floor
floordiv floormod fmod if_then_else indexdiv indexmod isfinite isinf isnan log log10 log2 logaddexp max
max_value min min_value nearbyint operation placeholder popcount power reduce_axis round rsqrt scan sigmoid sin
sinh sqrt sum tag tag_scope tan tanh tensor thread_axis trace trunc truncdiv truncmod var
"""

ATTRIBUTES = {"state": "the schedule itself", "trace": "`Schedule.trace`"}
"""What a schedule has beside its methods."""

SCHEDULE = """
add_unit_loop annotate annotate_buffer_access bind blockize cache_index cache_inplace cache_read cache_write
can_decompose_padding compute_at compute_inline copy decompose_padding decompose_reduction enter_postproc
fork_seed func_working_on fuse fuse_reduction_epilogue get get_child_blocks get_consumers get_loops
get_output_blocks get_producers get_sblock get_sref loop_partition merge mod pad_einsum parallel read_at reindex
reindex_cache_read reindex_cache_write remove_rv reorder reorder_block_iter_var reverse_compute_at
reverse_compute_inline rfactor rolling_buffer sample_categorical sample_compute_location sample_partitioned_tile
sample_perfect_tile seed set_scope show split storage_align tensorize transform_block_layout
transform_layout unannotate unroll unsafe_hide_buffer_access unsafe_set_dtype vectorize work_on write_at
"""
