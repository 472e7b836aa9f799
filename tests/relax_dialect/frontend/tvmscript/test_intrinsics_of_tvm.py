"""Every intrinsic of TVM's TIR, of 0.16 to 0.27: each is read, or refused as one that CPUs do not have.

`intrinsics_of_tvm.txt` has a line for each: its name, and a call of it, or `gpu` for one of GPUs
and other accelerators.
"""

from pathlib import Path

import pytest

from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import TVMScriptError, parse

ROWS = dict(line.split(" ", 1) for line in (Path(__file__).parent / "intrinsics_of_tvm.txt").read_text().splitlines())
HEAD = "@T.prim_func\ndef f(h: T.handle, A: T.Buffer((8,), 'float32'), K: T.Buffer((8,), 'int32')):\n"
VALUES = "    x: T.float32 = A[0]\n    k: T.int32 = K[0]\n    T.evaluate(T.isnullptr(h))\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, call in ROWS.items() if call != "gpu"])
def test_is_read(name: str):
    module = parse(f"{HEAD}{VALUES}    T.evaluate({ROWS[name]})")
    module.verify()
    assert str(parse_module(str(module))) == str(module)


@pytest.mark.parametrize("name", [name for name, call in ROWS.items() if call == "gpu"])
def test_is_for_other_machines(name: str):
    with pytest.raises(TVMScriptError, match=r"is for GPUs|names an instruction of one machine") as caught:
        parse(f"{HEAD}{VALUES}    T.evaluate(T.{name}(A.data, 1, 2))")
    assert f"T.{name} " in caught.value.message
