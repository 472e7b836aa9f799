"""Every function of `R` in TVM 0.27 is known, with its parameters by their names and in their order.

`operators_of_tvm.txt` has a line for each: its name, its parameters, behind `*` those after any number of arguments.
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
