"""What is said about texts that are no programs, and where."""

from textwrap import dedent

import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse

HEAD = """\
from tvm.script import ir as I, relax as R, tir as T

@R.function
def f(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
"""

PRIM = """\
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), k: T.float32):
"""

RELAX_ERRORS = {
    "return R.call_tir('g', x, R.Tensor((4,)))": ("'relax.call_dps_packed' op result #0 expected known dtype", 5),
    "return R.print(f'{x}')": ("expected what is known when the text is read, got an Expr", 23),
    "return R.ad(x, x)": ("there is no operator R.ad; did you mean", 12),
    "return R.add(x)": ("R.add expected the argument y", 12),
    "return R.add(x, x, x)": ("R.add expected at most 2 positional arguments, got 3", 24),
    "return R.add(x, z=x)": ("R.add has no argument z", 21),
    "return R.add(x, x1=x)": ("R.add got the argument x1 twice", 24),
    "return R.add(x, *x)": ("R.add: expected arguments one by one, got \\*", 21),
    "return R.sum(x, **x)": ("R.sum: expected keywords one by one", 23),
    "return y": ("the name y is not defined here", 12),
    "return R.permute_dims(x, [0])": ("'relax.permute_dims' op", 12),
    'return x + "a"': ("expected", 12),
    "return x.shapes": ("a value has no shapes", 12),
    "return x[0, 0, 0]": ("expected at most 2 indices, got 3", 12),
    "return x(x)": ("expected a function to call", 12),
    "return 1 // 0": ("division by zero", 12),
    "return 2 ** 100": ("expected an integer of 64 bits", 12),
    "return b'a'": ("expected a number, a string or a truth value", 12),
    "return R.const('a')": ('R.const expected numbers, got "a"', 20),
    "return R.const(1, 'f33')": ("unsupported dtype 'f33'", 23),
    "return R.reshape(x, (n, 'a b'))": ("expected a dimension", 25),
    "return metadata[0]": ("constants of a metadata section", 12),
    "return (lambda y: y)": ("expected a number, a string, a dimension", 13),
    "return [y for y in x]": ("expected a tuple or range", 24),
    "return R.ccl.allreduces(x)": ("there is no operator R.ccl.allreduces; did you mean", 12),
    "return R.ccl.allreduce(x, 'median')": ("expected op_type to be one of sum, prod", 12),
    "return R.dist.redistribute(x, 'mesh[0]', 'R')": ('expected a mesh of I.module_global_infos, got "mesh', 35),
    "return R.dist.redistribute(x, R.device_mesh((2,), [0]), 'R')": ("expected 2 devices for a mesh of", 55),
    "return R.dist.redistribute(x, R.device_mesh((2,), [0, 1]), 'S[2]')": (
        "expected a placement within rank 2, got S",
        12,
    ),
    "return R.to_vdevice(x, 'cuda:1')": ("R.to_vdevice expected a CPU, got cuda:1: programs are compiled for the", 28),
    "return R.to_vdevice(x, 'vdevice:1')": ('expected a device of I.module_global_infos, got "vdevice:1"', 28),
    "return R.hint_on_device(x, R.metal(0))": ("R.hint_on_device expected a CPU, got metal:0", 32),
    "return R.layout_transform(x, [1, 0])": ("expected an index map such as lambda i, j: ", 34),
    "return R.layout_transform(x, lambda i, j: (i * j,))": ("expected sums, multiples, quotients and remainders", 47),
    "return R.layout_transform(x, lambda i, j: (i, j + c))": ("expected numbers or dimensions", 51),
    "return R.layout_transform(x, lambda i, j: (i // j,))": ("expected indices and numbers in an index map", 47),
    "return R.layout_transform(x, lambda i, j: (i,))": ("sends no two elements to one place", 12),
    "return R.call_tir(f, (x,), out_ty=R.Tensor((4,), 'float32'))": ("is a relax function", 12),
    "return R.call_tir(g, (x,), out_ty=R.Tensor((4,), 'float32'))": ("the name g is not defined here", 23),
    "y: R.Tensor((3,), 'float32') = x\n    return y": ("expected a value of type", 5),
    "y: R.Tenso((3,), 'float32') = x\n    return y": ("expected a type: R.Tensor", 8),
    "y: R.Tensor((q, 4), 'float32') = R.exp(z)\n    return y": ("the name z is not defined here", 44),
    "return x\n    y = x": ("nothing can follow a return", 5),
    "for i in range(3):\n        y = x\n    return x": ("relax functions have no `for`", 5),
    "while c:\n        y = x\n    return x": ("relax functions have no `while`", 5),
    "with R.dataflow() as d:\n        y = x\n    return x": ("expected `with R.dataflow\\(\\):`", 10),
    "with R.dataflow():\n        y = R.exp(x)\n        z = R.exp(y)\n        R.output(z)\n    return y": (
        "the name y is local to the dataflow region of line 5; add it to its R.output",
        12,
    ),
    "R.output(x)\n    return x": ("R.output belongs to the end", 5),
    "x.y = x\n    return x": ("expected a name to bind", 5),
    "a, b = x, x, x\n    return x": ("expected 3 names, got 2", 5),
    "a = b = x\n    return x": ("expected one target", 5),
    "x\n    return x": ("expected a call; a value that nothing uses", 5),
    "import os\n    return x": ("imports have no place in a function", 5),
    "assert c\n    return x": ("use R.assert_op", 5),
    "if c:\n        y = x\n    return y": ("the name y is not defined here: it is bound in a branch", 12),
    "if x:\n        y = x\n    else:\n        y = x\n    return y": ("condition", 8),
    "def g(y):\n        return y\n    return x": ("expected @R.function before a nested function", 5),
}


