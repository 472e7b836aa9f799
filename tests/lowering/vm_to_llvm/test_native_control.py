"""Branches, loops, calls between functions, recursion."""

import numpy as np
import pytest

from vm_dialect.errors import register_error_types

register_error_types()

LOOPS = """
vm.func @sum(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  %zero = vm.const 0
  %one = vm.const 1
  vm.goto ^head(%zero, %zero)
^head(%i : i64, %s : i64):
  %more = vm.int lt %i, %n
  vm.if %more, ^body, ^done
^body:
  %t = vm.int add %s, %i
  %j = vm.int add %i, %one
  vm.goto ^head(%j, %t)
^done:
  vm.ret %s
}
vm.func @swap(%x : !vm.object, %a : !vm.object, %b : !vm.object) -> !vm.object {
  %n = vm.check_int %x
  %zero = vm.const 0
  %one = vm.const 1
  vm.goto ^head(%zero, %a, %b)
^head(%i : i64, %p : !vm.object, %q : !vm.object):
  %more = vm.int lt %i, %n
  %j = vm.int add %i, %one
  vm.if %more, ^head(%j, %q, %p), ^done
^done:
  %t = vm.make_tuple(%p, %q)
  vm.ret %t
}
vm.func @choose(%c : !vm.object, %a : !vm.object) -> !vm.object {
  %b = vm.check_bool %c
  %five = vm.const 5
  %half = vm.const 0.5 : f64
  vm.if %b, ^join(%a), ^other
^other:
  vm.if %b, ^join(%five), ^join(%half)
^join(%r : !vm.object):
  vm.ret %r
}
vm.func @nest(%x : !vm.object) -> !vm.object {
  %n = vm.check_int %x
  %zero = vm.const 0
  %one = vm.const 1
  %null = vm.null
  vm.goto ^head(%zero, %null)
^head(%i : i64, %list : !vm.object):
  %more = vm.int lt %i, %n
  vm.if %more, ^body, ^done
^body:
  %longer = vm.make_tuple(%i, %list)
  %j = vm.int add %i, %one
  vm.goto ^head(%j, %longer)
^done:
  vm.ret %list
}
vm.func @grow(%x : !vm.object, %k : !vm.object) -> !vm.tensor<1, f32> {
  %t = vm.check_tensor %x rank 1 dtype f32
  %n = vm.check_int %k
  %zero = vm.const 0
  %one = vm.const 1
  vm.goto ^head(%zero, %t)
^head(%i : i64, %a : !vm.tensor<1, f32>):
  %more = vm.int lt %i, %n
  vm.if %more, ^body, ^done
^body:
  %d = vm.tensor_dim %a[0]
  %b = vm.new_tensor [%d] f32
  vm.call_kernel @add_one[%d](%a, %b)
  %j = vm.int add %i, %one
  vm.goto ^head(%j, %b)
^done:
  vm.ret %a
}
vm.func @unreachable() -> i64 {
  %one = vm.const 1
  vm.ret %one
^never(%i : i64):
  vm.goto ^never(%i)
}
"""


@pytest.fixture(scope="module")
def loops(native):
    return native(LOOPS)


@pytest.mark.parametrize("count", [-1, 0, 1, 1_000_000])
def test_loop_over_integers(loops, count):
    assert loops["sum"](count) == sum(range(count))


@pytest.mark.parametrize("count", [0, 1, 2, 1_000_001])
def test_loop_that_swaps_objects(loops, count):
    first, second = ["a string that is an object", "another string object"][:: -1 if count % 2 else 1]
    assert list(loops["swap"](count, "a string that is an object", "another string object")) == [first, second]


def test_block_arguments_of_several_kinds(loops):
    assert loops["choose"](True, "a string that is an object") == "a string that is an object"
    assert loops["choose"](False, "a") == 0.5


def test_loop_that_builds_objects(loops):
    result, expected = loops["nest"](100), 99
    while result is not None:
        assert result[0] == expected
        result, expected = result[1], expected - 1


@pytest.mark.parametrize("size", [0, 1, 5])
def test_loop_over_tensors(loops, size):
    array = np.zeros(size, np.float32)
    assert np.from_dlpack(loops["grow"](array, 1000)).tolist() == [1000.0] * size
    assert np.shares_memory(np.from_dlpack(loops["grow"](array, 0)), array) == (size > 0)


def test_unreachable_block(loops):
    assert loops["unreachable"]() == 1


def test_a_function_that_does_not_end(native):
    text = """
    vm.func private @spin(%x : !vm.object) -> !vm.object {
      %t = vm.make_tuple(%x)
      vm.goto ^b(%x)
    ^b(%y : !vm.object):
      vm.goto ^b(%y)
    }
    vm.func private @circle(%x : i64) -> i64 {
      %r = vm.call @circle(%x) : i64
      vm.ret %r
    }
    vm.func @ends(%c : !vm.object) -> i64 {
      %one = vm.const 1
      %b = vm.check_bool %c
      vm.if %b, ^done, ^spin
    ^spin:
      %r = vm.call @spin(%c) : !vm.object
      %s = vm.call @circle(%one) : i64
      vm.ret %s
    ^done:
      vm.ret %one
    }"""
    assert native(text)["ends"](True) == 1


