"""Storages, tensors, views and their lives."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from lowering.diagnostics import InvalidModule
from lowering.vm_to_llvm.loading import load_functions

CHAIN = """
vm.func @chain(%o : !vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["x"]} {
  %x = vm.check_tensor %o rank 1 dtype f32 as "chain: argument #0 (x)"
  %n = vm.tensor_dim %x[0]
  %four = vm.const 4
  %mask = vm.const 64
  %raw = vm.int mul %n, %four
  %blocks = vm.int floordiv %raw, %mask
  %whole = vm.int mul %blocks, %mask
  %second = vm.int add %whole, %mask
  %size = vm.int add %second, %second
  %zero = vm.const 0
  %s = vm.alloc_storage %size
  %a = vm.alloc_tensor %s at %zero [%n] f32
  vm.call_kernel @add_one[%n](%x, %a)
  %b = vm.alloc_tensor %s at %second [%n] f32
  vm.call_kernel @add_one[%n](%a, %b)
  vm.kill %a
  %y = vm.new_tensor [%n] f32
  vm.call_kernel @add_one[%n](%b, %y)
  vm.ret %y
}
"""


@pytest.fixture(scope="module")
def chain(native):
    return native(CHAIN)["chain"]


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 1000, 100_000, 1_200_000, 3])
def test_chain_through_an_arena(chain, size):
    array = np.arange(size, dtype=np.float32)
    result = np.from_dlpack(chain(array))
    assert result.dtype == np.float32
    assert result.shape == (size,)
    np.testing.assert_array_equal(result, array + 3)
    assert result.ctypes.data % 64 == 0


def test_new_memory_in_every_call(chain):
    array = np.zeros(100, np.float32)
    first, second = (np.from_dlpack(chain(array)) for _ in range(2))
    assert not np.shares_memory(first, second)


TENSORS = """
vm.func @make(%a : !vm.object, %b : !vm.object) -> !vm.tensor<3, i64> {
  %n = vm.check_int %a
  %m = vm.check_int %b
  %two = vm.const 2
  %t = vm.new_tensor [%two, %n, %m] i64
  vm.ret %t
}
vm.func @scalar() -> !vm.tensor<0, i1> {
  %t = vm.new_tensor [] i1
  vm.ret %t
}
vm.func @place(%size : !vm.object, %at : !vm.object, %a : !vm.object, %b : !vm.object) {
  %s = vm.check_int %size
  %o = vm.check_int %at
  %n = vm.check_int %a
  %m = vm.check_int %b
  %storage = vm.alloc_storage %s
  %t = vm.alloc_tensor %storage at %o [%n, %m] f32
  vm.ret
}
vm.func @place_deep(%size : !vm.object, %at : !vm.object, %a : !vm.object, %b : !vm.object) {
  %s = vm.check_int %size
  %o = vm.check_int %at
  %n = vm.check_int %a
  %m = vm.check_int %b
  %one = vm.const 1
  %storage = vm.alloc_storage %s
  %t = vm.alloc_tensor %storage at %o [%n, %m, %one, %one, %one] f32
  vm.ret
}
"""


@pytest.fixture(scope="module")
def tensors(native):
    return native(TENSORS)


def test_new_tensor(tensors):
    result = tensors["make"](3, 4)
    assert result.shape == (2, 3, 4)
    assert result.strides == (12, 4, 1)
    assert result.dtype == "int64"
    assert np.from_dlpack(result).flags.writeable
    assert tensors["make"](0, 4).shape == (2, 0, 4)
    assert tensors["make"](0, 1 << 44).shape == (2, 0, 1 << 44)
    assert tensors["scalar"]().shape == ()
    assert tensors["scalar"]().dtype == "bool"


def test_new_tensor_that_cannot_be(tensors):
    with pytest.raises(ValueError, match=r"^cannot make a tensor whose dimension 1 is -1$"):
        tensors["make"](-1, 4)
    with pytest.raises(ValueError, match=r"^cannot make a tensor whose dimension 2 is -4$"):
        tensors["make"](0, -4)
    for sizes in ((1 << 40, 1 << 40), (1 << 31, 1 << 31), ((1 << 63) - 1, 1), (0, 1 << 45), (1 << 62, 0)):
        with pytest.raises(MemoryError, match=r"^cannot allocate a tensor of more than 2\^48 bytes$"):
            tensors["make"](*sizes)
    with pytest.raises(MemoryError, match=r"^cannot allocate \d+ bytes$"):
        tensors["make"](1 << 30, 1 << 14)


@pytest.mark.parametrize("name", ["place", "place_deep"])
def test_tensor_in_a_storage(tensors, name):
    place = tensors[name]
    for fitting in ((24, 0, 2, 3), (0, 0, 0, 3), (28, 4, 3, 2), (8, 8, 0, 1 << 46), (0, 0, 1 << 46, 0), (4, 0, 1, 1)):
        assert place(*fitting) is None
    with pytest.raises(ValueError, match=r"^a tensor of 24 bytes at offset 4 does not fit into a storage of 24 bytes$"):
        place(24, 4, 2, 3)
    with pytest.raises(
        ValueError, match=r"^a tensor of 24 bytes at offset -4 does not fit into a storage of 24 bytes$"
    ):
        place(24, -4, 2, 3)
    with pytest.raises(ValueError, match=r"^cannot make a tensor whose dimension 1 is -3$"):
        place(24, 0, 2, -3)
    with pytest.raises(ValueError, match=r"^alloc_tensor: expected memory aligned to 4 bytes, got remainder 2"):
        place(32, 2, 2, 3)
    with pytest.raises(ValueError, match=r"^cannot allocate -1 bytes$"):
        place(-1, 0, 2, 3)
    with pytest.raises(MemoryError):
        place(24, 0, 1 << 32, 1 << 32)
    with pytest.raises(MemoryError, match=r"^cannot allocate a tensor of more than 2\^48 bytes$"):
        place(24, 0, 0, 1 << 62)
    with pytest.raises(MemoryError, match=r"^cannot allocate \d+ bytes$"):
        place(1 << 60, 0, 1, 1)


VIEWS = """
vm.func @flat(%o : !vm.object) -> !vm.tensor<1, f32> {
  %x = vm.check_tensor %o rank 2 dtype f32
  %n = vm.tensor_dim %x[0]
  %m = vm.tensor_dim %x[1]
  %k = vm.int mul %n, %m
  %y = vm.view %x [%k] f32
  %z = vm.view %y [%k] f32
  vm.ret %z
}
vm.func @flat_plus_one(%o : !vm.object) -> !vm.tensor<2, f32> {
  %x = vm.check_tensor %o rank 2 dtype f32
  %n = vm.tensor_dim %x[0]
  %m = vm.tensor_dim %x[1]
  %k = vm.int mul %n, %m
  %y = vm.new_tensor [%n, %m] f32
  %v = vm.view %x [%k] f32
  %w = vm.view %y [%k] f32
  %u = vm.view %w [%m, %n] f32
  vm.kill %y
  %d = vm.tensor_dim %w[0]
  vm.call_kernel @add_one[%d](%v, %w)
  vm.ret %y
}
vm.func @wrong(%o : !vm.object, %p : !vm.object, %q : !vm.object) -> !vm.tensor<2, f32> {
  %x = vm.check_tensor %o dtype f32
  %a = vm.check_int %p
  %b = vm.check_int %q
  %y = vm.view %x [%a, %b] f32
  vm.ret %y
}
vm.func @in_arena(%o : !vm.object) -> !vm.shape<2> {
  %x = vm.check_tensor %o rank 1 dtype f32
  %n = vm.tensor_dim %x[0]
  %four = vm.const 4
  %one = vm.const 1
  %zero = vm.const 0
  %size = vm.int mul %n, %four
  %s = vm.alloc_storage %size
  %t = vm.alloc_tensor %s at %zero [%n] f32
  %v = vm.view %t [%one, %n] f32
  %r = vm.shape_of %v : !vm.shape<2>
  vm.ret %r
}
vm.func @condition(%o : !vm.object) -> i1 {
  %x = vm.check_tensor %o rank 0 dtype f32
  %one = vm.const 1
  %zero = vm.const 0
  %s = vm.alloc_storage %one
  %c = vm.alloc_tensor %s at %zero [] i1
  vm.call_kernel @is_positive(%x, %c)
  %r = vm.read_cond %c
  vm.ret %r
}
"""


@pytest.fixture(scope="module")
def views(native):
    return native(VIEWS)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (1, 1)])
def test_views(views, shape):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    flat = views["flat"](array)
    assert flat.shape == (array.size,)
    assert flat.strides == (1,)
    assert flat.data_ptr() == array.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(views["flat_plus_one"](array)), array + 1)
    assert views["in_arena"](array.reshape(-1)) == (1, array.size)


def test_a_view_keeps_its_tensor_alive(views):
    flat = views["flat"](tvm_ffi.from_dlpack(np.full((300, 300), 7, np.float32)))
    gc.collect()
    assert (np.from_dlpack(flat) == 7).all()


def test_views_with_another_number_of_elements(views):
    assert views["wrong"](np.zeros((2, 3), np.float32), 3, 2).shape == (3, 2)
    with pytest.raises(ValueError, match=r"^cannot view a tensor of 6 elements as one of 8$"):
        views["wrong"](np.zeros((2, 3), np.float32), 4, 2)
    with pytest.raises(ValueError, match=r"^cannot make a tensor whose dimension 0 is -2$"):
        views["wrong"](np.zeros((2, 3), np.float32), -2, -3)


def test_condition_in_memory(views):
    assert views["condition"](np.array(2, np.float32)) is True
    assert views["condition"](np.array(-2, np.float32)) is False


def test_storage_in_a_loop(native):
    text = """
    vm.func @f(%o : !vm.object, %k : !vm.object) -> !vm.tensor<1, f32> {
      %x = vm.check_tensor %o rank 1 dtype f32
      %count = vm.check_int %k
      %n = vm.tensor_dim %x[0]
      %zero = vm.const 0
      %one = vm.const 1
      %four = vm.const 4
      vm.goto ^head(%zero, %x)
    ^head(%i : i64, %a : !vm.tensor<1, f32>):
      %more = vm.int lt %i, %count
      vm.if %more, ^body, ^done
    ^body:
      %j = vm.int add %i, %one
      %bytes = vm.int mul %n, %four
      %size = vm.int mul %bytes, %j
      %s = vm.alloc_storage %size
      %t = vm.alloc_tensor %s at %zero [%n] f32
      vm.call_kernel @add_one[%n](%a, %t)
      %b = vm.new_tensor [%n] f32
      vm.call_kernel @add_one[%n](%t, %b)
      vm.goto ^head(%j, %b)
    ^done:
      vm.ret %a
    }"""
    function = native(text)["f"]
    assert np.from_dlpack(function(np.zeros(3, np.float32), 500)).tolist() == [1000.0] * 3


ESCAPES = {
    "a result": "vm.ret %t",
    "a packed call": 'vm.call_packed "f"(%t) vm.ret',
    "a view in a tuple": "%v = vm.view %t [%n] f32 %u = vm.make_tuple(%n, %v) vm.ret",
    "a block": "vm.goto ^b(%t)\n^b(%u : !vm.tensor<1, f32>): vm.ret",
}


@pytest.mark.parametrize("way", ESCAPES)
def test_tensors_in_storages_do_not_escape(native, way):
    result = " -> !vm.tensor<1, f32>" if way == "a result" else ""
    text = f"""vm.func @f(){result} {{
      %n = vm.const 4
      %z = vm.const 0
      %s = vm.alloc_storage %n
      %t = vm.alloc_tensor %s at %z [%n] f32
      {ESCAPES[way]}
    }}"""
    with pytest.raises(InvalidModule, match=r"operand #\d is a tensor in a storage"):
        native(text)


LEAKS = """
vm.func @busy(%o : !vm.object, %f : !vm.object) -> !vm.object {
  %x = vm.check_tensor %o rank 1 dtype f32
  %n = vm.tensor_dim %x[0]
  %s = vm.shape_of %x : !vm.shape<1>
  %text = vm.str "a string that is an object"
  %y = vm.new_tensor [%n] f32
  vm.call_kernel @add_one[%n](%x, %y)
  %t = vm.make_tuple(%x, %y, %s, %text, %n)
  %z = vm.tuple_get %t[1]
  %w = vm.check_tensor %z rank 1 dtype f32
  vm.kill %z
  vm.kill %t
  %v = vm.view %w [%n] f32
  %c = vm.make_closure @inner(%v)
  %r = vm.call_closure %c(%f) : !vm.object
  vm.ret %r
}
vm.func private @inner(%a : !vm.object, %f : !vm.object) -> !vm.object {
  %r = vm.call_closure %f(%a) : !vm.object
  vm.ret %r
}
"""


def _resident_bytes() -> int:
    status = Path("/proc/self/statm").read_text().split()
    return int(status[1]) * 4096


def _stable(run, rounds: int) -> None:
    """Fails if memory goes on growing when `run` is repeated."""
    for _ in range(rounds // 10):
        run()
    before = _resident_bytes()
    for _ in range(rounds):
        run()
    assert _resident_bytes() - before < 4 << 20


def test_no_leaks(native):
    busy = native(LEAKS)["busy"]
    tensor = tvm_ffi.from_dlpack(np.zeros(64, np.float32))
    identity = native("vm.func @id(%x : !vm.object) -> !vm.object { vm.ret %x }")["id"]
    assert np.from_dlpack(busy(tensor, identity)).tolist() == [1.0] * 64
    _stable(lambda: busy(tensor, identity), 100_000)


def test_no_leaks_after_errors(native):
    busy = native(LEAKS)["busy"]
    tensor = tvm_ffi.from_dlpack(np.zeros(64, np.float32))

    def run():
        with pytest.raises(TypeError, match="invoke_closure: expected a function, got int"):
            busy(tensor, 5)

    _stable(run, 10_000)


def test_loaded_code_is_released(compiled):
    code = compiled(CHAIN)
    alive = weakref.ref(code)
    functions = load_functions(code, {})
    del code
    tensor = functions["chain"](np.zeros(3, np.float32))
    gc.collect()
    assert alive() is not None
    del functions
    gc.collect()
    assert alive() is None
    assert np.from_dlpack(tensor).tolist() == [3.0] * 3


def test_threads_have_arenas_of_their_own(chain):
    def work(seed: int) -> bool:
        generator = np.random.default_rng(seed)
        for _ in range(300):
            array = generator.random(generator.integers(0, 4000), np.float32)
            if not np.array_equal(np.from_dlpack(chain(array)), array + 3):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_call_inside_a_call_has_an_arena_of_its_own(native):
    text = """
    vm.func @outer(%o : !vm.object, %f : !vm.object) -> !vm.tensor<1, f32> {
      %x = vm.check_tensor %o rank 1 dtype f32
      %n = vm.tensor_dim %x[0]
      %four = vm.const 4
      %zero = vm.const 0
      %size = vm.int mul %n, %four
      %s = vm.alloc_storage %size
      %t = vm.alloc_tensor %s at %zero [%n] f32
      vm.call_kernel @add_one[%n](%x, %t)
      vm.call_closure %f(%f)
      %y = vm.new_tensor [%n] f32
      vm.call_kernel @add_one[%n](%t, %y)
      vm.ret %y
    }"""
    outer = native(text)["outer"]
    inner = outer(np.zeros(8, np.float32), lambda _: outer(np.full(8, 40, np.float32), lambda _: None))
    assert np.from_dlpack(inner).tolist() == [2.0] * 8
