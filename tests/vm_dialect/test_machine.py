import gc
import threading
from collections.abc import Mapping, Sequence
from math import factorial as python_factorial
from typing import Any
from weakref import ref

import numpy as np
import pytest
import tvm_ffi

from tests.vm_dialect.programs import Run, depth, factorial, sum_loop
from vm_dialect import ExecBuilder, Executable, VirtualMachine
from vm_dialect.executable import FunctionKind
from vm_dialect.loading import LoadedCode
from vm_dialect.program import Site
from vm_dialect.tensors import to_numpy
from vm_dialect.thread import Decision


def counting(ib: ExecBuilder) -> None:
    """`count(n, total)`: a tail call of itself, after a move and a kill."""
    with ib.function("count", 2, ["n", "total"]):
        ib.emit_call("vm.builtin.int_eq", [ib.r(0), 0], ib.r(2))
        ib.emit_if(ib.r(2), 2)
        ib.emit_ret(ib.r(1))
        ib.emit_call("vm.builtin.int_sub", [ib.r(0), 1], ib.r(3))
        ib.emit_call("vm.builtin.int_add", [ib.r(1), 1], ib.r(4))
        ib.emit_call("count", [ib.r(3), ib.r(4)], ib.r(5))
        ib.emit_call("vm.builtin.kill", [], ib.r(3))
        ib.emit_goto(2)
        ib.emit_ret(0)
        ib.emit_call("vm.builtin.copy", [ib.r(5)], ib.r(6))
        ib.emit_ret(ib.r(6))


def test_loops(ib: ExecBuilder, run: Run):
    sum_loop(ib)
    assert run(1000) == sum(range(1000))
    assert run(0) == 0


def test_recursion_needs_no_python_stack(ib: ExecBuilder):
    factorial(ib)
    depth(ib)
    machine = VirtualMachine(ib.get())
    assert machine["fact"](20) == python_factorial(20)
    assert machine["depth"](20_000) == 20_000
    with pytest.raises(ValueError, match="a size does not fit into 64 bits"):
        machine["fact"](21)


def test_calls_are_timed(ib: ExecBuilder):
    """With the device that programs for TVM say."""
    factorial(ib)
    machine = VirtualMachine(ib.get(), tvm_ffi.device("cpu"))
    timings = machine.time_evaluator("fact", "cpu", number=2, repeat=3, min_repeat_ms=0.01)(5)
    assert len(timings.results) == 3
    assert 0 < timings.min <= timings.median <= timings.max
    assert timings.min <= timings.mean <= timings.max
    assert timings.std >= 0
    assert str(timings).startswith("min ")
    with pytest.raises(ValueError, match="expected number and repeat of at least 1, got 0 and 1"):
        machine.time_evaluator("fact", number=0)
    with pytest.raises(ValueError, match="programs run on the CPU, got the device cuda:0"):
        VirtualMachine(ib.get(), tvm_ffi.device("cuda", 0))


def test_tail_calls_reuse_the_frame(ib: ExecBuilder):
    counting(ib)
    machine = VirtualMachine(ib.get(), max_depth=5)
    assert machine["count"](50_000, 0) == 50_000


def test_recursion_has_a_limit(ib: ExecBuilder):
    depth(ib)
    machine = VirtualMachine(ib.get(), max_depth=100)
    assert machine["depth"](100) == 100
    with pytest.raises(RecursionError, match="depth: more than 100 calls inside each other: turn the recursion into"):
        machine["depth"](102)
    assert machine["depth"](3) == 3


def test_mutual_recursion(ib: ExecBuilder, run: Run):
    for name, other, base in (("even", "odd", 1), ("odd", "even", 0)):
        with ib.function(name, 1):
            ib.emit_if(ib.r(0), 4)
            ib.emit_call("vm.builtin.int_sub", [ib.r(0), 1], ib.r(1))
            ib.emit_call(other, [ib.r(1)], ib.r(2))
            ib.emit_ret(ib.r(2))
            ib.emit_ret(base)
    assert [run(n, name="even") for n in (0, 1, 10_000, 10_001)] == [1, 0, 1, 0]