CALLS = """
vm.func private @twice(%n : i64, %f : f64, %b : i1, %x : !vm.object) -> i64 {
  %r = vm.int add %n, %n
  vm.ret %r
}
vm.func @numbers(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  %f = vm.const 0.5 : f64
  %b = vm.const true
  %r = vm.call @twice(%n, %f, %b, %n) : i64
  vm.ret %r
}
vm.func private @pick(%b : i1, %x : !vm.tensor<1, f32>, %o : !vm.object) -> !vm.object {
  %d = vm.tensor_dim %x[0]
  vm.if %b, ^yes, ^no
^yes:
  vm.ret %x
^no:
  vm.ret %d
}
vm.func @objects(%c : !vm.object, %x : !vm.object) -> !vm.object {
  %b = vm.check_bool %c
  %t = vm.check_tensor %x rank 1 dtype f32
  %null = vm.null
  %r = vm.call @pick(%b, %t, %null) : !vm.object
  vm.ret %r
}
vm.func private @check(%x : !vm.object) {
  %n = vm.check_int %x as "check: argument #0 (x)"
  vm.ret
}
vm.func @nothing(%x : !vm.object) -> !vm.object {
  vm.call @check(%x)
  vm.ret %x
}
vm.func private @half(%n : i64) -> f64 {
  %f = vm.const 0.5 : f64
  vm.ret %f
}
vm.func private @odd(%n : i64) -> i1 {
  %two = vm.const 2
  %one = vm.const 1
  %r = vm.int mod %n, %two
  %c = vm.int eq %r, %one
  vm.ret %c
}
vm.func @results(%x : !vm.object) -> !vm.object {
  %n = vm.check_int %x
  %h = vm.call @half(%n) : f64
  %o = vm.call @odd(%n) : i1
  %t = vm.make_tuple(%h, %o)
  vm.ret %t
}
"""


def test_calls_between_functions(native):
    functions = native(CALLS)
    assert set(functions) == {"numbers", "objects", "nothing", "results"}
    assert functions["numbers"](21) == 42
    array = np.zeros(3, np.float32)
    assert np.shares_memory(np.from_dlpack(functions["objects"](True, array)), array)
    assert functions["objects"](False, array) == 3
    assert functions["nothing"](7) == 7
    assert list(functions["results"](3)) == [0.5, True]
    with pytest.raises(TypeError, match=r"^check: argument #0 \(x\): expected an int, got string$"):
        functions["nothing"]("seven")


RECURSION = """
vm.func private @fib(%n : i64) -> i64 {
  %two = vm.const 2
  %one = vm.const 1
  %small = vm.int lt %n, %two
  vm.if %small, ^base, ^step
^base:
  vm.ret %n
^step:
  %a = vm.int sub %n, %one
  %b = vm.int sub %n, %two
  %p = vm.call @fib(%a) : i64
  %q = vm.call @fib(%b) : i64
  %r = vm.int add %p, %q
  vm.ret %r
}
vm.func @fibonacci(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  %r = vm.call @fib(%n) : i64
  vm.ret %r
}
vm.func private @down(%n : i64) -> i64 {
  %zero = vm.const 0
  %one = vm.const 1
  %stop = vm.int le %n, %zero
  vm.if %stop, ^base, ^step
^base:
  vm.ret %zero
^step:
  %m = vm.int sub %n, %one
  %d = vm.call @down(%m) : i64
  %r = vm.int add %d, %one
  vm.ret %r
}
vm.func @depth(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  %r = vm.call @down(%n) : i64
  vm.ret %r
}
vm.func @tail(%x : !vm.object, %list : !vm.object) -> !vm.object {
  %n = vm.check_int %x
  %zero = vm.const 0
  %one = vm.const 1
  %stop = vm.int le %n, %zero
  vm.if %stop, ^base, ^step
^base:
  vm.ret %list
^step:
  %m = vm.int sub %n, %one
  %t = vm.make_tuple(%n, %x)
  %r = vm.call @tail(%m, %t) : !vm.object
  vm.ret %r
}
vm.func private @even(%n : i64, %x : !vm.object) -> i1 {
  %zero = vm.const 0
  %one = vm.const 1
  %yes = vm.const true
  %stop = vm.int eq %n, %zero
  vm.if %stop, ^base, ^step
^base:
  vm.ret %yes
^step:
  %m = vm.int sub %n, %one
  %r = vm.call @odd(%x, %m) : i1
  vm.ret %r
}
vm.func private @odd(%x : !vm.object, %n : i64) -> i1 {
  %zero = vm.const 0
  %one = vm.const 1
  %no = vm.const false
  %stop = vm.int eq %n, %zero
  vm.if %stop, ^base, ^step
^base:
  vm.ret %no
^step:
  %m = vm.int sub %n, %one
  %r = vm.call @even(%m, %x) : i1
  vm.ret %r
}
vm.func @is_even(%n : !vm.object) -> i1 {
  %m = vm.check_int %n
  %s = vm.str "a string that is an object"
  %r = vm.call @even(%m, %s) : i1
  vm.ret %r
}
"""


@pytest.fixture(scope="module")
def recursion(native):
    return native(RECURSION)


def test_recursion(recursion):
    assert recursion["fibonacci"](20) == 6765
    assert recursion["depth"](10_000) == 10_000


@pytest.mark.parametrize("depth", [10**7, 10**9])
def test_recursion_that_is_too_deep(recursion, depth):
    with pytest.raises(RecursionError, match=r"^down: more than \d{4,} calls inside each other: turn the recursion"):
        recursion["depth"](depth)
    assert recursion["depth"](10) == 10


@pytest.mark.parametrize("depth", [0, 1, 2, 100_001, 1_000_000])
def test_tail_recursion_needs_no_stack(recursion, depth):
    assert recursion["is_even"](depth) == (depth % 2 == 0)
    result = recursion["tail"](depth, None)
    assert result is None if depth == 0 else list(result) == [1, 1]


def test_tail_call_error(recursion):
    with pytest.raises(TypeError, match=r"^value: expected an int, got string$"):
        recursion["tail"]("one", None)
