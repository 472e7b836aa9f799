"""Kernels for AArch64 in an emulator."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lowering.compiler.kernels import Kernels
from lowering.llvm.compiler import CompileOptions, compile_object
from tests.lowering.llvm.aarch64.emulator import Emulator
from tir_dialect.target import Target

TARGET = Target.parse("neoverse-n1")


def emulator_of(kernels: Kernels) -> Emulator:
    """A processor with the code of some kernels, and of what they call, in memory."""
    return Emulator([*kernels.objects.values(), _support()])


@cache
def _support() -> bytes:
    text = Path(__file__).with_name("support.ll").read_text()
    return compile_object(text, TARGET, CompileOptions(as_written=True))