@pytest.mark.parametrize("body", RELAX_ERRORS)
def test_error_in_a_relax_function(body: str):
    message, column = RELAX_ERRORS[body]
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(HEAD + "    " + body + "\n", filename="wrong.py")
    error = caught.value
    assert error.column == column
    line = (HEAD + "    " + body).splitlines()[error.line - 1]
    assert str(error).splitlines()[0].startswith(f"wrong.py:{error.line}:{column}: error: ")
    assert str(error).splitlines()[1] == line
    assert str(error).splitlines()[2].startswith(" " * (column - 1) + "^")


PRIM_ERRORS = {
    "B[0] = T.max(k)": "T.max expected another number of operands, got 1",
    "B[-1] = k": "'tir.store' whose index 0 of %B reaches -1, expected at least 0\n",
    "B[0] = A[0, 0]": "expected 1 index, got 2",
    "B[0] = A[9]": "index 0",
    "B[0] = C[0]": "the name C is not defined here",
    "B[0] = T.expp(A[0])": "there is no function T.expp; did you mean exp",
    "B[0] = T.ptx_mma(A[0])": "is for GPUs, which are not a target",
    "B[0] = T.call_llvm_intrin('float32', 'llvm.x86.sse.rcp.ss', A[0])": "names an instruction of one machine",
    "B[0] = 'a'": "expected a scalar",
    "B[A[0]] = A[0]": "expected an integer as index",
    "A = 3\n    A[0] = 2": "expected a buffer to store to",
    "return T.max(1, 2)": "expected the type of what is returned, as -> T.int32",
    "for i in x:\n        pass": "expected range, T.serial",
    "for i in T.parallel(8):\n        continue": "rounds of a parallel or vectorized loop are not left",
    "for i, j in T.grid(8, 8):\n        break": "expected one loop to break, got several",
    "break": "break and continue belong into a loop",
    "B[0] = T.break_loop()": "T.break_loop is a statement",
    "C = T.alloc_buffer((-3,), 'float32')": "is negative",
    "for i, j in T.grid(8):\n        pass": "expected 1 loop variables, got 2",
    "for i in T.serial(0, 8, step=0):\n        pass": "expected a step that is not 0",
    "for i in range(8):\n        pass\n    else:\n        pass": "a loop has no else",
    "C = T.alloc_buffer((8,), 'float32', scope='wmma')": 'the scope "wmma" is not taken',
    "C = T.alloc_buffer((n,), 'float32')": "the name n is not defined here",
    "T.reads(A[0])": "T.reads belongs into a block",
    "with T.sblock('b'):\n        vi = T.axis.spatia(8, 0)\n        B[vi] = A[vi]": "expected T.axis.spatial",
    "with T.sblock('b'):\n        vi = T.axis.remap('S', [k])\n        B[vi] = A[vi]": "the variables of loops",
    "for i in range(0, 8, 2):\n        with T.sblock('b'):\n            T.where(i < 4)\n            B[i] = A[i]": (
        "uses the loop variable"
    ),
    "with T.launch_thread('threadIdx.x', 8) as t:\n        T.tvm_storage_sync('shared')": "GPUs exchange data",
    "x = T.int64()\n    B[x] = A[0]": "the name x is not defined here",
    "B[0:4] = A[0:8]": "expected a vector of 4 lanes, got 8",
    "B[0] = A[0:4]": "as many elements as the vector has lanes",
    "class C:\n        pass": "expected a store, a binding, a loop",
    "B[0] = T.Cast('f33', A[0])": "unsupported dtype 'f33'",
}


