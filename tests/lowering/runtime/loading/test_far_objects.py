"""Objects of one link may lie anywhere in the address space: a process with gigabytes of tensors has holes all over."""

import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lowering.runtime.support import SUPPORT, support_object
from lowering.vm_to_llvm.objects import runtime_object
from lowering.vm_to_llvm.runtime_builder import PARTS
from tir_dialect.target import Target

NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

FAR = """
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uintptr_t next = 0x100000000000;

/* Each mapping begins eight gigabytes behind the one before. */
void *mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  if (at == NULL) at = (void *)__atomic_fetch_add(&next, (uintptr_t)8 << 30, __ATOMIC_RELAXED);
  return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap64(at, size, protection, flags, file, offset);
}
"""


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose mappings lie far apart, those of LLVM among them."""
    folder = tmp_path_factory.mktemp("far")
    (folder / "far.c").write_text(FAR)
    library = folder / "far.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "far.c")], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


def run(program: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)


PROGRAMS = """
import numpy as np
from lowering import build
from lowering.runtime import loading
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

links, link = [], loading._linked
def kept(builder):
    links.append(link(builder))
    return links[-1]
loading._linked = kept

TEXT = '''
relax.func @closure[%n](%x: !relax.tensor<[n], f32>) {
  %g = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %z = relax.add %x, %y
    relax.return %z
  }
  %0 = relax.call_closure %g(%x)
  relax.return %0
}
relax.func @tuples[%n, %m](%x: !relax.tensor<[n, m], f32>) {
  %e = relax.nn.softmax %x
  %f = relax.flatten %e
  %s = relax.shape_of %f
  %t = relax.tuple(%f, %s)
  relax.return %t
}
relax.func @product[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %w: !relax.tensor<[m, k], f32>) {
  %p = relax.matmul %x, %w
  relax.return %p
}
'''
x = np.random.rand(70, 80).astype("f4")
for mode in ("native", "bytecode"):
    vm = VirtualMachine(build(parse_module(TEXT), mode=mode))
    np.testing.assert_array_equal(np.from_dlpack(vm["closure"](x[0].copy())), 2 * x[0])
    flat, shape = vm["tuples"](x)
    np.testing.assert_allclose(np.from_dlpack(flat).sum(), 70, rtol=1e-5)
    assert tuple(shape) == (5600,)
    np.testing.assert_allclose(np.from_dlpack(vm["product"](x, x.T.copy())), x @ x.T, rtol=1e-5)
    try:
        vm["product"](x, x)
    except ValueError as error:
        print(error)
code = [address for tracker, _ in links for address in tracker._ResourceTracker__addresses.values()]
print("span", (max(code) - min(code)) >> 30)
"""


@NEEDS_CC
def test_objects_that_lie_far_apart_are_linked(far: dict[str, str]):
    done = run(PROGRAMS, far)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("product: argument #1") == 2
    span = re.search(r"span (\d+)", done.stdout)
    assert span is not None
    assert int(span[1]) > 100  # gigabytes


OFFSET = """
from lowering.llvm.compiler import compile_object
from lowering.runtime.loading import load_objects
from tir_dialect.target import Target

user = "@x = external hidden global i64 define i64 @f() { %r = load i64, ptr @x ret i64 %r }"
try:
    load_objects([compile_object(text, Target.host()) for text in (user, "@x = hidden global i64 3")])
except Exception as error:
    print(type(error).__name__, error)
"""


@NEEDS_CC
def test_what_cannot_be_linked_has_a_reason(far: dict[str, str]):
    done = run(OFFSET, far)
    assert re.match(r"CodegenError cannot link: .*relocation target .* is out of range of", done.stdout), done


RELOCATION = struct.Struct("<QQq")
_BY_TABLE = {
    "x86_64": {1: "64", 4: "PLT32", 9: "GOTPCREL", 41: "GOTPCRELX", 42: "REX_GOTPCRELX"},
    "aarch64": {257: "ABS64", 282: "JUMP26", 283: "CALL26", 311: "ADR_GOT_PAGE", 312: "LD64_GOT_LO12_NC"},
}
"""Ways to name what is elsewhere that reach everything; a linker adds an address, or a jump, to the object."""


def undefined_uses(data: bytes) -> Iterator[tuple[str, int]]:
    """What an object names of others, with the kind of relocation."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != 4:
            continue
        symbols = sections[link]
        names = sections[symbols[6]][4]
        for place in range(offset, offset + length, RELOCATION.size):
            _, info, _ = RELOCATION.unpack_from(data, place)
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", data, symbols[4] + (info >> 32) * 24)
            if name and section == 0:
                end = data.index(b"\0", names + name)
                yield data[names + name : end].decode(), info & 0xFFFFFFFF


@pytest.mark.parametrize("cpu", ["host", "x86-64", "cortex-a72"])
def test_the_runtime_names_what_is_elsewhere_by_addresses(cpu: str):
    target = Target.host() if cpu == "host" else Target.parse(cpu)
    objects = [runtime_object(target, None, part) for part in PARTS]
    if target == Target.host():
        objects += [support_object(each.text()) for each in SUPPORT]
        objects += [support_object(each.library_text(target)) for each in SUPPORT if each.library_text is not None]
    uses = [use for data in objects for use in undefined_uses(data)]
    assert len(uses) > 50
    assert [use for use in uses if use[1] not in _BY_TABLE[target.arch]] == []
