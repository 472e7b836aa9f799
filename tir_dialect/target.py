"""The target description that schedules, lowerings and code generation share.
Tuning searches over overrides of the decisions of `schedule-cpu` for one kernel.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

MAX_TILE_STEPS = 64
"""The code of each step is written out."""
ACTIVATION_BITS = (0, 8, 16, 24, 32)
"""What `activation_bits` may be."""


@dataclass(frozen=True)
class ScheduleOptions:
    """Parameters that override the decisions of the rules; 0 leaves a parameter to the rules.

    Raises `ValueError` for values that are no integers or out of range.
    """

    tile_rows: int = 0
    """Rows of the register tile of a matrix product."""

    tile_vectors: int = 0
    """Vectors per row of that tile."""

    tile_steps: int = 0
    """Unrolled steps of the reduction loop of that tile."""

    unpacked_rows: int = 0
    """The most rows of a product that reads its operands in place; operands of larger ones are packed into panels."""

    map_vectors: int = 0
    """Vectors computed by an iteration of the innermost loop of an elementwise kernel."""

    activation_bits: int = 0
    """Bits to which the rows of a product with block-quantised weights are rounded: 8, 16 or 24, or 32 for none."""

    task_percent: int = 100
    """The minimum work per thread, in percent of what the rules choose."""

    def __post_init__(self) -> None:
        for option in fields(self):
            check_integer(option.name, getattr(self, option.name), 0 if option.default == 0 else 1)
        if self.activation_bits not in ACTIVATION_BITS:
            known = ", ".join(map(str, ACTIVATION_BITS))
            raise ValueError(f'target setting "activation_bits" expects one of {known}, got {self.activation_bits}')
        if self.tile_steps > MAX_TILE_STEPS:
            raise ValueError(
                f'target setting "tile_steps" expects an integer of at most {MAX_TILE_STEPS}, got {self.tile_steps}'
            )


def check_integer(name: str, value: object, least: int) -> None:
    """ValueError for a setting that is no integer, or less than `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f'target setting "{name}" expects an integer of at least {least}, got {value!r}')


KIB = 1024

LINE_BYTES = 64
"""A line of the caches; Apple's are twice as long."""

EXTENSIONS = ("fma", "avx512dq", "avxvnni", "avx512vnni", "avx512bf16", "amx-int8", "amx-bf16", "i8mm", "neon")
"""The instruction set extensions that generated code depends on, by LLVM's names."""

IMPLIED_EXTENSIONS: dict[str, tuple[str, ...]] = {
    "alderlake": ("avxvnni",),
    "x86-64-v4": ("avx512dq",),
    "skylake-avx512": ("avx512dq",),
    "cascadelake": ("avx512dq", "avx512vnni"),
    "icelake-server": ("avx512dq", "avx512vnni"),
    "sapphirerapids": ("avx512dq", "avxvnni", "avx512vnni", "avx512bf16", "amx-int8", "amx-bf16"),
    "graniterapids": ("avx512dq", "avxvnni", "avx512vnni", "avx512bf16", "amx-int8", "amx-bf16"),
    "znver4": ("avx512dq", "avx512vnni", "avx512bf16"),
    "znver5": ("avx512dq", "avxvnni", "avx512vnni", "avx512bf16"),
    "neoverse-v1": ("i8mm",),
    "neoverse-v2": ("i8mm",),
    "neoverse-n2": ("i8mm",),
}
"""The extensions of processors that are named without features. Fused multiply-add comes with NEON and AVX2, and NEON
with AArch64.
"""


@dataclass(frozen=True)
class Target:
    """The description of a CPU: its name in LLVM, and the parameters that schedules depend on.

    Raises `ValueError` for impossible parameters, and for register tiles that do not fit into its registers.
    """

    triple: str
    """LLVM target triple, such as `x86_64-unknown-linux-gnu`."""

    cpu: str
    """LLVM processor name; it implies a set of features."""

    features: str = ""
    """Differences from the features that `cpu` implies, such as `+avx512f,-sgx`."""

    vector_bits: int = 128
    """Width in bits of the vector registers to use."""

    vector_registers: int = 16
    """Number of vector registers."""

    l1_bytes: int = 32 * KIB
    """Size of the L1 data cache of a core."""

    l2_bytes: int = 512 * KIB
    """Size of the L2 cache of a core."""

    l3_bytes: int = 8192 * KIB
    """Size of the shared last-level cache."""

    cores: int = 1
    """Number of threads that parallel loops are scheduled for."""

    winograd_tile: int = 2
    """The side of the largest tile of Winograd convolutions: 1 for none, 2, or 4, whose rounding errors are larger."""

    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    """Overrides of the decisions of `schedule-cpu`."""

    def __post_init__(self) -> None:
        check_texts(self, _TEXTS)
        check_numbers(self, _NUMBERS)
        check_registers(self)

    @property
    def arch(self) -> str:
        """The first part of the triple: `x86_64`, `aarch64`, ..."""
        return self.triple.partition("-")[0]

    @property
    def tile_registers(self) -> int:
        """The number of vector registers available to a register tile: accumulators and operands.

        Multiply-adds of x86 take one operand from memory. Elsewhere it needs a register, and a few more because LLVM
        loads operands early: with fewer it copies accumulators, or spills them.
        """
        return self.vector_registers - (0 if self.arch.startswith("x86") else 2)

    @property
    def usual_tile(self) -> tuple[int, tuple[int, ...], int]:
        """The default register tile: vectors per row, numbers of rows in descending order, unrolled reduction steps.

        The tile fills the registers with accumulators, a row of the right operand, and one element of the left one.
        With 32 registers of 512 bits it has 14 x 2 vectors and two steps, which share the loop overhead; with 32 of 128
        bits (NEON) 8 x 3 and one; with 16 registers 6 x 2 and four.
        """
        if self.vector_registers < 32:
            return 2, (6, 4), 4
        return (2, (14, 8, 4), 2) if self.vector_bits >= 512 else (3, (8, 4), 1)

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` bits one vector register holds; at least 1."""
        return max(1, self.vector_bits // bits)

    def with_settings(self, settings: Mapping[str, Any]) -> Target:
        """A copy with other values of fields, of the target or of its `ScheduleOptions`.

        Raises `ValueError` for invalid values.
        """
        options = {name: value for name, value in settings.items() if name in _OPTIONS}
        rest = {name: value for name, value in settings.items() if name not in _OPTIONS}
        return replace(self, schedule=replace(self.schedule, **options), **rest)

    def settings(self) -> dict[str, str | int]:
        """The value of each field, those of the `ScheduleOptions` included: what `parse` accepts as `key=value`."""
        own = {name: getattr(self, name) for name in (*_TEXTS, *_NUMBERS)}
        return own | {name: getattr(self.schedule, name) for name in _OPTIONS}

    def code_key(self) -> str:
        """Everything that generated machine code depends on, as a text for cache keys."""
        return f"{self.triple} {self.cpu} {self.features} {self.vector_bits}"

    @property
    def extensions(self) -> frozenset[str]:
        """Which of `EXTENSIONS` the target has, by `features` and by what `cpu` implies."""
        named = {feature[1:]: feature[0] == "+" for feature in self.features.split(",") if feature}
        implied = IMPLIED_EXTENSIONS.get(self.cpu, ())
        if not self.arch.startswith("x86") or NAMED_TARGETS.get(self.cpu, ("", 0, 0))[1] >= 256:
            implied = (*implied, "fma")
        if self.arch == "aarch64":
            implied = (*implied, "neon")
        return frozenset(name for name in EXTENSIONS if named.get(name, name in implied))

    @staticmethod
    def host() -> Target:
        """The host machine, or what `RELAX_TARGET` says of it; `cores` is how many processors this process may use."""
        return _host()

    def __repr__(self) -> str:
        size = f"{self.vector_registers} registers of {self.vector_bits} bits"
        return f"<Target {self.cpu}: {size}, {self.cores} cores, {self.triple}>"

    def __str__(self) -> str:
        """All that there is to say: equal for equal targets only."""
        return f"Target({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in fields(self))})"

    @staticmethod
    def parse(text: str) -> Target:
        """Read `NAME [key=value ...]`: a row of `NAMED_TARGETS` or `host`, then fields to override.

        Keys are the names of `settings`, with `-` or `_`: `x86-64-v3 cores=8 tile-rows=4 features=+fma`.

        What TVM writes for the same, `llvm` and `llvm -mcpu=znver3`, is read too.

        Raises `ValueError` for an unknown name, key or value.
        """
        name, *settings = text.split() or [""]
        if name == "llvm":
            named = [setting for setting in settings if setting.startswith("-mcpu=")]
            settings = [setting for setting in settings if setting not in named]
            name = named[-1].removeprefix("-mcpu=") if named else "host"
        elif name in _GPUS:
            raise ValueError(f'unknown target "{name}": programs are compiled for CPUs')
        if name == "host":
            target = Target.host()
        elif name in NAMED_TARGETS:
            triple, bits, registers = NAMED_TARGETS[name]
            target = Target(triple, PROCESSORS.get(name, name), vector_bits=bits, vector_registers=registers)
        else:
            raise ValueError(f'unknown target "{name}", expected host or one of {", ".join(NAMED_TARGETS)}')
        return target.with_settings(dict(_setting(setting) for setting in settings))


_GPUS = frozenset({"cuda", "rocm", "metal", "vulkan", "opencl", "webgpu", "gpu"})

_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"

NAMED_TARGETS: dict[str, tuple[str, int, int]] = {
    # name: triple, vector bits, vector registers; the name is LLVM's processor name, or in `PROCESSORS`
    "x86-64": (_X86, 128, 16),
    "x86-64-v2": (_X86, 128, 16),
    "x86-64-v3": (_X86, 256, 16),
    "x86-64-v4": (_X86, 512, 32),
    "haswell": (_X86, 256, 16),
    "skylake": (_X86, 256, 16),
    "alderlake": (_X86, 256, 16),
    "skylake-avx512": (_X86, 512, 32),
    "cascadelake": (_X86, 512, 32),
    "icelake-server": (_X86, 512, 32),
    "sapphirerapids": (_X86, 512, 32),
    "graniterapids": (_X86, 512, 32),
    "znver2": (_X86, 256, 16),
    "znver3": (_X86, 256, 16),
    "znver4": (_X86, 512, 32),
    "znver5": (_X86, 512, 32),
    "aarch64": (_ARM, 128, 32),
    "cortex-a53": (_ARM, 128, 32),
    "cortex-a72": (_ARM, 128, 32),
    "cortex-a76": (_ARM, 128, 32),
    "neoverse-n1": (_ARM, 128, 32),
    "neoverse-n2": (_ARM, 128, 32),
    "neoverse-v1": (_ARM, 128, 32),
    "neoverse-v2": (_ARM, 128, 32),
    "apple-m1": (_ARM, 128, 32),
}


PROCESSORS = {"aarch64": "generic"}
"""LLVM's name for what every machine of a family has, where it is not the name of the family."""