@pytest.mark.parametrize("body", PRIM_ERRORS)
def test_error_in_a_prim_func(body: str):
    with pytest.raises(TVMScriptError, match=PRIM_ERRORS[body]) as caught:
        parse(PRIM + "    " + body + "\n", filename="wrong.py")
    assert 3 <= caught.value.line <= 6


TEXT_ERRORS = {
    "@R.function(pur=True)\ndef f(): pass": "a decorator has no option pur; did you mean pure",
    "@T.inline\ndef g(x):\n    g(x)\n" + PRIM + "    g(A)": ":3:5: error: g calls itself, which nothing ends",
    "def g(x):\n    return g(x)\n" + PRIM + "    A[0] = g(k)": ":2:12: error: g calls itself, which nothing ends",
    "x = 1": "expected @I.ir_module, @R.function or @T.prim_func, found none",
    "def f(:": "this is no Python",
    "@R.function\ndef f(x: R.Tensor((n, 4))):\n    return x": "a dimension is declared by n = T.int64\\(\\) before",
    "@R.function\ndef f(*x):\n    return x": "expected parameters one by one, got \\*x",
    "@R.function\ndef f(x=1):\n    return x": "a parameter has no default value",
    "@R.function\ndef f(x: R.Tensor(('n + n * n',), 'f32')):\n    return x": "n",
    "@R.function(pure=3)\ndef f(x):\n    return x": "expected True or False",
    "@R.function\ndef f(x):\n    return x\n@R.function\ndef f(x):\n    return x": "has a function f already",
    "@R.function(pure=True)\ndef f(x: R.Tensor):\n    R.print(x)\n    return x": "writes to the standard output",
    "@R.macro\ndef f(x):\n    return x": "expected @I.ir_module, @R.function or @T.prim_func",
    "@I.ir_module\nclass M:\n    @I.pyfunc\n    def f(x):\n        pass": "functions would have to be executed",
    "@I.ir_module\nclass A:\n    pass\n@I.ir_module\nclass B:\n    pass": "expected one module in a text, got A and B",
    "@I.ir_module\nclass M:\n    def f(x):\n        return x": ":3:5: error: f has no decorator: write @R.function or",
    (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x):\n        return x\n"
        "    def g(x: R.Tensor((4,), 'float32')):\n        return x"
    ): ":6:5: error: g has no decorator: write @R.function or @T.prim_func above it",
    "@R.function\ndef f(x):\n    return f(x)": "is called before its end, so its result needs a type",
    "@T.prim_func\ndef f(a: T.handle('f33')):\n    T.evaluate(a)": "unsupported dtype 'f33'",
    "@T.prim_func\ndef f(a: int):\n    pass": "expected T.Buffer",
    "@T.prim_func\ndef f(a: T.int32) -> 'f33':\n    pass": "expected a dtype such as T.int32 as the result",
    "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32', buffer_type='auto')):\n    pass": "buffers that broadcast",
}


@pytest.mark.parametrize("text", TEXT_ERRORS)
def test_error_in_a_text(text: str):
    with pytest.raises(TVMScriptError, match=TEXT_ERRORS[text]):
        parse(dedent(text))


