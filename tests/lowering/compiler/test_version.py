"""The version of the compiler tells sources apart, and knows which of them make kernels."""

import os
import subprocess
import sys
from pathlib import Path

from lowering.compiler.program_cache import _KERNEL_SOURCES, find_sources, sources_digest

LOADED = """
import sys
from lowering.compiler.kernel_maker import DEFAULT_OPTIONS, lower_kernel
from lowering.parsing import parse_module
from tir_dialect.target import Target
module = parse_module(sys.argv[1])
before = set(sys.modules)
lowered = lower_kernel(list(module.ops), "kernel", Target.host(), DEFAULT_OPTIONS)
texts = [lowered.text, *(text() for text in lowered.routines.values())]
print(*(set(sys.modules) - before))
"""

KERNEL = """
tir.prim_func @product[%m, %k, %n](
  %X: !tir.buffer<[m, k], f32>, %W: !tir.buffer<[k, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j, %l) in (%m, %n, %k) {
    tir.block "product" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vl = reduce %l in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vi, %vj]
      }
      %y = tir.load %Y[%vi, %vj]
      %x = tir.load %X[%vi, %vl]
      %w = tir.load %W[%vl, %vj]
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %y, %0 : f32
      tir.store %1, %Y[%vi, %vj]
    }
  }
}
"""


def digest(root: Path) -> str:
    return sources_digest(root, find_sources(root, ["package"]))


def written(root: Path, files: dict[str, str], time: int | None = None) -> None:
    for number, (name, text) in enumerate(files.items()):
        path = root / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(0, number + 1 if time is None else time))


def test_files_are_told_apart_by_path_size_and_time(tmp_path: Path):
    written(tmp_path, {"a.py": "1", "inner/b.ll": "2", "__pycache__/c.py": "3", "d.txt": "4"})
    assert [source.path for source in find_sources(tmp_path, ["package"])] == ["package/a.py", "package/inner/b.ll"]
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    written(tmp_path, {"a.py": "1 ", "inner/b.ll": "2"})
    larger = digest(tmp_path)
    written(tmp_path, {"a.py": "1", "inner/b.ll": "2", "inner/e.py": ""})
    more = digest(tmp_path)
    os.utime(tmp_path / "package" / "a.py", ns=(0, 77))
    assert len({before, larger, more, digest(tmp_path)}) == 4


def test_where_all_times_are_the_same_contents_count(tmp_path: Path):
    written(tmp_path, {"a.py": "1", "b.py": "2"}, time=0)
    before = digest(tmp_path)
    written(tmp_path, {"a.py": "3", "b.py": "2"}, time=0)
    assert digest(tmp_path) != before
    written(tmp_path, {"a.py": "1", "b.py": "2"}, time=0)
    assert digest(tmp_path) == before


def test_the_files_that_decide_about_kernels():
    """What lowering a kernel loads, apart from what serves errors, the shell and graphs."""
    sources = find_sources(Path(__file__).parents[3], ["lowering", "tir_dialect", "vm_dialect"])
    kernel = {source.path for source in sources if source.path.startswith(_KERNEL_SOURCES)}
    assert all(any(path.startswith(start) for path in kernel) for start in _KERNEL_SOURCES)
    done = subprocess.run([sys.executable, "-c", LOADED, KERNEL], capture_output=True, text=True, check=True)
    loaded = {f"{name.replace('.', '/')}.py" for name in done.stdout.split() if not name.startswith("relax_dialect")}
    others = {source.path for source in sources if source.path in loaded} - kernel
    apart = ("debug", "diagnostics", "excerpt", "index", "pass_context", "passes", "registry")
    assert others <= {f"lowering/{name}.py" for name in apart}
