"""Relax functions: heads, bindings, regions, branches, nested functions, as text and as the program they mean."""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.interpreter import run


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def test_module_with_two_functions():
    module = module_of("""
        from tvm.script import ir as I, relax as R

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
                cls = Module
                with R.dataflow():
                    lv = R.matmul(x, w, out_dtype=None)
                    gv: R.Tensor(("n", 2), dtype="float32") = cls.activate(lv)
                    R.output(gv)
                return gv

            @R.function(private=True)
            def activate(x: R.Tensor(("k", 2), "float32")) -> R.Tensor(("k", 2), "float32"):
                return R.nn.relu(x - R.const(1.0, "float32"))
        """)
    x, w = np.random.default_rng(0).random((3, 4), np.float32), np.ones((4, 2), np.float32)
    np.testing.assert_allclose(run(module, "main", [x, w]), np.maximum(x @ w - 1, 0), rtol=1e-6)


def test_branches_yield_what_is_used_after_them():
    module = module_of("""
        @R.function
        def f(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
            if c:
                a = R.add(x, x)
                b = R.multiply(a, x)
            else:
                a = x
                b = R.negative(x)
            return R.add(a, b)
        """)
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(run(module, "f", [x, np.array(True)]), 2 * x + 2 * x * x)
    np.testing.assert_array_equal(run(module, "f", [x, np.array(False)]), 0 * x)


def test_a_name_of_one_branch_is_refused_after_it():
    with pytest.raises(TVMScriptError, match="b is not defined here: it is bound in a branch of the if on line 4 only"):
        module_of("""
            @R.function
            def f(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
                if c:
                    b = R.exp(x)
                else:
                    a = R.exp(x)
                return b
            """)
