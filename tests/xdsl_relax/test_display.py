"""What is seen of values."""

from __future__ import annotations

import re
from html import unescape

import ml_dtypes
import numpy as np
import pytest

import xdsl_relax as xr
from vm_dialect import VirtualMachine
from vm_dialect.tensors import from_numpy
from xdsl_relax.display import as_html, as_terminal, shown

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[2 * n], f32> {
  // not kept
  %0 = relax.flatten %x
  relax.return %0
}
"""
X = np.float32([[1, 2], [3, 4]])


@pytest.fixture(scope="module")
def machine() -> VirtualMachine:
    return VirtualMachine(xr.build(xr.parse(TEXT), mode="bytecode"))


def test_short_texts(machine: VirtualMachine):
    assert repr(machine["main"]) == "<main(x: f32[n, 2]) -> f32[2 * n]>"
    assert repr(machine) == "<VirtualMachine main(x: f32[n, 2]) -> f32[2 * n]; bytecode, 0 bytes of machine code>"
    assert repr(machine.executable) == repr(machine).replace("VirtualMachine", "Executable")
    native = xr.compile(TEXT)
    assert len(repr(native.executable)) < 120
    assert repr(native.machine["main"]) == repr(machine["main"])
    assert all(len(repr(each)) < 5000 for each in native.executable.native)
    assert re.fullmatch(r"<Profile \d+\.\d us, \d+ calls of \d+ instructions>", repr(machine.profile("main", X)))


def test_results_read_like_arrays(machine: VirtualMachine):
    y = machine["main"](X)
    assert repr(y) == "Tensor([1., 2., 3., 4.], f32[4])"
    assert np.asarray(y).shape == (4,)
    assert np.shares_memory(np.asarray(y), y.numpy())
    assert not np.shares_memory(np.array(y), y.numpy())
    np.testing.assert_array_equal(y + 1, [2, 3, 4, 5])
    np.testing.assert_array_equal(2 * y, np.multiply(y, 2))
    np.testing.assert_array_equal(np.exp(y), np.exp(X.ravel()))
    np.testing.assert_array_equal(y == [1, 2, 0, 4], [True, True, False, True])
    np.testing.assert_array_equal(np.concatenate([y, y]), [1, 2, 3, 4] * 2)
    assert (len(y), y[1], y[1:3].tolist(), [*y]) == (4, 2, [2, 3], [1, 2, 3, 4])
    assert y.tolist() == [1, 2, 3, 4]
    assert {y: 1}[y] == 1
    assert (y.sum(), y.T.shape, y.astype(int).dtype) == (10, (4,), np.int64)
    assert np.shares_memory(y.reshape(2, 2), y.numpy())
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'cuda'$"):
        y.cuda()
    one = machine["main"](X[:0].copy())
    assert repr(one) == "Tensor([], f32[0])"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(y)
    out = np.zeros(4, np.float32)
    np.add(y, 1, out=out)
    np.testing.assert_array_equal(out, [2, 3, 4, 5])
    np.add(y, 1, out=y)
    np.testing.assert_array_equal(y, out)


def test_numbers_of_one_element():
    y = xr.compile("relax.func @main(%x: !relax.tensor<[], i64>) { relax.return %x }").machine["main"](np.array(7))
    assert (int(y), float(y), bool(y), y.item()) == (7, 7.0, True, 7)


def test_large_and_rare_elements():
    identity = xr.compile("relax.func @main(%x: !relax.object) { relax.return %x }").machine["main"]
    large = identity(from_numpy(np.zeros((100, 100), ml_dtypes.bfloat16)))
    assert "..." in repr(large)
    assert repr(large).endswith("bf16[100, 100])")
    assert (large + large).dtype == ml_dtypes.bfloat16


def test_html_and_terminal_have_the_whole_text():
    module = xr.parse(TEXT)
    html, terminal = as_html(str(module)), as_terminal(str(module))
    assert unescape(re.sub(r"<[^<>]*>", "", html)) == str(module)
    assert re.sub(r"\x1b\[\d+m", "", terminal) == str(module)
    for kind, colour in (("relax.flatten", "#8030a0"), ("@main", "#00707a"), ("%x", "#1a5fb4"), ("f32", "#2a7d2e")):
        assert f'<span style="color:{colour}">{kind}</span>' in html


def test_scripts_in_html_are_text():
    html = as_html('"</pre><script>alert(1)</script>" // <b>')
    assert "<script>" not in html
    assert "<b>" not in html


def test_everything_is_shown(machine: VirtualMachine, capsys: pytest.CaptureFixture[str]):
    profile = machine.profile("main", X)
    assert shown(profile).html.count("<tr>") == 1 + len(profile.rows)
    for value, text in (
        (xr.parse(TEXT), "relax.flatten %x"),
        (machine.executable, "@main(x):"),
        (profile, profile.as_text()),
        (xr.compile(TEXT), "Relax VM executable statistics"),
        ((1, 2), "(1, 2)"),
    ):
        xr.show(value)
        assert text in capsys.readouterr().out


def test_builders_and_layers_say_what_is_in_them():
    builder = xr.BlockBuilder()
    assert repr(builder) == "<BlockBuilder of no functions yet>"
    with builder.function("main", {"x": xr.tensor(("n", 4))}) as (x,):
        builder.emit_func_output(xr.op.exp(x))
    assert repr(builder) == "<BlockBuilder of @main>"
    layers = xr.nn.ModuleList([xr.nn.Linear(4, 2, bias=False)])
    assert repr(layers) == "ModuleList(\n  0: Linear(\n    weight: Parameter([2, 4])\n  )\n)"
