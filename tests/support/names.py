"""Names that users may give to functions, kernels, values and constants, and a program of functions and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr

from vm_dialect import VirtualMachine

OURS = [
    "places",
    "shutdown",
    "objects",
    "arenas",
    "text.0",
    "literal.0",
    "module.objects",
    "vm.f",
    "vmrt_init",
    "module.init",
    "_vm_init",
    "_vm_info",
    "closure1.f",
    "f.captured1",
    "f.inner",
    "hex.61",
    "hex.vm.61",
    "relax.raise",
    "relax_parallel",
    "relax.routine.x",
    "__tvm_ffi_f",
]
LIBRARY = [
    "main",
    "malloc",
    "memcpy",
    "free",
    "strlen",
    "exp",
    "expf",
    "fmaf",
    "_GLOBAL_OFFSET_TABLE_",
    "__dso_handle",
]
LLVM = ["llvm.memcpy", "llvm.exp.f32", "llvm.foo", "llvm.used", "x86", "define", "%s", "%d"]
ODD = [" ", "a b", 'a"b', "a\\b", "a'b", "\n", "é日本", "\1x", "\x7f", "a$b", "-", "0", "#", "{}", "self", "x" * 5000]
RESERVED = ["a\0b", "a\0", "\0", "a@b", "@f", "_library_ctx", "_library_bin", "_metadata_f", "_doc_f"]
"""What functions of a library cannot be called."""

X = np.arange(4, dtype=np.float32)


NAMES: st.SearchStrategy[str] = st.one_of(
    st.text(max_size=12).filter(lambda text: text != ""),
    st.builds(
        str.__add__, st.sampled_from(["vm.", "closure1.", "hex.", "__tvm_ffi_", "llvm.", "\1"]), st.text("ab.\0")
    ),
    st.sampled_from([*OURS, *LIBRARY, *LLVM, *ODD, *RESERVED]),
)
"""Any, often ones that are in use."""


def is_text(name: str) -> bool:
    """Whether it can be encoded, and is not that of the function that calls the others."""
    return not any("\ud800" <= character <= "\udfff" for character in name) and name != "the entry"


def quoted(name: str) -> str:
    """As texts of modules have it."""
    return str(StringAttr(name))


def program(functions: Sequence[str], kernels: Sequence[str]) -> str:
    """Functions that double their argument through a closure, and `entry`, which calls all of the kernels through
    others; each adds 1 in place.
    """
    parts = [
        f"""relax.func @{quoted(name)}[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
          %g = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
            %z = relax.add %x, %y
            relax.return %z
          }}
          %0 = relax.call_closure %g(%x)
          relax.return %0
        }}"""
        for name in functions
    ]
    for name in kernels:
        parts.append(f"""tir.prim_func private @{quoted(name)}[%n](%X: !tir.buffer<[n], f32>) {{
          tir.for (%i) in (%n) {{
            tir.block "add" (%v = spatial %i in %n) {{
              %one = arith.constant 1.0 : f32
              %x = tir.load %X[%v]
              %y = arith.addf %x, %one : f32
              tir.store %y, %X[%v]
            }}
          }}
        }}""")
    for index, name in enumerate(kernels):
        parts.append(f"""tir.prim_func private @{quoted(f"{name} {index}")}[%n](%X: !tir.buffer<[n], f32>,
            %Y: !tir.buffer<[n], f32>) {{
          tir.for (%i) in (%n) {{
            tir.block "copy" (%v = spatial %i in %n) {{
              %x = tir.load %X[%v]
              tir.store %x, %Y[%v]
            }}
          }}
          tir.call @{quoted(name)}[%n](%Y)
        }}""")
    calls = [
        f"%{index + 1} = relax.call_tir @{quoted(f'{name} {index}')}(%{index}) : !relax.tensor<[n], f32>"
        for index, name in enumerate(kernels)
    ]
    parts.append(f"""relax.func @"the entry"[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
      %0 = relax.add %x, %x
      {" ".join(calls)}
      relax.return %{len(kernels)}
    }}""")
    return "\n".join(parts)


def open_library(path: Path) -> Any:
    """A shared library, by tvm-ffi."""
    load: Any = getattr(tvm_ffi, "load_module")  # noqa: B009
    return load(str(path))


def check(machine: VirtualMachine, functions: Sequence[str], kernels: Sequence[str]) -> None:
    """The results of all functions of a `program`."""
    for name in functions:
        np.testing.assert_array_equal(np.from_dlpack(machine[name](X)), 2 * X)
    np.testing.assert_array_equal(np.from_dlpack(machine["the entry"](X)), 2 * X + len(kernels))