_TEXTS = ("triple", "cpu", "features")
_NUMBERS = tuple(each.name for each in fields(Target) if each.name not in (*_TEXTS, "schedule"))
_OPTIONS = tuple(each.name for each in fields(ScheduleOptions))
NUMERIC_SETTINGS = frozenset((*_NUMBERS, *_OPTIONS))
"""The settings of a target that decide how kernels are scheduled."""


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    key = key.replace("-", "_")
    if not equals or key not in NUMERIC_SETTINGS.union(_TEXTS):
        known = ", ".join(sorted(NUMERIC_SETTINGS.union(_TEXTS)))
        raise ValueError(f'unknown target setting "{text}", expected key=value with a key of {known}')
    if key in _TEXTS:
        return key, value
    if not re.fullmatch("-?[0-9]+", value):
        raise ValueError(f'target setting "{key}" expects an integer, got "{value}"')
    return key, int(value)


HOST_VARIABLE = "RELAX_TARGET"
"""The environment variable with the processor that this machine is taken for, such as `x86-64-v3`."""


@cache
def _host() -> Target:
    binding: Any = import_module("llvmlite.binding")
    enabled: dict[str, bool] = binding.get_host_cpu_features()
    if enabled.get("amx-tile") and not _permits_tile_registers():
        enabled = {name: on and not name.startswith("amx") for name, on in enabled.items()}
    features = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(enabled.items()))
    bits, registers = _vector_registers({name for name, on in enabled.items() if on})
    # Sizes in bytes, by level, of the data and unified caches that Linux reports; empty if it reports
    # none.
    root = Path("/sys/devices/system/cpu/cpu0/cache")
    caches: dict[int, int] = {}
    for index in root.glob("index*"):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and level.isdigit() and size.endswith("K") and size[:-1].isdigit():
            caches[int(level)] = int(size[:-1]) * KIB
    host = Target(
        triple=str(binding.get_process_triple()),
        cpu=str(binding.get_host_cpu_name()),
        features=features,
        vector_bits=bits,
        vector_registers=registers,
        l1_bytes=caches.get(1, 32 * KIB),
        l2_bytes=caches.get(2, 512 * KIB),
        l3_bytes=caches.get(3, 8192 * KIB),
        cores=usable_cores(),
    )
    if not (name := os.environ.get(HOST_VARIABLE)):
        return host
    named = Target.parse(name)
    if named.arch != host.arch:
        raise ValueError(f"{HOST_VARIABLE} expected a processor of {host.arch}, got {name}")
    kept = {setting: getattr(named, setting) for setting in ("cpu", "features", "vector_bits", "vector_registers")}
    return replace(host, **kept)


