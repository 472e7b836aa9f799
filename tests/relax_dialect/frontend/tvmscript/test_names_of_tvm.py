"""Every function of `R` in TVM 0.27 is known, with its parameters by their names and in their order.

`operators_of_tvm.txt` has a line for each: its name, its parameters, after `*` those after any number of arguments.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse

ROWS = (Path(__file__).parent / "operators_of_tvm.txt").read_text(encoding="utf-8").splitlines()


def _calls(row: str) -> list[str]:
    """Calls that are wrong only in giving one parameter twice, each by position and by its name."""
    name, *parameters = row.split()
    positional = parameters[: parameters.index("*")] if "*" in parameters else parameters
    given = [f"{'x, ' * (place + 1)}{each}=x" for place, each in enumerate(positional)]
    return [f"R.{name}({each})" for each in given]


def test_positions_of_parameters():
    calls = [call for row in ROWS for call in _calls(row)]
    text = "@R.function\ndef f(x: R.Tensor):\n" + "".join(f"    {call}\n" for call in calls)
    with pytest.raises(TVMScriptError) as caught:
        parse(text)
    found = {error.line: error.message for error in (caught.value, *caught.value.others)}
    wrong = {call: found.get(line) for line, call in enumerate(calls, 3) if "twice" not in found.get(line, "")}
    assert not wrong


def test_names_of_parameters():
    calls = [
        f"R.{name}({', '.join(f'{each}=x' for each in rest if each != '*')})" for name, *rest in map(str.split, ROWS)
    ]
    text = "@R.function\ndef f(x: R.Tensor):\n" + "".join(f"    {call}\n" for call in calls)
    with pytest.raises(TVMScriptError) as caught:
        parse(text)
    wrong = [each.message for each in (caught.value, *caught.value.others) if "has no" in each.message]
    assert not [message for message in wrong if "argument" in message or "operator" in message]


NAMES = (Path(__file__).parent / "names_of_tvm.txt").read_text(encoding="utf-8").split()
"""What TVM 0.27 has in `R`: what its script namespace and the namespaces in it export, and all operators."""

TYPES = {"Any", "Callable", "DTensor", "Object", "Prim", "Shape", "Tensor", "Tuple", "dist.DTensor"}
BUILDERS = ("If", "Then", "Else", "SeqExpr", "arg", "emit_var_binding", "func_name", "func_ret_ty", "func_ret_value")
OTHER_PLACES = {
    "dataflow": "R.dataflow begins a region",
    "device_mesh": "a mesh stands in I.module_global_infos",
    "dist.device_mesh": "a mesh stands in I.module_global_infos",
    "func_attr": "",
    "function": "R.function stands above a function",
    "macro": "R.macro stands above a function",
    "output": "R.output belongs to the end of",
    "rewriter": "R.rewriter describes a pass, not a program",
    "nn.attention_var_len": "a kernel for GPUs",
}
"""What is read elsewhere, or not at all: the reason that is given for a call."""


def test_every_name():
    """Each is read, as a call or a type, or the error says why it is none of a text.

    A call without arguments is wrong in that only.
    """
    called = [name for name in NAMES if name not in TYPES and name != "func_attr"]
    text = "@R.function(pure=False)\ndef f(x: R.Tensor):\n" + "".join(f"    R.{name}()\n" for name in called)
    with pytest.raises(TVMScriptError) as caught:
        parse(text + "    return x\n")
    found = {error.line: error.message for error in (caught.value, *caught.value.others)}
    messages = {name: found.get(line, "") for line, name in enumerate(called, 3)}
    assert not [name for name in called if "there is no operator" in messages[name]]
    assert not [name for name in called if "NoneType" in messages[name]]
    reasons = OTHER_PLACES | dict.fromkeys(BUILDERS, "it builds programs from Python")
    assert not [name for name in called if reasons.get(name, "") not in messages[name]]
    for name in TYPES:
        example = {"Prim": "R.Prim('int32')", "DTensor": "R.DTensor((4,))", "dist.DTensor": "R.dist.DTensor((4,))"}
        parse(f"@R.function\ndef f(x: {example.get(name, f'R.{name}')}):\n    return x\n")
    assert len(NAMES) == 289
