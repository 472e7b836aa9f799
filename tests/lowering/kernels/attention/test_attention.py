"""Attention on the default schedule: values, whatever the sizes, and no memory for all scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.attention.pattern import find_attention
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.schedule_cpu import schedule
from lowering.kernels.stage_rewrites import split_groups
from lowering.kernels.structure.contraction import find_contraction
from lowering.kernels.structure.stages import find_program, find_stages
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from relax_dialect.builder import BlockBuilder, tensor
from relax_dialect.nn.attention import Batch, KVCache, OneSequence, Scoring, attended, pool_types
from relax_dialect.nn.config import CACHE_FORMATS, CacheFormat
from relax_dialect.struct_info.types import PrimType
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.programs import run_pipeline, runner
from tests.support.sweeps import in_turn
from tir_dialect.dims import symbol
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(4)

MACHINES = ("x86-64-v2", "x86-64-v3 cores=1", "x86-64-v4 cores=4", "neoverse-n1 cores=2")


@dataclass(frozen=True)
class Case:
    """A kernel of attention over `b` batches, `s` queries and `t` keys."""

    attributes: str = ""
    layouts: str = "bshd bthd bthe bshe"
    """Of queries, keys, values and result; `h` and `g` are heads of queries and of keys."""
    bias: str = ""
    heads: int = 2
    shared: int = 1
    features: int = 8
    dtype: str = "f32"
    bias_dtype: str = ""
    sinks: bool = False
    symbolic: bool = False
    """Whether the number of heads is a symbol."""

    @property
    def constants(self) -> dict[str, int]:
        return {"h": self.heads * self.shared, "g": self.heads, "d": self.features, "e": self.features + 3, "o": 1}

    @property
    def operands(self) -> list[str]:
        q, k, v, out = self.layouts.split()
        return [
            q,
            k.replace("h", "g"),
            v.replace("h", "g"),
            *([self.bias] if self.bias else []),
            *(["h"] if self.sinks else []),
            out,
        ]

    def type(self, letters: str, dtype: str) -> str:
        heads = {"h": f"{self.shared} * g", "g": "g"} if self.symbolic else {}
        dims = ", ".join(str({**self.constants, **heads}.get(letter, letter)) for letter in letters)
        return f"!relax.tensor<[{dims}], {dtype}>"

    @property
    def text(self) -> str:
        *inputs, out = self.operands
        names = [*"qkv", *(["m"] if self.bias else []), *(["z"] if self.sinks else [])]
        params = ", ".join(
            f"%{name}: {self.type(letters, self.bias_dtype or self.dtype if name == 'm' else self.dtype)}"
            for name, letters in zip(names, inputs, strict=True)
        )
        orders = [letters.translate(str.maketrans("thge", "shhd")).upper() for letters in (*inputs[:3], out)]
        layouts = " ".join(
            f'{name}_layout = "{text}"' for name, text in zip(("q", "k", "v", "out"), orders, strict=True)
        )
        name = "relax.nn.attention_bias" if self.bias else "relax.nn.attention"
        given = ", ".join(f"%{each}" for each in names)
        symbols = "%b, %g, %s, %t" if self.symbolic else "%b, %s, %t"
        return f"""relax.func @main[{symbols}]({params}) -> {self.type(out, self.dtype)} {{
  %0 = {name} {given} {self.attributes} {layouts}
  relax.return %0
}}"""

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        rng = np.random.default_rng(sum(sizes.values()))
        known = {**self.constants, **sizes}
        shapes = [[known[letter] for letter in letters] for letters in self.operands[:-1]]
        arrays = [rng.standard_normal(shape).astype({"f64": "f8"}.get(self.dtype, "f4")) for shape in shapes]
        if self.bias_dtype == "i1":
            arrays[3] = arrays[3] > 0
        return arrays


CASES = {
    "plain": Case(),
    "heads first": Case(layouts="bhsd bhtd bhte bhse"),
    "keys turned": Case(layouts="bhsd bhdt bhte bshe"),
    "many features": Case(features=64, layouts="bshd bthd bthe bhse"),
    "causal": Case('causal_mask = "BottomRight"'),
    "window": Case('causal_mask = "TopLeft" window_size = 3'),
    "shared heads": Case(shared=3),
    "shared heads, causal": Case('causal_mask = "BottomRight"', shared=3),
    "causal from the start": Case('causal_mask = "TopLeft"', features=16),
    "one head": Case(heads=1),
    "bias": Case(bias="bhst"),
    "bias of keys": Case("scale = 0.5", bias="boot"),
    "chosen": Case("masked_score = -5.0", bias="st", bias_dtype="i1"),
    "hidden": Case('causal_mask = "BottomRight"', bias="bost", bias_dtype="i1"),
    "f64": Case(dtype="f64", shared=2),
    "softcap": Case("softcap = 2.0", features=16, bias="st"),
    "sinks": Case('softcap = 1.0 causal_mask = "BottomRight"', shared=3, sinks=True),
    "sinks, hidden": Case("scale = 1.0", bias="bost", bias_dtype="i1", sinks=True),
    "any heads": Case(layouts="bhsd bhtd bhte bhse", shared=4, symbolic=True),
}
LETTERS = "bst"
SIZES = ((1, 1, 1), (2, 1, 40), (1, 5, 0), (0, 5, 5), (2, 0, 3), (1, 16, 17), (2, 17, 33), (1, 31, 130), (1, 130, 31))


def kernel(text: str) -> PrimFuncOp:
    module = parse_module(text)
    LegalizeOpsPass().apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp))


@cache
def reference(text: str):
    return runner(parse_module(text), "main", "interpret")


def expected(text: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    result = reference(text)(*arrays)
    assert isinstance(result, np.ndarray)
    return result


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "machine"), in_turn(CASES, MACHINES))
def test_the_scheduled_function_means_the_same(name: str, machine: str) -> None:
    case = CASES[name]
    func = kernel(case.text)
    schedule(func, Target.parse(machine))
    func.verify()
    assert not any(isinstance(op, BlockOp) for op in func.walk())
    run = compile_prim_func(func)
    for sizes in ((1, 2, 3), (1, 18, 5)):
        arrays = case.arrays(dict(zip(LETTERS, sizes, strict=True)))
        wanted = expected(case.text, arrays)
        result = np.full_like(wanted, np.nan)
        run([*arrays, result])
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("machine", ["x86-64-v3 cores=1", "x86-64-v4 cores=1"])
@pytest.mark.parametrize("count", [31, 33])
def test_nothing_behind_a_known_number_of_queries_is_read(count: int, machine: str) -> None:
    """They are not packed, so that the last tile may not be higher than what is left; the interpreter would say so."""
    case = CASES["plain"]
    text = case.text.replace("[b, s,", f"[b, {count},").replace("%s, ", "")
    func = kernel(text)
    schedule(func, Target.parse(machine))
    arrays = case.arrays({"b": 1, "s": count, "t": 6})
    wanted = expected(text, arrays)
    result = np.full_like(wanted, np.nan)
    compile_prim_func(func)([*arrays, result])
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_no_memory_for_all_scores(name: str) -> None:
    func = kernel(CASES[name].text)
    schedule(func, Target.parse("x86-64-v4"))
    for op in func.walk():
        if isinstance(op, AllocBufferOp):
            sizes = [{"b": 1, "g": 2, "s": length, "t": length} for length in (2048, 4096)]
            small, large = (
                np.prod(
                    [
                        dim.substitute({k: symbol(k) * 0 + v for k, v in each.items()}).constant_value or 0
                        for dim in op.buffer_type.shape
                    ]
                )
                for each in sizes
            )
            assert large <= 2 * small, op.buffer_type


@pytest.mark.parametrize(("name", "is_bound"), [("causal", True), ("shared heads, causal", True), ("bias", False)])
def test_masked_columns_are_skipped(name: str, is_bound: bool) -> None:
    func = kernel(CASES[name].text)
    split_groups(func)
    program = find_program(func)
    stages = None if program is None else find_stages(program)
    assert program is not None
    assert stages is not None
    contractions = {stage: found for stage in stages if (found := find_contraction(stage)) is not None}
    machine = Kernel(Code(func.body.block, func.location), Target.parse("x86-64-v4"), {})
    own = frozenset(alloc.buffer for alloc in program.buffers)
    found = find_attention(machine, contractions[stages[0]], stages[1:], contractions, own)
    assert found is not None
    assert (found.causal_bound is not None) is is_bound


def test_the_plan_has_no_scores() -> None:
    """Attention that is written out takes no memory for its scores, as the report shows."""
    module = parse_module("""
