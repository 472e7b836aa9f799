"""PrimFuncs that workers share: by how their loops index buffers, and all workers together compute what the whole does.

What does not fit gets whole tensors, and is right, too.
"""

import numpy as np
import pytest

from lowering.distributed.factors import factors_of
from lowering.parsing import parse_module
from relax_dialect.ops.call_tir import CallTIROp
from tests.lowering.distributed.support import check_sharded
from tests.lowering.distributed.test_rules import as_text

MESHES = ("x = 1", "x = 2", "x = 3", "x = 4", "x = 6", "x = 2, y = 2", "x = 2, y = 3")


def buffer(shape: str, dtype: str = "f32") -> str:
    return f"!tir.buffer<[{shape}], {dtype}>"


def kernel(symbols: str, params: str, body: str) -> str:
    """A function whose body is written with `;` between lines."""
    names = ", ".join(f"%{name}" for name in symbols.split())
    lines = "\n".join(line.strip() for line in body.split(";"))
    return f"tir.prim_func @f{f'[{names}]' if names else ''}({params}) {{\n{lines}\n}}"


X, Y = f"%X: {buffer('n, m')}", f"%Y: {buffer('n, m')}"
PAIR = 'tir.for (%i, %j) in (%n, %m) { tir.block "b" (%vi = spatial %i in %n, %vj = spatial %j in %m) {'
REDUCED = 'tir.for (%i, %j) in (%n, %m) { tir.block "b" (%vi = spatial %i in %n, %vj = reduce %j in %m) {'
ROW = f"%Y: {buffer('n')}"


def reduction(op: str, start: str, term: str = "%t = arith.negf %x : f32", after: str = "") -> str:
    """The rows of `X`, of each element of which a term is combined to one number."""
    return kernel(
        "n m",
        f"{X}, {ROW}",
        f"""{REDUCED} tir.init {{; %s = arith.constant {start} : f32; tir.store %s, %Y[%vi]; }};
        %x = tir.load %X[%vi, %vj]; %y = tir.load %Y[%vi]; {term};
        %z = {op} %y, %t : f32; tir.store %z, %Y[%vi]; }} }} {after}""",
    )