def test_place_counts_characters_and_lines_of_the_file():
    text = '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n    é = x\n    return R.add(é, ÿ)\n'
    with pytest.raises(TVMScriptError, match="the name ÿ") as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (4, 21)


def test_deep_nesting_is_an_error():
    text = f"@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    return {'-' * 5000}x\n"
    with pytest.raises(TVMScriptError, match=r"nested too deeply|too many|no Python"):
        parse(text)


SEVERAL = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def kernel(a: T.handle):
        A = T.match_buffer(a, (4,), "float32")
        A[0, 1] = T.float32(0)

    @R.function
    def first(x: R.Tensor((2, 3), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((2, 4), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            d = R.print(x)
            e = R.sum(x, axs=0)
            R.output(b)
        c = R.matmul(x, x)
        return x

    @R.function
    def head(x: R.Tensr((2, 3), "float32")):
        return x

    @R.function
    def uses(x: R.Tensor((2, 3), "float32")):
        z = head(x)
        return undefined

    @R.function(pure=True)
    def last(x: R.Tensor((2, 3), "float32"), c: R.Prim("bool")):
        if c:
            z = R.exq(x)
            R.print(x)
        else:
            z = R.sum(x, axis=2)

        @R.function(pure=True)
        def inner(y: R.Tensor) -> R.Tensor:
            R.print(y)
            return y
        w = z + z
        return undefined
"""


def test_all_independent_errors_are_reported():
    """Not: what uses `a`, `b`, `z` or `head`."""
    with pytest.raises(TVMScriptError) as caught:
        parse(SEVERAL, filename="several.py")
    errors = [caught.value, *caught.value.others]
    assert [error.line for error in errors] == [9, 12, 14, 16, 17, 19, 23, 34, 35, 37, 41, 44]
    text = str(caught.value)
    for message in (
        "several.py:9:9: error: expected 1 index, got 2",
        "12:80: error: expected a value of type !relax.tensor<[2, 4], f32>, got !relax.tensor<[2, 3], f32>",
        "several.py:14:17: error: 'relax.add' op dimensions 3 and 4 do not broadcast",
        "'relax.dataflow' op holds 'relax.print', which is impure",
        "R.sum has no argument axs; did you mean ",
        "several.py:35:13: error: 'relax.func' op @last is pure, but holds 'relax.print', which is impure",
        "'relax.closure' op is pure, but holds 'relax.print'",
        "'relax.matmul' op expected equal contracted dimensions, got 3 and 2",
        "expected a type: R.Tensor",
        "there is no operator R.exq; did you mean exp\n            z = R.exq(x)\n                ^^^^^",
        "the name undefined is not defined here",
    ):
        assert message in text


IN_DATAFLOW = """
@R.function
def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    with R.dataflow():
        y = {callee}(x)
        R.output(y)
    return y

@R.function
def g(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return f(x)
"""


@pytest.mark.parametrize("callee", ["f", "g"])
def test_recursion_in_a_dataflow_region_is_told_where_it_is(callee: str):
    with pytest.raises(TVMScriptError, match=f"calls @{callee} recursively") as caught:
        parse(IN_DATAFLOW.format(callee=callee))
    assert (caught.value.line, caught.value.column) == (5, 9)


def test_an_error_has_no_others_that_follow_from_it():
    """Names that a statement with an error binds are not values, also where branches hand them on."""
    branch = "    if c:\n        y = x\n    else:\n        y = R.exp(x)\n    return y\n"
    with pytest.raises(TVMScriptError) as caught:
        parse(f"{HEAD}    for i in range(3):\n        x = R.exp(x)\n{branch}")
    assert str(caught.value).count("error: ") == 1
    assert "relax functions have no `for`" in str(caught.value)


def test_a_missing_return():
    head = HEAD.replace(":\n", ' -> R.Tensor(("n", 4), "float32"):\n').replace("@R.function -> ", "@R.function")
    with pytest.raises(TVMScriptError, match="f says what it returns, and has no return at its end"):
        parse(f"{head}    y = R.exp(x)\n")