def closures(ib: ExecBuilder) -> None:
    """`adder(n)` gives a function that adds; `twice(f, x)` applies one twice."""
    with ib.function("add", 2, public=False):
        ib.emit_call("test.vm.add", [ib.r(0), ib.r(1)], ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("adder", 1):
        ib.emit_call("vm.builtin.make_closure", [ib.f("add"), ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("twice", 2):
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(0), ib.r(1)], ib.r(2))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(0), ib.r(2)], ib.r(3))
        ib.emit_ret(ib.r(3))


def test_closures_are_functions(ib: ExecBuilder):
    closures(ib)
    machine = VirtualMachine(ib.get())
    add_five = machine["adder"](5)
    assert isinstance(add_five, tvm_ffi.Function)
    assert add_five(1) == 6
    assert machine["twice"](add_five, 1) == 11
    assert machine["twice"](lambda value: 3 * value, 2) == 18
    assert VirtualMachine(machine.executable)["twice"](add_five, 1) == 11


def test_closures_of_closures(ib: ExecBuilder, run: Run):
    closures(ib)
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.make_closure", [ib.f("add")], ib.r(1))
        ib.emit_call("vm.builtin.make_closure", [ib.r(1), ib.r(0)], ib.r(2))
        ib.emit_call("vm.builtin.make_closure", [ib.r(2), 2], ib.r(3))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(3)], ib.r(4))
        ib.emit_ret(ib.r(4))
    assert run(40) == 42


def test_a_closure_outlives_its_machine(ib: ExecBuilder):
    closures(ib)
    function = VirtualMachine(ib.get())["adder"](5)
    gc.collect()
    assert function(2) == 7


def test_machines_are_released(ib: ExecBuilder):
    closures(ib)
    machine = VirtualMachine(ib.get())
    assert machine["twice"](machine["adder"](1), 1) == 3
    alive = ref(machine)
    del machine
    gc.collect()
    assert alive() is None


def test_closures_call_each_other_without_end(ib: ExecBuilder):
    # A function that is given itself: tail calls through a value.
    with ib.function("loop", 2):
        ib.emit_if(ib.r(1), 4)
        ib.emit_call("vm.builtin.int_sub", [ib.r(1), 1], ib.r(2))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(0), ib.r(0), ib.r(2)], ib.r(3))
        ib.emit_ret(ib.r(3))
        ib.emit_ret("done")
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.copy", [ib.f("loop")], ib.r(1))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(1), ib.r(1), ib.r(0)], ib.r(2))
        ib.emit_ret(ib.r(2))
    assert VirtualMachine(ib.get(), max_depth=3)["main"](20_000) == "done"


def test_wrong_arguments(ib: ExecBuilder):
    closures(ib)
    machine = VirtualMachine(ib.get())
    with pytest.raises(TypeError, match=r"adder: expected 1 argument \(arg0\), got 2"):
        machine["adder"](1, 2)
    with pytest.raises(TypeError, match=r"add: expected 1 argument \(arg1\), got 2"):
        machine["adder"](1)(2, 3)
    with pytest.raises(TypeError, match="invoke_closure: expected a function, got int"):
        machine["twice"](1, 2)
    with pytest.raises(TypeError, match="expected an array, a number, a text or a tuple of these, got set"):
        machine["adder"]({1})


def test_arguments_by_name(ib: ExecBuilder):
    counting(ib)
    count = VirtualMachine(ib.get())["count"]
    assert count(total=5, n=2) == count(2, total=5) == 7
    with pytest.raises(TypeError, match="count: no parameter 'm' is left, expected total"):
        count(2, m=5)
    with pytest.raises(TypeError, match=r"count: expected 2 arguments \(n, total\), got 1"):
        count(total=1)


def test_conditions_are_numbers(ib: ExecBuilder, run: Run):
    with ib.function("main", 1):
        ib.emit_if(ib.r(0), 1)
        ib.emit_ret(ib.r(0))
    with pytest.raises(TypeError, match="if: expected a bool, got tensor") as caught:
        run(np.array(True))
    assert caught.value.__notes__ == ["in function main, instruction 0"]


