"""The check of a shared library for AArch64, on processors whose features are made up."""

from collections.abc import Collection
from functools import cache

import numpy as np
import pytest

from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.features import FEATURES, code_features
from lowering.vm_to_llvm.library import check_text
from tests.lowering.llvm.aarch64.emulator import Emulator
from tir_dialect.target import Target

BITS = {
    **dict(atomics=8, fphp=9, asimdhp=10, asimdrdm=12, jscvt=13, fcma=14, lrcpc=15, asimddp=20, sve=22, asimdfhm=23),
    **dict(uscat=25, ilrcpc=26, flagm=27),
    **dict(sve2=65, flagm2=71, frint=72, i8mm=77, bf16=78, cssc=98, mops=107),
}
"""Where Linux has the names of /proc/cpuinfo in AT_HWCAP, and 64 above in AT_HWCAP2."""

LLVM_NAMES = {
    "lse": "atomics",
    "fullfp16": "asimdhp",
    "rdm": "asimdrdm",
    "jsconv": "jscvt",
    "complxnum": "fcma",
    "rcpc": "lrcpc",
    "rcpc-immo": "ilrcpc",
    "dotprod": "asimddp",
    "fp16fml": "asimdfhm",
    "lse2": "uscat",
    "altnzcv": "flagm2",
    "fptoint": "frint",
}
"""What LLVM calls otherwise than Linux."""

A72 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
N1 = f"{A72} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs"
N2 = f"{N1} jscvt fcma sve asimdfhm uscat ilrcpc flagm sve2 flagm2 frint i8mm bf16"
PROCESSORS = {"cortex-a72": A72, "neoverse-n1": N1, "neoverse-n2": N2}
"""The features that Linux says processors have."""

HARNESS = """
@caps = internal global [2 x i64] zeroinitializer
@told = internal global ptr null

define i64 @getauxval(i64 %kind) {
  %is.second = icmp eq i64 %kind, 26
  %index = zext i1 %is.second to i64
  %at = getelementptr [2 x i64], ptr @caps, i64 0, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define ptr @strcat(ptr %to, ptr %from) {
entry:
  br label %find
find:
  %end = phi ptr [ %to, %entry ], [ %after, %find ]
  %byte = load i8, ptr %end
  %is.end = icmp eq i8 %byte, 0
  %after = getelementptr i8, ptr %end, i64 1
  br i1 %is.end, label %copy, label %find
copy:
  %i = phi i64 [ 0, %find ], [ %next, %copy ]
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %end, i64 %i
  %copied = load i8, ptr %source
  store i8 %copied, ptr %target
  %next = add i64 %i, 1
  %is.last = icmp eq i8 %copied, 0
  br i1 %is.last, label %done, label %copy
done:
  ret ptr %to
}

define void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %text) {
  %to = load ptr, ptr @told
  %copied = call ptr @strcat(ptr %to, ptr %text)
  ret void
}

define i32 @real(ptr %self, ptr %args, i32 %count, ptr %ret) {
  ret i32 7
}

declare void @relax_choose()
declare i32 @entry(ptr, ptr, i32, ptr)

define i32 @run(ptr %caps, ptr %status, ptr %text) {
  %first = load i64, ptr %caps
  %second.at = getelementptr i64, ptr %caps, i64 1
  %second = load i64, ptr %second.at
  store i64 %first, ptr @caps
  store i64 %second, ptr getelementptr ([2 x i64], ptr @caps, i64 0, i64 1)
  store ptr %text, ptr @told
  call void @relax_choose()
  %given = call i32 @entry(ptr null, ptr null, i32 0, ptr null)
  store i32 %given, ptr %status
  ret i32 0
}
"""


@cache
def objects(required: frozenset[str]) -> list[bytes]:
    """The entry of a library that needs some features, and what it calls."""
    check = check_text("aarch64", [("any", required)], {"entry": ["real"]})
    # The linker calls it, which is not here.
    check = check.replace("define internal void @relax_choose", "define void @relax_choose")
    baseline, options = Target.parse("aarch64"), CompileOptions(as_written=True)
    return [compile_object(text, baseline, options) for text in (check, HARNESS)]


def entered(required: Collection[str], features: Collection[str]) -> tuple[int, str]:
    """What the entry of a library that needs some features gives, and the error, on a processor that has others."""
    emulator = Emulator(objects(frozenset(required)))
    value = sum(1 << BITS[name] for name in features if name in BITS)
    caps = np.array([value & (1 << 64) - 1, value >> 64], np.uint64)
    arrays = [caps, np.zeros(1, np.int32), np.zeros(1024, np.uint8)]
    _, status, text = emulator.call("run", [], arrays, at_end=True)
    return int.from_bytes(status, "little", signed=True), text.partition(b"\0")[0].decode()


def linux_name(feature: str) -> str:
    return LLVM_NAMES.get(feature, feature)


@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_library_runs_where_its_features_are(target: str, processor: str):
    required = code_features(Target.parse(target))
    assert required is not None
    there = PROCESSORS[processor].split()
    missing = [name for name in FEATURES["aarch64"] if name in required and linux_name(name) not in there]
    assert bool(missing) == (list(PROCESSORS).index(processor) < list(PROCESSORS).index(target))
    status, text = entered(required, there)
    if missing:
        advice = ": build it for this processor, or with a target such as aarch64"
        assert text == f"the library is compiled for the processor any, and this one lacks {', '.join(missing)}{advice}"
        assert status == -1
    else:
        assert (status, text) == (7, "")


def test_each_feature_has_its_own_bit():
    """A processor with all features but one, for each."""
    for name in FEATURES["aarch64"]:
        status, text = entered(FEATURES["aarch64"], [each for each in BITS if each != linux_name(name)])
        assert status == -1
        assert f" lacks {name}: build it" in text
