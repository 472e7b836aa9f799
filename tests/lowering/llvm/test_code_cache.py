import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowering.llvm.code_cache import NO_CACHE, CodeCache, cache_key, default_cache

KEY = cache_key(["key"])


def entry(cache: CodeCache, key: str = KEY) -> Path:
    assert cache.directory is not None
    return cache.directory / key[:2] / key


def test_what_is_put_is_got(tmp_path: Path):
    cache = CodeCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    cache.put(cache_key(["empty"]), b"")
    assert CodeCache(tmp_path).get(KEY) == b"code"
    assert cache.get(cache_key(["empty"])) == b""
    cache.put(KEY, b"other")
    assert cache.get(KEY) == b"other"
    cache.clear()
    assert cache.get(KEY) is None
    assert cache.size() == 0


def test_keys_tell_sequences_apart():
    keys = {cache_key(parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], [b"ab", "cd"], [])}
    assert len(keys) == 6
    assert cache_key(["a", b"b"]) == cache_key([b"a", "b"])


@pytest.mark.parametrize("damage", ["truncate", "flip", "header", "empty"])
def test_damaged_entries_are_dropped(tmp_path: Path, damage: str):
    cache = CodeCache(tmp_path)
    cache.put(KEY, b"some machine code")
    path = entry(cache)
    data = bytearray(path.read_bytes())
    match damage:
        case "truncate":
            del data[-3:]
        case "flip":
            data[-1] ^= 1
        case "header":
            data[0] ^= 1
        case _:
            data.clear()
    path.write_bytes(data)
    assert cache.get(KEY) is None
    assert not path.exists()
    cache.put(KEY, b"again")
    assert cache.get(KEY) == b"again"


def test_the_file_of_another_entry_is_damaged_too(tmp_path: Path):
    cache, other = CodeCache(tmp_path), cache_key(["other"])
    cache.put(KEY, b"code")
    cache.put(other, b"other code")
    entry(cache).write_bytes(entry(cache, other).read_bytes())
    assert cache.get(KEY) is None
    assert cache.get(other) == b"other code"


