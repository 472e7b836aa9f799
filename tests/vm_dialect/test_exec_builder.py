"""Programs built by hand; the cases follow TVM's `test_vm_execbuilder.py`."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import tvm_ffi

from tests.vm_dialect.programs import Run
from vm_dialect import ExecBuilder, VirtualMachine
from vm_dialect.dtypes import element_type
from vm_dialect.executable.model import Call, OperandKind


def test_execute(ib: ExecBuilder, run: Run):
    with ib.function("main", num_inputs=2):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    a, b = np.random.default_rng(0).random((2, 4))
    np.testing.assert_array_equal(run(a, b), a + b)


def test_several_functions(ib: ExecBuilder, run: Run):
    for name, function in (("add", "test.vm.add"), ("mul", "test.vm.mul")):
        with ib.function(name, num_inputs=2):
            ib.emit_call(function, args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
    a, b = np.random.default_rng(0).random((2, 4))
    np.testing.assert_array_equal(run(a, b, name="add"), a + b)
    np.testing.assert_array_equal(run(a, b, name="mul"), a * b)


def test_a_function_may_be_called_before_it_is_defined(ib: ExecBuilder, run: Run):
    with ib.function("main", 1):
        ib.emit_call("double", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("double", 1):
        ib.emit_call("vm.builtin.int_add", [ib.r(0), ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    assert run(21) == 42


def test_a_register_is_written_before_it_is_read(ib: ExecBuilder):
    def define() -> None:
        with ib.function("main", num_inputs=2):
            ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(2)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))

    with pytest.raises(ValueError, match="instruction 0: register %2 is read before it is written"):
        define()


def test_a_register_is_written_on_every_path(ib: ExecBuilder):
    def define() -> None:
        with ib.function("main", num_inputs=1):
            ib.emit_if(ib.r(0), 2)
            ib.emit_call("vm.builtin.copy", [1], ib.r(1))
            ib.emit_ret(ib.r(1))

    with pytest.raises(ValueError, match="instruction 2: register %1 is read before it is written"):
        define()


@pytest.mark.parametrize("value", [-1, 0, (1 << 55) - 1, -(1 << 55), 1 << 55, -(1 << 63), (1 << 63) - 1])
def test_integers_of_any_size(ib: ExecBuilder, run: Run, value: int):
    with ib.function("main", 1):
        ib.emit_call("test.vm.identity", [value], ib.r(1))
        ib.emit_ret(ib.r(1))
    assert run(0) == value


def test_immediates_have_56_bits(ib: ExecBuilder):
    assert ib.imm(-(1 << 55)).value == -(1 << 55)
    with pytest.raises(ValueError, match="does not fit into 56 bits"):
        ib.imm(1 << 55)
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        ib.convert_constant(1 << 63)


def test_names_and_constants_are_kept_once(ib: ExecBuilder):
    with ib.function("main", 1):
        for _ in range(2):
            ib.emit_call("test.vm.add", [ib.r(0), 0.5], ib.r(1))
        assert ib.convert_constant(0.5) == ib.c(0)
        assert ib.convert_constant(-0.0) != ib.convert_constant(0.0)
        assert ib.convert_constant(True) != ib.convert_constant(1.0)
        ib.emit_ret(ib.r(1))
    executable = ib.get()
    assert executable.packed_functions == ("test.vm.add",)
    assert len({instruction.function for instruction in executable.code if isinstance(instruction, Call)}) == 1


def test_registers_are_numbered_by_use(ib: ExecBuilder, run: Run):
    with ib.function("main", num_inputs=2):
        ib.emit_call("test.vm.add", [ib.r(0), ib.r(1)], ib.r(100))
        ib.emit_call("test.vm.mul", [ib.r(1), ib.r(100)], ib.r(50))
        ib.emit_ret(ib.r(50))
    executable = ib.get()
    assert executable.functions[0].frame_size == 4
    destinations = [instruction.destination for instruction in executable.code if isinstance(instruction, Call)]
    assert destinations == [2, 3]
    np.testing.assert_array_equal(run(np.ones(3), np.full(3, 2.0)), np.full(3, 6.0))


def test_operands(ib: ExecBuilder):
    assert ib.r(0).kind is OperandKind.REGISTER
    assert ib.imm(10).kind is OperandKind.IMMEDIATE
    assert ib.convert_constant("s").kind is OperandKind.CONSTANT
    assert ib.f("f").kind is OperandKind.FUNCTION
    for wrong in (lambda: ib.r(-1), lambda: ib.c(1)):
        with pytest.raises(ValueError, match=r"expected a number >= 0|constant 1 is out of range"):
            wrong()


def test_shape_of_and_shape_heap(ib: ExecBuilder, run: Run):
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.alloc_shape_heap", args=[2], dst=ib.r(1))
        ib.emit_call("vm.builtin.shape_of", args=[ib.r(0)], dst=ib.r(2))
        ib.emit_call("vm.builtin.store_shape", args=[ib.r(2), ib.r(1), 0, 1])
        ib.emit_call("vm.builtin.load_shape", args=[ib.r(1), 1, 0], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    assert run(np.zeros((32, 16))) == (16, 32)


def test_storage(ib: ExecBuilder, run: Run):
    with ib.function("main", num_inputs=0):
        ib.emit_call("vm.builtin.alloc_storage", [128], ib.r(0))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 64, element_type("f32"), 4, 4], ib.r(1))
        ib.emit_call("vm.builtin.kill", [], ib.r(0))
        ib.emit_ret(ib.r(1))
    result = run()
    assert result.shape == (4, 4)
    assert result.dtype == np.float32
    assert result.ctypes.data % 64 == 0


def test_goto(ib: ExecBuilder, run: Run):
    with ib.function("main", num_inputs=2):
        ib.emit_call("test.vm.add", [ib.r(0), ib.r(1)], ib.r(2))
        ib.emit_goto(2)
        ib.emit_call("test.vm.mul", [ib.r(2), ib.r(1)], ib.r(2))
        ib.emit_ret(ib.r(2))
    np.testing.assert_array_equal(run(np.ones(2), np.full(2, 5.0)), np.full(2, 6.0))


@pytest.mark.parametrize("condition", [True, False, 1, 0, -7])
def test_if(ib: ExecBuilder, run: Run, condition: int):
    with ib.function("main", num_inputs=3):
        ib.emit_if(ib.r(0), 3)
        ib.emit_call("test.vm.add", [ib.r(1), ib.r(2)], ib.r(3))
        ib.emit_goto(2)
        ib.emit_call("test.vm.mul", [ib.r(1), ib.r(2)], ib.r(3))
        ib.emit_ret(ib.r(3))
    assert run(condition, np.full(2, 2.0), np.full(2, 3.0))[0] == (5 if condition else 6)


def test_invoke_closure(ib: ExecBuilder, run: Run):
    with ib.function("lambda", num_inputs=4, public=False):
        ib.emit_call("test.vm.add", [ib.r(0), ib.r(1)], ib.r(4))
        ib.emit_call("test.vm.add", [ib.r(2), ib.r(3)], ib.r(5))
        ib.emit_call("test.vm.add", [ib.r(4), ib.r(5)], ib.r(6))
        ib.emit_ret(ib.r(6))
    with ib.function("main", num_inputs=4):
        ib.emit_call("vm.builtin.make_closure", [ib.f("lambda"), ib.r(0), ib.r(1)], ib.r(4))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(4), ib.r(2), ib.r(3)], ib.r(5))
        ib.emit_ret(ib.r(5))
    arrays = [np.full(2, float(value)) for value in (1, 2, 4, 8)]
    np.testing.assert_array_equal(run(*arrays), np.full(2, 15.0))


def test_the_machine_works_after_a_failure(ib: ExecBuilder):
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.fail", ["no such item"], ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("good", num_inputs=1):
        ib.emit_call("main", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(0))
    machine = VirtualMachine(ib.get())
    for _ in range(2):
        with pytest.raises(IndexError, match="no such item"):
            machine["good"](1)


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda ib: None, "function main is empty"),
        (lambda ib: ib.emit_goto(5), "instruction 0: jump out of it"),
        (lambda ib: ib.emit_if(ib.r(0), 1), "instruction 0: the end can be reached"),
        (lambda ib: ib.emit_call("test.vm.add", [ib.r(0), ib.r(0)]), "instruction 0: the end can be reached"),
    ],
)
def test_checks_at_the_end_of_a_function(ib: ExecBuilder, emit: Callable[[ExecBuilder], None], message: str):
    with pytest.raises(ValueError, match=message), ib.function("main", 1):
        emit(ib)


def test_misuse_is_an_error(ib: ExecBuilder):
    with pytest.raises(ValueError, match="emitted inside `with"):
        ib.emit_ret(1)
    with ib.function("main", 1):
        with pytest.raises(ValueError, match="begins inside function main"), ib.function("inner"):
            pass
        with pytest.raises(ValueError, match="expected a register"):
            ib.emit_call("test.vm.add", [1, 2], ib.imm(3))
        with pytest.raises(TypeError, match="set cannot be a constant"):
            ib.convert_constant(cast("Any", {1}))
        ib.emit_ret(ib.r(0))
    with pytest.raises(ValueError, match="main is defined already"), ib.function("main"):
        pass
    with pytest.raises(ValueError, match="1 names for 2 inputs"), ib.function("f", 2, ["x"]):
        pass


def test_the_number_of_arguments_is_checked(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("other", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("other", 2):
        ib.emit_ret(ib.r(0))
    with pytest.raises(ValueError, match="instruction 0: call of other expected 2 arguments, got 1"):
        ib.get()


def test_tensors_are_shared_by_identity_or_name(ib: ExecBuilder):
    tensor = tvm_ffi.from_dlpack(np.zeros(2))
    assert ib.convert_constant(tensor) == ib.convert_constant(tensor)
    assert ib.convert_constant(tensor, "w") == ib.convert_constant(np.ones(2), "w")
    assert ib.convert_constant(np.zeros(2)) != ib.convert_constant(np.zeros(2))
