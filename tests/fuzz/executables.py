"""Executables with changed contents and correct checksums: refused, or run to a result or a documented error.

`python -m tests.fuzz.executables 100000 [SEED]` tries so many, and prints what ends in anything else.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import tvm_ffi

from vm_dialect import ExecBuilder, Executable, VirtualMachine
from vm_dialect.builtins import BUILTINS
from vm_dialect.dtypes import element_type
from vm_dialect.errors import StepLimitError, UntrustedError
from vm_dialect.executable.format import MAGIC
from vm_dialect.files import SEAL_BYTES

DOCUMENTED = (
    TypeError,
    ValueError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    StepLimitError,
    UntrustedError,
)
"""What a program may raise, as `SECURITY.md` says."""

NAME = "executables"

_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<4sIQQ")
_STEPS = 2_000
_MOST_MEMORY = 9 << 30
"""A changed size may be one that this machine has, and then takes from all others."""

ARGUMENTS: Sequence[Any] = (3, 2.5, True, "f32", None, tvm_ffi.Shape((2, 3)), np.ones((2, 3), np.float32))


def program() -> Executable:
    """One that calls every builtin, with constants and values of every kind, in loops and through function values."""
    ib = ExecBuilder()
    with ib.function("loop", 1, ["n"]):
        ib.emit_call("vm.builtin.copy", [0], ib.r(1))
        ib.emit_call("vm.builtin.int_lt", [ib.r(1), ib.r(0)], ib.r(2))
        ib.emit_if(ib.r(2), 3)
        ib.emit_call("vm.builtin.int_add", [ib.r(1), 1], ib.r(1))
        ib.emit_goto(-3)
        ib.emit_ret(ib.r(1))
    with ib.function("apply", 2, ["f", "x"]):
        ib.emit_call("vm.builtin.make_closure", [ib.f("loop")], ib.r(2))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(2), 4], ib.r(3))
        ib.emit_call("loop", [ib.r(3)], ib.r(3))
        ib.emit_ret(ib.r(3))
    for name in sorted(BUILTINS):
        if name != "run_deferred":
            _call_everything(ib, name)
    return ib.get()


def _call_everything(ib: ExecBuilder, name: str) -> None:
    """A function that calls a builtin with values of the kinds that it takes, in as far as they are known."""
    builtin = BUILTINS[name]
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    of_kind = {
        "int": 1,
        "bool": 1,
        "float": ib.convert_constant(2.5),
        "string": ib.convert_constant("f32"),
        "shape": ib.convert_constant(tvm_ffi.Shape((2, 3))),
        "tensor": ib.convert_constant(weight, "weight"),
        "function": ib.f("loop"),
        "null": ib.void_arg(),
    }
    count = builtin.minimum if builtin.maximum == builtin.minimum else builtin.minimum + 1
    with ib.function(f"call {name}", 1, ["x"]):
        arguments = [
            ib.r(0) if (kind := builtin.signature.accepted(index).name) == "object" else of_kind[kind]
            for index in range(count)
        ]
        ib.emit_call(f"vm.builtin.{name}", arguments, ib.r(1))
        ib.emit_call(
            "vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.vm_state(), ib.convert_constant(element_type("f32"))]
        )
        ib.emit_ret(ib.r(1))


def mutants(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """So many files with one or two changes each, in the sections' contents, without a seal but with checksums."""
    source = random.Random(seed)
    sections = [_ENTRY.unpack_from(data, _HEADER.size + place * _ENTRY.size) for place in range(7)]
    # In each section as often, and in the code more often: most bytes are names, in which hardly any defect is.
    places = [(start, size) for tag, _, start, size in sections if size for _ in range(4 if tag == b"CODE" else 1)]
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(source.randint(1, 2)):
            start, size = source.choice(places)
            _change(changed, start, size, source)
        yield repaired(changed)


def _change(data: bytearray, start: int, size: int, source: random.Random) -> None:
    position = start + source.randrange(size)
    match source.randrange(4):
        case 0:
            data[position] = source.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, source.randrange(256)])
        case 1:
            data[position] = (data[position] + source.choice([-1, 1])) & 255
        case 2 if size >= 8:  # a word, at its place
            word = start + (position - start) // 8 * 8
            if word + 8 <= start + size:
                other = start + source.randrange(size // 8) * 8
                data[word : word + 8] = data[other : other + 8]
        case _:
            data[position] ^= 1 << source.randrange(8)


def repaired(data: bytearray) -> bytes:
    """The file with the checksums of its contents, and without a seal."""
    assert data.startswith(MAGIC)
    end = _HEADER.size + 7 * _ENTRY.size
    for place in range(_HEADER.size, end, _ENTRY.size):
        tag, _, start, size = _ENTRY.unpack_from(data, place)
        _ENTRY.pack_into(data, place, tag, zlib.crc32(data[start : start + size]), start, size)
    struct.pack_into("<I", data, end, zlib.crc32(data[:end]))
    data[end + 4 : end + 4 + SEAL_BYTES] = bytes(SEAL_BYTES)
    return bytes(data)


def failures(count: int, seed: int) -> Iterator[str]:
    """What ends in an error that is not documented, of so many changed executables."""
    data = program().to_bytes()
    for number, mutant in enumerate(mutants(data, count, seed)):
        try:
            executable = Executable.from_bytes(mutant)
            assert executable.is_foreign
            machine = VirtualMachine(executable, max_steps=_STEPS, max_depth=1000)
        except ValueError:
            continue
        except Exception as error:
            yield f"seed {seed}, number {number}: loading: {type(error).__name__}: {error}"
            continue
        for wrong in _run(machine, random.Random(number)):
            yield f"seed {seed}, number {number}: {wrong}"


def _run(machine: VirtualMachine, source: random.Random) -> Iterator[str]:
    executable = machine.executable
    for name in executable.entries:
        parameters = executable.functions[executable.function_index[name]].parameters
        try:
            with redirect_stdout(StringIO()):
                machine[name](*(source.choice(ARGUMENTS) for _ in parameters))
        except DOCUMENTED:
            pass
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"


@contextmanager
def limited_memory() -> Generator[None]:
    """Allocations beyond a limit fail meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(count: int, seed: int) -> None:
    """Fails if one of so many changed executables ends in an error that is not documented."""
    with limited_memory():
        found = list(failures(count, seed))
    assert not found, f"{len(found)} failures, among them\n" + "\n".join(found[:20])


def run(seed: int) -> None:
    """A hundred changed executables."""
    check(100, seed)


def main(arguments: Sequence[str]) -> int:
    """Prints the failures; 1 if there are any."""
    count, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    found = 0
    for text in failures(count, seed):
        found += 1
        print(text, flush=True)
    print(f"{count} executables, {found} failures")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