def test_a_process_killed_in_the_middle_of_a_write_leaves_no_entry(tmp_path: Path):
    script = f"""
import os
from pathlib import Path
from lowering.llvm import code_cache as c
real = os.replace
os.replace = lambda *names: os.kill(os.getpid(), 9)
c.CodeCache(Path({str(tmp_path)!r})).put({KEY!r}, b"x" * 100000)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    cache = CodeCache(tmp_path)
    assert cache.get(KEY) is None
    leftovers = [path for path in entry(cache).parent.iterdir() if path.name.startswith(".")]
    assert len(leftovers) == 1
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"

    # What the dead process left is removed when room is made, once it is old.
    os.utime(leftovers[0], (time.time() - 10_000,) * 2)
    small = CodeCache(tmp_path, max_bytes=10)
    small.put(cache_key(["next"]), b"more")
    assert not leftovers[0].exists()


def test_an_interrupted_write_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        CodeCache(tmp_path).put(KEY, b"code")
    monkeypatch.undo()
    assert list(entry(CodeCache(tmp_path)).parent.iterdir()) == []


def _hammer(directory: Path, seed: int, failures: "multiprocessing.Queue[str]") -> None:
    cache = CodeCache(directory, max_bytes=20_000)
    for step in range(150):
        number = (seed * 7 + step * 13) % 23
        key, contents = cache_key([str(number)]), bytes([number]) * 1500
        got = cache.get(key)
        if got is not None and got != contents:
            failures.put(f"wrong contents for {number}")
        cache.put(key, contents)


def test_concurrent_processes(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    failures: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=_hammer, args=(tmp_path, seed, failures)) for seed in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert failures.empty()
    assert CodeCache(tmp_path).size() < 40_000


def test_the_least_recently_used_entries_go_first(tmp_path: Path):
    cache = CodeCache(tmp_path, max_bytes=6000)
    keys = [cache_key([str(i)]) for i in range(5)]
    now = time.time()
    for age, key in enumerate(keys):
        cache.put(key, b"x" * 1000)
        os.utime(entry(cache, key), (now - 100_000 * (5 - age),) * 2)
    assert cache.get(keys[0]) is not None  # used again, hence young
    for i in range(5, 8):
        cache.put(cache_key([str(i)]), b"x" * 1000)
    assert cache.size() <= 6000
    assert cache.get(keys[0]) is not None
    assert cache.get(keys[1]) is None


def test_after_a_clock_was_set_back_new_entries_stay(tmp_path: Path):
    cache = CodeCache(tmp_path, max_bytes=6000)
    old, used = cache_key(["old"]), cache_key(["used"])
    for key in (old, used):
        cache.put(key, b"x" * 2400)
        os.utime(entry(cache, key), (time.time() + 1e8,) * 2)
    left = entry(cache, used).with_name(".left")
    left.write_bytes(b"x")
    os.utime(left, (time.time() + 1e8,) * 2)
    assert cache.get(used) is not None  # which says when it was used
    cache.put(KEY, b"y" * 1500)
    assert [cache.get(key) is not None for key in (old, used, KEY)] == [False, True, True]
    assert not left.exists()


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("RELAX_CACHE", "RELAX_CACHE_DIR", "RELAX_CACHE_BYTES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().directory == tmp_path / "xdsl-relax"
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert default_cache().directory == Path.home() / ".cache" / "xdsl-relax"
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("RELAX_CACHE_BYTES", "123")
    assert default_cache() == CodeCache(tmp_path / "here", 123)
    monkeypatch.setenv("RELAX_CACHE_BYTES", "much")
    with pytest.raises(ValueError, match='RELAX_CACHE_BYTES expects a number of bytes, got "much"'):
        default_cache()
    monkeypatch.setenv("RELAX_CACHE", "0")
    assert default_cache() is NO_CACHE


def test_no_cache_and_unusable_directories_keep_nothing(tmp_path: Path):
    NO_CACHE.put(KEY, b"code")
    assert NO_CACHE.get(KEY) is None
    assert NO_CACHE.size() == 0
    (tmp_path / "file").write_text("")
    blocked = CodeCache(tmp_path / "file" / "below")
    message = r"the cache .*/below cannot be written \(Not a directory\); set RELAX_CACHE_DIR"
    with pytest.warns(UserWarning, match=message):
        blocked.put(KEY, b"code")
    with pytest.warns(UserWarning, match=message):
        blocked.add(KEY, lambda path: None)
    assert blocked.get(KEY) is None


@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "folder", "writable", "forged", "too large"])
def test_what_somebody_puts_into_the_place_of_an_entry_is_not_used(kind: str, tmp_path: Path):
    cache, key = CodeCache(tmp_path, 1 << 20), KEY
    cache.put(key, b"contents")
    path = entry(cache)
    data = path.read_bytes()
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            (tmp_path / "elsewhere").write_bytes(data)
            path.symlink_to(tmp_path / "elsewhere")
        case "endless":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "writable":
            path.write_bytes(data)
            path.chmod(0o666)
        case "forged":
            path.write_bytes(data[: -len(b"contents") - 32] + hashlib.sha256(key.encode()).digest() + b"contents")
        case _:
            path.write_bytes(data + bytes(2 << 20))
    assert cache.get(key) is None
    if kind != "folder":
        cache.put(key, b"contents")
        assert cache.get(key) == b"contents"
        assert cache.find(key) == path


def test_entries_of_another_user_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache, key = CodeCache(tmp_path), KEY
    with monkeypatch.context() as patch:
        patch.setenv("RELAX_KEY_FILE", str(tmp_path / "other" / "key"))
        cache.put(key, b"planted")
        assert cache.get(key) == b"planted"
    assert cache.get(key) is None
    cache.put(key, b"own")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.get(key) is None