CASES: dict[str, tuple[str, str, str, str]] = {
    # name: (function, shapes of arguments, shape of the result, factors)
    "elementwise": (
        kernel("n m", f"{X}, {Y}", f"{PAIR} %x = tir.load %X[%vi, %vj]; %y = math.tanh %x : f32;"
               "tir.store %y, %Y[%vi, %vj]; } }"),
        "n, m", "n, m", "(d0 d1) -> (d0 d1)",
    ),
    "broadcast, transposed": (
        kernel("n m", f"{X}, %B: {buffer('m')}, %Y: {buffer('m, n')}",
               f"{PAIR} %x = tir.load %X[%vi, %vj]; %b = tir.load %B[%vj]; %y = arith.addf %x, %b : f32;"
               "tir.store %y, %Y[%vj, %vi]; } }"),
        "n, m; m", "m, n", "(d0 d1, d1) -> (d1 d0)",
    ),
    "loops without blocks": (
        kernel("n m", f"{X}, {Y}", "tir.for (%i, %j) in (%n, %m) { %x = tir.load %X[%i, %j];"
               "tir.store %x, %Y[%i, %j]; }"),
        "n, m", "n, m", "(d0 d1) -> (d0 d1)",
    ),
    "sum": (reduction("arith.addf", "0.0"), "n, m", "n", "(d0 d1) -> (d0), d1 by sum"),
    "product of elements": (reduction("arith.mulf", "1.0"), "n, m", "n", "(d0 d1) -> (d0), d1 by prod"),
    "maximum": (reduction("arith.maximumf", "-3.0"), "n, m", "n", "(d0 d1) -> (d0), d1 by max"),
    "sum that starts with 1": (reduction("arith.addf", "1.0"), "n, m", "n", "(d0 _) -> (d0)"),
    "sum of what was summed": (reduction("arith.addf", "0.0", "%t = arith.mulf %x, %y : f32"), "n, m", "n",
                               "(d0 _) -> (d0)"),
    "difference": (reduction("arith.subf", "0.0"), "n, m", "n", "(d0 _) -> (d0)"),
    "sum that goes on": (
        reduction("arith.addf", "0.0", after='tir.for (%k) in (%n) { tir.block "c" (%vk = spatial %k in %n) {'
                  "%a = tir.load %Y[%vk]; %c = arith.mulf %a, %a : f32; tir.store %c, %Y[%vk]; } }"),
        "n, m", "n", "(d0 _) -> (d0)",
    ),
    "softmax": (
        kernel("n m", f"{X}, {Y}", f"""%T = tir.alloc_buffer : {buffer("n")}; %E = tir.alloc_buffer : {buffer("n, m")};
        {PAIR} %x = tir.load %X[%vi, %vj]; %e = math.exp %x : f32; tir.store %e, %E[%vi, %vj]; }} }};
        {REDUCED} tir.init {{; %z = arith.constant 0.0 : f32; tir.store %z, %T[%vi]; }}; %e = tir.load %E[%vi, %vj];
        %t = tir.load %T[%vi]; %s = arith.addf %t, %e : f32; tir.store %s, %T[%vi]; }} }};
        {PAIR} %e = tir.load %E[%vi, %vj]; %t = tir.load %T[%vi]; %y = arith.divf %e, %t : f32;
        tir.store %y, %Y[%vi, %vj]; }} }}"""),
        "n, m", "n, m", "(d0 _) -> (d0 _)",
    ),
    "number of its own": (
        kernel("n m", f"{X}, {ROW}", f"""tir.for (%i) in (%n) {{ %a = tir.alloc_buffer : {buffer("")};
        %z = arith.constant 0.0 : f32; tir.store %z, %a[]; tir.for (%j) in (%m) {{ %x = tir.load %X[%i, %j];
        %t = tir.load %a[]; %s = arith.addf %t, %x : f32; tir.store %s, %a[]; }}; %r = tir.load %a[];
        tir.store %r, %Y[%i]; }}"""),
        "n, m", "n", "(d0 _) -> (d0)",
    ),
    "products of pairs": (
        kernel("n", f"%X: {buffer('n')}, {ROW}",
               'tir.for (%i, %j) in (%n, %n) { tir.block "b" (%vi = spatial %i in %n, %vj = reduce %j in %n) {'
               "tir.init {; %s = arith.constant 0.0 : f32; tir.store %s, %Y[%vi]; }; %a = tir.load %X[%vi];"
               "%b = tir.load %X[%vj]; %p = arith.mulf %a, %b : f32; %y = tir.load %Y[%vi];"
               "%z = arith.addf %y, %p : f32; tir.store %z, %Y[%vi]; } }"),
        "n", "n", "(_) -> (_)",
    ),
    "outer product": (
        kernel("n", f"%X: {buffer('n')}, %W: {buffer('n')}, %Y: {buffer('n, n')}",
               'tir.for (%i, %j) in (%n, %n) { tir.block "b" (%vi = spatial %i in %n, %vj = spatial %j in %n) {'
               "%a = tir.load %X[%vi]; %b = tir.load %W[%vj]; %p = arith.mulf %a, %b : f32;"
               "tir.store %p, %Y[%vi, %vj]; } }"),
        "n; n", "n, n", "(d0, d1) -> (d0 d1)",
    ),
    "mean": (
        kernel("n m", f"{X}, {ROW}", f"""%T = tir.alloc_buffer : {buffer("n")};
        {REDUCED} tir.init {{; %z = arith.constant 0.0 : f32; tir.store %z, %T[%vi]; }}; %x = tir.load %X[%vi, %vj];
        %t = tir.load %T[%vi]; %s = arith.addf %t, %x : f32; tir.store %s, %T[%vi]; }} }};
        tir.for (%i) in (%n) {{ tir.block "d" (%vi = spatial %i in %n) {{ %c = arith.index_cast %n : index to i64;
        %f = arith.sitofp %c : i64 to f32; %t = tir.load %T[%vi]; %y = arith.divf %t, %f : f32;
        tir.store %y, %Y[%vi]; }} }}"""),
        "n, m", "n", "(d0 _) -> (d0)",
    ),
    "neighbours": (
        kernel("n m", f"{X}, {Y}", f"""%one = arith.constant 1 : index; %last = arith.subi %m, %one : index;
        {PAIR} %k = arith.subi %last, %vj : index; %x = tir.load %X[%vi, %k]; tir.store %x, %Y[%vi, %vj]; }} }}"""),
        "n, m", "n, m", "(d0 _) -> (d0 _)",
    ),
    "first row": (
        kernel("n m", f"{X}, {Y}", f"""%zero = arith.constant 0 : index;
        {PAIR} %a = tir.load %X[%zero, %vj]; tir.store %a, %Y[%vi, %vj]; }} }}"""),
        "n, m", "n, m", "(_ d0) -> (d1 d0)",
    ),
    "diagonal": (
        kernel("n", f"%X: {buffer('n, n')}, {ROW}", 'tir.for (%i) in (%n) { tir.block "b" (%vi = spatial %i in %n) {'
               "%x = tir.load %X[%vi, %vi]; tir.store %x, %Y[%vi]; } }"),
        "n, n", "n", "(_ _) -> (_)",
    ),
    "position as a number": (
        kernel("n m", f"{X}, {Y}", f"{PAIR} %c = arith.index_cast %vj : index to i64;"
               "%f = arith.sitofp %c : i64 to f32;"
               "%x = tir.load %X[%vi, %vj]; %y = arith.addf %x, %f : f32; tir.store %y, %Y[%vi, %vj]; } }"),
        "n, m", "n, m", "(d0 _) -> (d0 _)",
    ),
    "condition on elements": (
        kernel("n m", f"{X}, {Y}", f"""{PAIR} %x = tir.load %X[%vi, %vj]; %z = arith.constant 0.0 : f32;
        %c = arith.cmpf ogt, %x, %z : f32; %y = tir.if %c -> (f32) {{; tir.yield %x; }} else {{; tir.yield %z; }};
        tir.store %y, %Y[%vi, %vj]; }} }}"""),
        "n, m", "n, m", "(d0 d1) -> (d0 d1)",
    ),
    "last one wins": (
        kernel("n m", f"{X}, {ROW}", "tir.for (%i, %j) in (%n, %m) { %x = tir.load %X[%i, %j];"
               "tir.store %x, %Y[%i]; }"),
        "n, m", "n", "(d0 _) -> (d0)",
    ),
}  # fmt: skip


