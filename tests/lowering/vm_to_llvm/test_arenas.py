"""Where the memory for the tensors of one call lies."""

from __future__ import annotations

import numpy as np


def test_where_arenas_begin(native):
    """From 64 KiB on at the start of a page, as results do, so that none is written some lines after another."""
    text = """
    vm.func @begin(%o : !vm.object) -> !vm.tensor<1, i64> {
      %size = vm.check_int %o
      %one = vm.const 1
      %zero = vm.const 0
      %s = vm.alloc_storage %size
      %t = vm.alloc_tensor %s at %zero [%size] i8
      %y = vm.new_tensor [%one] i64
      vm.call_kernel @place(%t, %y)
      vm.ret %y
    }"""
    begin = native(text)["begin"]
    for size in (0, 1, 65535, 65536, 70_000, 64, 5_000_000, 65536):  # a smaller one reuses what is there
        (address,) = np.from_dlpack(begin(size)).tolist()
        assert address % (4096 if size >= 65536 else 64) == 0