def test_errors_of_packed_functions_keep_their_type(ib: ExecBuilder):
    class OwnError(Exception):
        pass

    def fail() -> None:
        raise OwnError("mine")

    with ib.function("main"):
        ib.emit_call("test.vm.own", [], location="layer 3")
        ib.emit_ret()
    with pytest.raises(OwnError, match="mine") as caught:
        VirtualMachine(ib.get(), packed={"test.vm.own": fail})["main"]()
    assert caught.value.__notes__ == ["in function main, instruction 0 (test.vm.own), from layer 3"]


@pytest.mark.parametrize(
    "error", [ValueError, TypeError, IndexError, RecursionError, ZeroDivisionError, NotImplementedError, OSError]
)
def test_errors_keep_their_type_through_the_registry(ib: ExecBuilder, error: type[Exception]):
    def fail() -> None:
        raise error("boom")

    tvm_ffi.register_global_func("test.vm.raise", fail, override=True)
    with ib.function("main"):
        ib.emit_call("test.vm.raise")
        ib.emit_ret()
    with pytest.raises(error, match="boom"):
        VirtualMachine(ib.get())["main"]()


def test_missing_functions_are_named_when_the_machine_is_made(ib: ExecBuilder):
    ib.declare_function("kernel", FunctionKind.KERNEL)
    with ib.function("main"):
        ib.emit_call("test.vm.missing")
        ib.emit_call("test.vm.gone")
        ib.emit_call("kernel")
        ib.emit_ret()
    message = (
        "no compiled code for kernel function kernel; "
        'packed function "test.vm.missing" is not registered: use tvm_ffi.register_global_func."test.vm.missing".; '
        'packed function "test.vm.gone" is not registered'
    )
    with pytest.raises(ValueError, match=message):
        VirtualMachine(ib.get(), loader=lambda executable, packed: LoadedCode())


def test_what_is_no_executable():
    for given, hint in (("m.rvm", r"Executable.load\(path\)"), (5, r"build\(module\)")):
        with pytest.raises(TypeError, match=f"expected an executable, as {hint} gives, got {type(given).__name__}"):
            VirtualMachine(given)


def test_unknown_functions(ib: ExecBuilder):
    factorial(ib)
    machine = VirtualMachine(ib.get())
    assert "fact" in machine
    assert "nothing" not in machine
    with pytest.raises(KeyError, match="no function nothing, the executable has: fact"):
        machine["nothing"]
    with pytest.raises(KeyError, match="no bytecode function nothing"):
        machine.start("nothing")


