"""What stands for TVM's passes exists."""

import re

import pytest
from xdsl.transforms import get_all_passes

from lowering.registry import PASSES
from lowering.tvm_passes import TVM


@pytest.mark.parametrize("name", TVM)
def test_an_entry_names_passes_that_there_are_or_gives_a_reason(name: str):
    named = [each for each in re.findall(r"`([^`]+)`", TVM[name]) if re.fullmatch(r"[a-z]+(-[a-z]+)*", each)]
    known = [each for each in named if each in PASSES or each in get_all_passes()]
    assert TVM[name].startswith("- ") or (known and known[0] == named[0])


def test_entries_are_in_order():
    assert list(TVM) == sorted(TVM)