def _permits_tile_registers() -> bool:
    """Whether Linux permits the tile registers of AMX to this process, as it does when asked for the first time."""
    arch_prctl, request_state, tile_data = 158, 0x1023, 18
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(arch_prctl, request_state, tile_data) == 0


def usable_cores() -> int:
    """The number of processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _vector_registers(enabled: set[str]) -> tuple[int, int]:
    if platform.machine().lower() in ("aarch64", "arm64"):
        return 128, 32
    if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= enabled:
        return 512, 32
    return (256, 16) if "avx2" in enabled else (128, 16)


def check_texts(target: Target, names: Iterable[str]) -> None:
    """ValueError for names that are no strings, and features without a sign."""
    for name in names:
        if not isinstance(value := getattr(target, name), str):
            raise ValueError(f'target setting "{name}" expects a text, got {value!r}')
    for feature in filter(None, target.features.split(",")):
        if feature[0] not in "+-":  # which LLVM takes for a minus
            raise ValueError(f'target setting "features" expects + or - before a feature, got "{feature}"')


def check_numbers(target: Target, names: Iterable[str]) -> None:
    """ValueError for sizes and counts below one, and vector widths that are no power of two."""
    for name in names:
        check_integer(name, getattr(target, name), 1)
    if target.winograd_tile not in (1, 2, 4):
        raise ValueError(f'target setting "winograd_tile" expects 1, 2 or 4, got {target.winograd_tile}')
    bits = target.vector_bits
    if bits < 64 or bits & (bits - 1):
        raise ValueError(f'target setting "vector_bits" expects a power of two of at least 64, got {bits}')


def check_registers(target: Target) -> None:
    """ValueError for options that need more registers than the target has, so that accumulators would be spilled."""
    options = target.schedule
    vectors, (rows, *_), _ = target.usual_tile
    rows, vectors = options.tile_rows or rows, options.tile_vectors or vectors
    needed, there = rows * vectors + vectors, target.tile_registers
    if (options.tile_rows or options.tile_vectors) and needed > there:
        key = "tile_rows" if options.tile_rows else "tile_vectors"
        raise ValueError(
            f'target setting "{key}" expects a tile for {there} vector registers, '
            f"got {rows} rows of {vectors} sums and one of {vectors} factors, which is {needed}"
        )
    if options.map_vectors > target.vector_registers:
        raise ValueError(
            f'target setting "map_vectors" expects at most {target.vector_registers}, got {options.map_vectors}'
        )