def test_kernels_and_native_functions_come_from_a_loader(ib: ExecBuilder):
    ib.declare_function("scale", FunctionKind.KERNEL)
    ib.declare_function("fast", FunctionKind.NATIVE, ["x"])
    with ib.function("main", 1):
        ib.emit_call("scale", [3, ib.r(0)])
        ib.emit_call("fast", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    seen: list[Executable] = []

    def scale(size: int, tensor: tvm_ffi.Tensor) -> None:
        to_numpy(tensor)[...] *= size

    fast = tvm_ffi.convert(lambda tensor: float(to_numpy(tensor).sum()))

    def loader(executable: Executable, packed: Mapping[str, tvm_ffi.Function]) -> LoadedCode:
        seen.append(executable)
        assert packed["test.vm.own"](1) == 2
        return LoadedCode({"fast": fast}, {"scale": scale})

    executable = ib.get()
    machine = VirtualMachine(executable, packed={"test.vm.own": lambda n: n + 1}, loader=loader)
    assert seen == [executable]
    assert machine["main"](np.ones(3)) == 9.0
    assert machine["fast"] is fast


def test_values_of_all_kinds_pass_through(ib: ExecBuilder, run: Run):
    with ib.function("main", 1):
        ib.emit_ret(ib.r(0))
    for value in (None, True, -5, 2.5, "text", tvm_ffi.Shape((1, 2))):
        assert run(value) == value
    assert list(run([1, (2.0, "x")])[1]) == [2.0, "x"]
    assert run(np.float32(1.5)) == 1.5
    x = np.zeros((2, 0, 3), np.int8)
    assert run(x).shape == (2, 0, 3)
    y = np.arange(4.0)
    assert np.shares_memory(run(y), y)


def test_stepping(ib: ExecBuilder):
    factorial(ib)
    machine = VirtualMachine(ib.get())
    thread = machine.start("fact", 3)
    trace: list[tuple[int, int]] = []
    while not thread.done:
        trace.append((thread.depth, thread.position))
        thread.run(1)
    assert thread.result == 6
    call = [0, 1, 3, 4]
    assert trace == [
        *((depth, position) for depth in (0, 1) for position in call),
        *((2, position) for position in (0, 1, 2)),
        *((depth, position) for depth in (1, 0) for position in (5, 6)),
    ]
    thread = machine.start("fact", 3)
    assert not thread.run(5)
    assert thread.code.info.name == "fact"
    assert thread.frame[0] == 2
    assert thread.run()


class Recorder:
    """Notes every call; skips those of one function."""

    def __init__(self, skipped: str = ""):
        self.skipped = skipped
        self.events: list[tuple[str, str, Any]] = []

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        self.events.append(("before", site.callee, list(arguments)))
        return Decision.SKIP if site.callee == self.skipped else Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        self.events.append(("after", site.callee, result))


def test_instruments_see_every_call(ib: ExecBuilder):
    counting(ib)
    machine = VirtualMachine(ib.get())
    recorder = Recorder()
    with machine.instrumented(recorder):
        assert machine["count"](1, 0) == 1
    calls = [event for event in recorder.events if event[1] == "count"]
    assert calls == [("before", "count", [0, 1]), ("after", "count", 1)]
    assert recorder.events[:2] == [("before", "vm.builtin.int_eq", [1, 0]), ("after", "vm.builtin.int_eq", False)]
    count = len(recorder.events)
    machine["count"](1, 0)
    assert len(recorder.events) == count


@pytest.mark.parametrize("skipped", ["test.vm.fail", "inner", "vm.builtin.invoke_closure"])
def test_instruments_may_skip_calls(ib: ExecBuilder, skipped: str):
    with ib.function("inner", 0, public=False):
        ib.emit_ret(7)
    with ib.function("main", 0):
        callee: dict[str, list[Any]] = {"test.vm.fail": ["no"], "vm.builtin.invoke_closure": [ib.f("inner")]}
        ib.emit_call(skipped, callee.get(skipped, []), ib.r(0))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    machine = VirtualMachine(ib.get())
    machine.set_instrument(Recorder(skipped))
    assert list(machine["main"]()) == [None]
    machine.set_instrument(None)


def test_profile(ib: ExecBuilder):
    sum_loop(ib)
    profile = VirtualMachine(ib.get()).profile("main", 10)
    assert profile.result == 45
    calls = {(row.site.callee, row.site.index): row.calls for row in profile.rows}
    assert calls[("vm.builtin.int_lt", 2)] == 11
    assert calls[("vm.builtin.int_add", 4)] == 10
    assert sum(row.nanoseconds for row in profile.rows) <= profile.nanoseconds
    lines = profile.as_text().splitlines()
    assert len(lines) == len(profile.rows) + 2 + 2 + len(profile.layers)
    assert [row.site.location for row in profile.layers] == ["(unknown)", "node sum"]
    assert any("vm.builtin.int_add  in main:4  # node sum" in line for line in lines)


def test_calls_from_several_threads(ib: ExecBuilder):
    factorial(ib)
    fact = VirtualMachine(ib.get())["fact"]
    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(fact(n))) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [python_factorial(n) for n in range(1, 9)]


def test_packed_functions_may_call_the_machine(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("test.vm.again", [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))

    def again(n: int) -> int:
        return 0 if n == 0 else 1 + machine["main"](n - 1)

    machine = VirtualMachine(ib.get(), packed={"test.vm.again": again})
    assert machine["main"](20) == 20
    with pytest.raises(RecursionError):
        machine["main"](100_000)


@pytest.mark.slow
def test_a_million(ib: ExecBuilder):
    sum_loop(ib)
    depth(ib)
    counting(ib)
    machine = VirtualMachine(ib.get())
    assert machine["main"](1_000_000) == sum(range(1_000_000))
    assert machine["count"](1_000_000, 0) == 1_000_000
    assert machine["depth"](1_000_000) == 1_000_000
    with pytest.raises(RecursionError, match="more than 1000000 calls"):
        machine["depth"](1_000_002)
