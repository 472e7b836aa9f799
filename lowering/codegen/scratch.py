"""The memory that kernels use while they run, which is kept between calls; one object of LLVM text for a process."""

from __future__ import annotations

from importlib.resources import files

from lowering.codegen.support import load_support

SCRATCH_SYMBOLS = frozenset(("relax_scratch_take", "relax_scratch_give"))
"""`ptr relax_scratch_take(i64 alignment, i64 bytes)` gives a block, or null where there is no memory;
`void relax_scratch_give(ptr)` takes it back."""


def scratch_text() -> str:
    """The LLVM text of the functions."""
    return files("lowering.codegen").joinpath("scratch.ll").read_text()


def scratch_symbol(name: str) -> int | None:
    """The address of one of `SCRATCH_SYMBOLS`."""
    return load_support(scratch_text()).symbols.get(name)