relax.func @main(%q: !relax.tensor<[1, 2, 4096, 64], f32>, %k: !relax.tensor<[1, 2, 64, 4096], f32>,
    %v: !relax.tensor<[1, 2, 4096, 64], f32>) -> !relax.tensor<[1, 2, 4096, 64], f32> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0
  %2 = relax.matmul %1, %v
  %3 = relax.exp %2
  relax.return %3
}""")
    run_pipeline(module, "relax-to-vm")
    text = str(module)
    assert "tensor<[1, 2, 4096, 4096]" not in text
    assert "vm.call_kernel" in text


# Native code, between pages that must not be touched.


@cache
def guarded(text: str) -> tuple[PrimFuncOp, Kernels]:
    func = kernel(text)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


def check_guarded(case: Case, sizes: dict[str, int], arrays: Sequence[np.ndarray] = ()) -> None:
    arrays = arrays or case.arrays(sizes)
    wanted = expected(case.text, arrays)
    func, kernels = guarded(case.text)
    symbols = {name: {**sizes, "g": case.heads}[name] for name in func.symbol_names}
    for at_end in (True, False):
        pages = [Guarded(array, at_end) for array in (*arrays, np.full_like(wanted, 7))]
        assert call(kernels, func, [page.array for page in pages], symbols) == 0
        result = pages[-1].array.copy()
        for page in pages:
            page.release()
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(60)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_native_agrees_with_numpy(name: str, sizes: tuple[int, ...]) -> None:
    check_guarded(CASES[name], dict(zip(LETTERS, sizes, strict=True)))


@pytest.mark.parametrize("queries", [3, 40])
def test_rows_that_see_nothing(queries: int) -> None:
    case, sizes = CASES["bias"], {"b": 1, "s": queries, "t": 20}
    arrays = case.arrays(sizes)
    arrays[3][:, 0, 1] = -np.inf
    arrays[3][:, 1, :, 3:] = -np.inf
    with np.errstate(invalid="ignore"):
        check_guarded(case, sizes, arrays)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sizes", [(2, 3, 9), (1, 40, 40)], ids=str)
@pytest.mark.parametrize(
    "name",
    ["causal", "window", "hidden", "bias", "bias of keys", "shared heads, causal", "sinks", "sinks, hidden", "f64"],
)
def test_what_is_not_seen_does_not_count(name: str, sizes: tuple[int, ...]) -> None:
    """Infinite values and NaN at masked positions leave the results of others as they are."""
    case, named = CASES[name], dict(zip(LETTERS, sizes, strict=True))
    if name == "f64":
        case = replace(case, attributes='causal_mask = "BottomRight"')
    q, k, v, *others = case.arrays(named)
    clear = slice(None, -2)  # rows that do not see the last two keys
    if case.bias:
        others[0][..., -2:] = False if case.bias_dtype == "i1" else -np.inf
        clear = slice(None)
    wanted = expected(case.text, [q, k, v, *others])[:, clear]
    for value in (np.inf, -np.inf, np.nan):
        v[:, -1], v[:, -2, :, ::2], k[:, -1], k[:, -2, :, 1] = value, -value, np.nan, value
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(expected(case.text, [q, k, v, *others])[:, clear], wanted)
            check_guarded(case, named, [q, k, v, *others])


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(sorted(CASES)),
    b=st.integers(0, 3),
    s=st.integers(0, 150),
    t=st.integers(0, 150),
)
def test_random_sizes(name: str, b: int, s: int, t: int) -> None:
    check_guarded(CASES[name], {"b": b, "s": s, "t": t})


@pytest.mark.parametrize("cache_format", CACHE_FORMATS)
@pytest.mark.parametrize("is_batch", [False, True])
def test_pages_are_read_where_they_are(cache_format: CacheFormat, is_batch: bool) -> None:
    """Attention over pages is one kernel without memory for keys, values or all scores, also of several sequences."""
    bb = BlockBuilder()
    table = (
        {"at": tensor(("batch",), "i64"), "table": tensor(("batch", "pages"), "i64")}
        if is_batch
        else {"at": PrimType(i64, symbol("past")), "table": tensor(("pages",), "i64")}
    )
    types = {"q": tensor(("batch", 2, 3, 16)), **table, **pool_types(2, 16, cache_format)}
    with bb.function("main", types) as function:
        queries, at, numbers, *memory = function.params
        positions = Batch(numbers, at) if is_batch else OneSequence(numbers, at.dim)
        bb.emit_func_output(attended(queries, KVCache.of(memory, positions), Scoring(0.25)))
    (func,) = [op for op in bb.get().ops if isinstance(op, PrimFuncOp)]
    explained = schedule(func, Target.parse("x86-64-v3 cores=1"))
    assert explained == "attention since a GEMM takes the rows of another one after reductions along them"
    shapes = [op.buffer.type.shape for op in func.walk() if isinstance(op, AllocBufferOp)]
    assert not [shape for shape in shapes if any("pool" in str(size) for size in shape)]


def _paged(features: int, cache_format: CacheFormat, window: int | None) -> PrimFuncOp:
    """Attention of one sequence with two heads of keys, each of three of queries."""
    bb = BlockBuilder()
    where = {"at": PrimType(i64, symbol("past")), "table": tensor(("pages",), "i64")}
    types = {"q": tensor(("new", 2, 3, features)), **where, **pool_types(2, features, cache_format)}
    with bb.function("main", types) as function:
        queries, at, numbers, *memory = function.params
        cache = KVCache.of(memory, OneSequence(numbers, at.dim))
        bb.emit_func_output(attended(queries, cache, Scoring(0.25, window)))
    return next(op for op in bb.get().ops if isinstance(op, PrimFuncOp))


@pytest.mark.parametrize(
    ("bits", "bound", "cache_format", "window"),
    [(24, 1e-6, "f32", None), (16, 3e-5, "f16", 20), (8, 2e-2, "f32", 20), (24, 1e-6, "f16", None)],
)
def test_tile_registers(bits: int, bound: float, cache_format: CacheFormat, window: int | None) -> None:
    """Prompts over pages on a machine that has them, in the interpreter; natively too if this one is such a machine.

    Beyond the last position the pages hold NaN.
    """
    func, machine = _paged(32, cache_format, window), Target.host()
    targets = [Target.parse(f"sapphirerapids cores=2 activation-bits={bits} task-percent=1")]
    targets += [machine.with_settings({"activation_bits": bits})] if "amx-bf16" in machine.extensions else []
    for target in targets:
        own = func.clone()
        schedule(own, target)
        assert ("tir.dot_tiles" in {op.name for op in own.walk()}) is (target.vector_bits == 512)
        native = (
            compile_prim_funcs(ModuleOp([func.clone()]), target, cache=NO_CACHE) if target is not targets[0] else None
        )
        run = compile_prim_func(own)
        for new, past in ((20, 0), (17, 30)):
            rng, count = np.random.default_rng(new), new + past
            pages = -(-count // 32)
            table = rng.permutation(pages)
            keys, values = (rng.standard_normal((count, 2, 32)).astype(np.float16) for _ in range(2))
            pools = [
                np.full((pages, 2, 32, 32), np.nan, np.float32 if cache_format == "f32" else np.float16)
                for _ in range(2)
            ]
            for i in range(count):
                for pool, rows in zip(pools, (keys, values), strict=True):
                    pool[table[i // 32], :, i % 32] = rows[i]
            queries = rng.standard_normal((new, 2, 3, 32)).astype(np.float32)
            scores = np.einsum("nhgc,mhc->nhgm", queries.astype(np.float64), keys.astype(np.float64)) / 4
            distance = np.arange(new)[:, None] + past - np.arange(count)
            sees = (distance >= 0) & (distance < (window or count))
            powers = np.where(sees[:, None, None], np.exp(scores - scores.max(-1, keepdims=True)), 0)
            means = np.einsum("nhgm,mhc->nhgc", powers / powers.sum(-1, keepdims=True), values.astype(np.float64))
            found = np.full(queries.shape, 7, np.float32)
            arguments = [queries, *pools, table.astype(np.int64), found]
            sizes = {"new": new, "pool": pages, "pages": pages, "past": past}
            for rows in (new, new - 1):
                if native is None:
                    run(arguments, sizes)
                else:
                    assert call(native, func, arguments, sizes) == 0
                assert np.abs(found - means)[:rows].max() <= bound * np.abs(means).max()
                for pool, value in zip(pools, (np.nan, np.inf), strict=True):  # only the last row sees it
                    pool[table[(count - 1) // 32], :, (count - 1) % 32] = value