def program(name: str, mesh: str = "x = 2", sharding: tuple[int, str] | None = None, sizes: str = "") -> str:
    """A call of a function, one argument of which is shared; with `sizes`, all sizes are numbers."""
    function, arguments, result, _ = CASES[name]
    params: list[str] = []
    for at, shape in enumerate(arguments.split("; ")):
        axes = f", sharding<{sharding[1]}>" if sharding is not None and sharding[0] == at else ""
        params.append(f"%x{at}: !relax.tensor<[{shape}], f32{axes}>")
    symbols = [each for each in ("n", "m") if each in arguments.replace(",", " ").replace(";", " ").split()]
    called = ", ".join(f"%x{at}" for at in range(len(params)))
    head = f"relax.func @main[{', '.join(f'%{each}' for each in symbols)}]({', '.join(params)}) -> !relax.object {{"
    call = f"%0 = relax.call_tir @f({called}) : !relax.tensor<[{result}], f32>"
    return f"{function}\n{head}\n{call}\nrelax.return %0\n}}"


def shardings(name: str, mesh: str) -> list[tuple[int, str]]:
    """Each dimension of each argument; along a second axis another dimension, where there is one."""
    axes = mesh.split(", ")
    found: list[tuple[int, str]] = []
    for at, shape in enumerate(CASES[name][1].split("; ")):
        rank = len(shape.split(", "))
        for dim in range(rank):
            placements = (f"S[{dim}]", f"S[{(dim + 1) % rank}]" if rank > 1 else "R")
            found.append((at, ", ".join(f"{axis}: {place}" for axis, place in zip(axes, placements, strict=False))))
    return found


@pytest.mark.parametrize("name", CASES)
def test_factors(name: str):
    (op,) = [op for op in parse_module(program(name)).walk() if isinstance(op, CallTIROp)]
    factors = factors_of(op)
    assert factors is not None
    assert as_text(factors) == CASES[name][3]


@pytest.mark.sampled(32)
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", CASES)
def test_all_workers_compute_the_whole(name: str, mesh: str):
    rng = np.random.default_rng(0)
    for sharding in shardings(name, mesh):
        args = [
            [rng.integers(-2, 3, [each[dim] for dim in shape.split(", ")]).astype(np.float32) / 2
             for shape in CASES[name][1].split("; ")]
            for each in ({"n": 5, "m": 4}, {"n": 1, "m": 7}, {"n": 6, "m": 1})
        ]  # fmt: skip
        check_sharded(program(name, sharding=sharding), args, "propagate-sharding,lower-distributed")
