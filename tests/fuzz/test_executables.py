"""Changed executables do no harm (`tests/fuzz/executables.py`); those with machine code are refused."""

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from tests.fuzz.executables import check, mutants, program
from vm_dialect import Executable, VirtualMachine
from vm_dialect.errors import UntrustedError

NATIVE = """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %0 = relax.add %x, %x
  relax.return %0
}
"""


def test_a_few_programs():
    check(150, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_programs(seed: int):
    check(5000, seed)


def test_most_changes_reach_the_program():
    """Else the fuzzer would test the reader of the file only."""
    accepted = 0
    for data in mutants(program().to_bytes(), 100, 0):
        try:
            VirtualMachine(Executable.from_bytes(data))
        except ValueError:
            continue
        accepted += 1
    assert accepted > 10


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_changed_machine_code_is_refused(mode: str):
    executable = build(parse_module(NATIVE), mode=mode)
    for data in mutants(executable.to_bytes(), 300, 3):
        try:
            loaded = Executable.from_bytes(data)
        except ValueError:
            continue
        assert not loaded.native  # the changes have hidden it
        with pytest.raises((ValueError, RuntimeError)):
            VirtualMachine(loaded)["main"](np.ones((1, 2), np.float32))


def test_machine_code_without_changes_but_without_a_seal_is_refused():
    data = build(parse_module(NATIVE)).to_bytes()
    place = 24 + 7 * 24 + 4
    with pytest.raises(UntrustedError):
        Executable.from_bytes(data[:place] + bytes(32) + data[place + 32 :])
