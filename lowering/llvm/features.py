"""The instruction set extensions that compiled code may use beyond the baseline of its architecture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lowering.llvm.binding import llvm
from lowering.llvm.compiler import target_machine
from tir_dialect.target import Target


@dataclass(frozen=True)
class FeatureBits:
    """How a processor reports an extension: the bits of a register that are all set.

    The registers are those that `lowering/runtime/library/<arch>.ll` reads.
    """

    register: int
    bits: int
    state: int = 0
    """Bits of XCR0: the registers that the operating system has to save, x86 only."""


_CPUID_1_ECX, _CPUID_7_EBX, _CPUID_7_ECX, _CPUID_7_EDX, _CPUID_7_1_EAX, _CPUID_7_1_EDX, _CPUID_EXTENDED, _AVX10 = range(
    8
)
_YMM, _ZMM, _TILES, _APX = 0x6, 0xE6, 0x60000, 0x80000
_HWCAP, _HWCAP2, _HWCAP2_HIGH = range(3)


def _bits(register: int, state: int = 0, /, **features: int) -> dict[str, FeatureBits]:
    return {name: FeatureBits(register, 1 << bit, state) for name, bit in features.items()}


FEATURES: dict[str, dict[str, FeatureBits]] = {
    "x86_64": {
        **_bits(_CPUID_1_ECX, sse3=0, ssse3=9, movbe=22, popcnt=23),
        **_bits(_CPUID_1_ECX, **{"sse4.1": 19, "sse4.2": 20}),
        **_bits(_CPUID_1_ECX, _YMM, fma=12, avx=28, f16c=29),
        **_bits(_CPUID_7_EBX, bmi=3, bmi2=8),
        **_bits(_CPUID_7_EBX, _YMM, avx2=5),
        **_bits(_CPUID_7_EBX, _ZMM, avx512f=16, avx512dq=17, avx512ifma=21, avx512cd=28, avx512bw=30, avx512vl=31),
        **_bits(_CPUID_7_ECX, gfni=8),
        **_bits(_CPUID_7_ECX, _ZMM, avx512vbmi=1, avx512vbmi2=6, avx512vnni=11, avx512bitalg=12, avx512vpopcntdq=14),
        **_bits(_CPUID_7_EDX, _ZMM, avx512fp16=23),
        **_bits(_CPUID_7_EDX, _TILES, **{"amx-bf16": 22, "amx-tile": 24, "amx-int8": 25}),
        **_bits(_CPUID_7_1_EAX, raoint=3, cmpccxadd=7),
        **_bits(_CPUID_7_1_EAX, _YMM, avxvnni=4, avxifma=23),
        **_bits(_CPUID_7_1_EAX, _ZMM, avx512bf16=5),
        **_bits(_CPUID_7_1_EAX, _TILES, **{"amx-fp16": 21}),
        **_bits(_CPUID_7_1_EDX, _YMM, avxvnniint8=4, avxneconvert=5, avxvnniint16=10),
        **_bits(_CPUID_7_1_EDX, _APX, egpr=21, ndd=21, ccmp=21, nf=21, zu=21, ppx=21, push2pop2=21, cf=21),
        **_bits(_CPUID_EXTENDED, lzcnt=5, sse4a=6, tbm=21),
        **_bits(_CPUID_EXTENDED, _YMM, xop=11, fma4=16),
        **_bits(_AVX10, _ZMM, **{"avx10.1": 0, "avx10.2": 1}),
    },
    "aarch64": {
        **_bits(_HWCAP, lse=8, fullfp16=10, rdm=12, jsconv=13, complxnum=14, rcpc=15, dotprod=20, sve=22, fp16fml=23),
        **_bits(_HWCAP, lse2=25, flagm=27, **{"rcpc-immo": 26}),
        **_bits(_HWCAP2, sve2=1, altnzcv=7, fptoint=8, i8mm=13, bf16=14),
        **_bits(_HWCAP2_HIGH, cssc=2, mops=11),
    },
}
"""By architecture and LLVM's name: what LLVM selects without being told, and what kernels ask for.

Extensions for cryptography, caches, transactions and virtual machines are in no code of ours.
"""


def code_features(target: Target, besides: Collection[str] = ()) -> frozenset[str] | None:
    """Which of `FEATURES`, besides some, code for the target may use; `None` for other architectures.

    It takes about 2 ms for each that `target.features` does not name.

    Raises `CodegenError` if LLVM does not know the processor or a feature.
    """
    known = FEATURES.get(target.arch)
    if known is None:
        return None
    said = {feature[1:]: feature[0] == "+" for feature in target.features.split(",") if feature}
    asked = [name for name in known if name not in besides]
    unsaid = tuple(name for name in asked if name not in said)
    return frozenset(name for name in asked if said.get(name, False)) | _implied(target, unsaid)


@lru_cache(maxsize=16)
def _implied(target: Target, names: Sequence[str]) -> frozenset[str]:
    """Which of some features the processor has, or others imply: LLVM's tables, asked through its inliner.

    A function is inlined only into one that has all of its features. So one for this target does not go into the same
    without a feature, if the target has it.
    """
    machine = target_machine(target, 1)
    if not names:
        return frozenset()
    attributes = f'"target-cpu"="{target.cpu}" "target-features"="{target.features}'
    separator = "," if target.features else ""
    callers = (
        f'define void @without{i}() {attributes}{separator}-{name}" {{\n  call void @all()\n  ret void\n}}'
        for i, name in enumerate(names)
    )
    callee = f'define internal void @all() {attributes}" {{\n  store volatile i1 false, ptr @sink\n  ret void\n}}'
    module = llvm().parse_assembly("\n".join(["@sink = global i1 false", callee, *callers]), llvm().create_context())
    module.triple = target.triple
    builder = llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options(1))
    builder.getModulePassManager().run(module, builder)
    calling = {function.name for function in module.functions if "@all()" in str(function)}
    return frozenset(name for i, name in enumerate(names) if f"without{i}" in calling)
