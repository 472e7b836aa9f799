"""Networks of convolutions mean the same with channels in blocks, whatever stands between the convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.pipelines import OptimizeGraphPass
from relax_dialect import BlockBuilder
from relax_dialect.builder import op
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.rearranging import LayoutTransformOp
from tests.support.programs import Tolerance, assert_same, check_pass, run_pipeline, run_with_copies, runner
from tests.support.sweeps import examples
from tir_dialect.target import Target

NEAR = Tolerance(2e-4, 2e-5)
IN_BLOCKS = "convert-layout{block=4}"


@dataclass
class Network:
    """A network under construction: the values that there are, with their channels."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    builder: BlockBuilder
    values: list[tuple[Any, int]] = field(default_factory=list)
    seed: int = 0

    def floats(self, *shape: int) -> Any:
        """A constant; each with elements of its own."""
        self.seed += 1
        return self.builder.const(np.random.default_rng(self.seed).uniform(-0.5, 0.5, shape).astype(np.float32))

    def value(self) -> tuple[Any, int]:
        return self.draw(st.sampled_from(self.values))

    def convolution(self) -> tuple[Any, int]:
        x, channels = self.value()
        size, stride = self.draw(st.sampled_from([1, 3])), self.draw(st.sampled_from([1, 1, 2]))
        if self.draw(st.booleans()):
            members = self.draw(st.sampled_from([each for each in (1, 2, 4) if channels % each == 0]))
            w = self.floats(channels, members, size, size)
            groups = channels // members
            return op.nn.conv2d(x, w, strides=[stride], padding=[size // 2], groups=groups), channels
        filters = self.draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
        w = self.floats(filters, channels, size, size)
        return op.nn.conv2d(x, w, strides=[stride], padding=[size // 2]), filters

    def elementwise(self) -> tuple[Any, int]:
        x, channels = self.value()
        functions = [op.nn.relu, op.sigmoid, op.tanh, op.nn.silu, op.cos, lambda y: op.clip(y, -0.3, 0.4)]
        return self.draw(st.sampled_from(functions))(x), channels

    def with_constant(self) -> tuple[Any, int]:
        x, channels = self.value()
        shapes = [(), (1,), (channels, 1, 1), (1, channels, 1, 1), (1, 1, 1, 1)]
        other = self.floats(*self.draw(st.sampled_from(shapes)))
        function = self.draw(st.sampled_from([op.add, op.multiply, op.maximum, op.subtract]))
        return (function(x, other) if self.draw(st.booleans()) else function(other, x)), channels

    def gate(self) -> tuple[Any, int]:
        x, channels = self.value()
        return op.multiply(x, op.sigmoid(op.mean(x, [2, 3], keepdims=True))), channels

    def residual(self) -> tuple[Any, int]:
        x, channels = self.value()
        return op.add(op.nn.relu(x), op.multiply(x, self.floats(1, channels, 1, 1))), channels

    def pool(self) -> tuple[Any, int]:
        x, channels = self.value()
        function = self.draw(st.sampled_from([op.nn.max_pool2d, op.nn.avg_pool2d]))
        include = self.draw(st.booleans())
        return function(x, [3, 3], strides=[1], padding=[1], count_include_pad=include), channels

    def joined(self) -> tuple[Any, int]:
        x, channels = self.value()
        return op.concat([x, op.negative(x)], axis=1), 2 * channels

    def padded(self) -> tuple[Any, int]:
        x, channels = self.value()
        return op.nn.pad(x, [0, 0, 0, 0, 1, 0, 0, 1], pad_value=self.draw(st.sampled_from([0.0, 0.5]))), channels

    def resized(self) -> tuple[Any, int]:
        x, channels = self.value()
        method, axis = self.draw(st.sampled_from(["nearest_neighbor", "linear"])), self.draw(st.sampled_from([2, -1]))
        return op.image.resize1d(x, 9, axis, method=method), channels

    def turned(self) -> tuple[Any, int]:
        """What no layout passes through."""
        x, channels = self.value()
        return op.permute_dims(op.permute_dims(x, [0, 1, 3, 2]), [0, 1, 3, 2]), channels


LAYERS = (
    *(Network.convolution,) * 5,
    *(Network.elementwise, Network.with_constant, Network.gate, Network.residual),
    *(Network.pool, Network.joined, Network.padded, Network.resized, Network.turned),
)


@dataclass
class Sample:
    """A module and a picture for it."""

    module: ModuleOp
    x: np.ndarray

    def __repr__(self) -> str:
        return f"{self.module}\n{self.x.shape}"


@st.composite
def networks(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Sample:
    """A module and a picture for it; batch, height and width are symbols."""
    builder = BlockBuilder()
    channels = draw(st.sampled_from([1, 3, 4, 8]))
    with builder.function("main", {"x": ("n", channels, "h", "w")}) as (x,):
        with builder.dataflow():
            network = Network(draw, builder, [(x, channels)])
            for layer in draw(st.lists(st.sampled_from(LAYERS), min_size=2, max_size=9)):
                made = layer(network)
                if made[1] <= 16:
                    network.values.append(made)
            last = network.values[-1][0]
            ends = [lambda: last, lambda: op.mean(last, [2, 3]), lambda: op.max(last, [2, 3], keepdims=True)]
            results = [builder.emit_output(each) for each in (draw(st.sampled_from(ends))(), network.value()[0])]
        builder.emit_func_output(results)
    rng = np.random.default_rng(0)
    return Sample(builder.get(), rng.uniform(-1, 1, (2, channels, 7, 6)).astype(np.float32))


@given(sample=networks())
@examples(20)
def test_results_stay(sample: Sample):
    check_pass(sample.module, IN_BLOCKS, [[sample.x]], tolerance=NEAR)


@pytest.mark.slow
@given(sample=networks())
@settings(max_examples=30)
def test_results_stay_in_machine_code(sample: Sample):
    """In blocks of the machine's vectors too, through the whole pipeline."""
    module, x = sample.module, sample.x
    expected = run_with_copies(runner(module, "main", "interpret"), [x])
    for blocks in ("convert-layout{block=4}", "convert-layout"):
        converted = module.clone()
        run_pipeline(converted, f"optimize-graph,{blocks}")
        assert_same(run_with_copies(runner(converted, "main", "native"), [x]), expected, NEAR, blocks)


def _squeezed(places: int) -> tuple[ModuleOp, np.ndarray]:
    """Convolutions around a gate that a product of matrices computes."""
    rng = np.random.default_rng(0)
    builder = BlockBuilder()

    def floats(*shape: int) -> Any:
        return builder.const(rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    with builder.function("main", {"x": ("n", 3, places, "w")}) as (x,):
        y = op.nn.relu(op.nn.conv2d(x, floats(6, 3, 3, 3), padding=[1]) + floats(6, 1, 1))
        gate = op.reshape(op.sigmoid(op.mean(y, [2, 3]) @ floats(6, 6)), op.shape(["n", 6, 1, 1]))
        y = op.nn.conv2d(y * gate, floats(8, 6, 1, 1))
        y = op.nn.conv2d(y, floats(10, 8, 3, 3), padding=[1], strides=[2])
        builder.emit_func_output(op.mean(y, [2, 3]) @ floats(10, 5))
    return builder.get(), rng.uniform(-1, 1, (2, 3, places, 7)).astype(np.float32)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("places", [1, 8])
def test_what_stands_between(places: int):
    """Values that are computed without blocks come into them; nothing of a whole picture leaves them."""
    module, x = _squeezed(places)
    converted = check_pass(module, IN_BLOCKS, [[x]], tolerance=NEAR)
    moved = [each for each in converted.walk() if isinstance(each, LayoutTransformOp)]
    assert [str(each.source.data) for each in moved] == ["NCHW"]
    outcome = run_with_copies(runner(converted, "main", "native"), [x])
    assert_same(outcome, run_with_copies(runner(module, "main", "interpret"), [x]), NEAR, "native")


def test_blocks_of_the_machine_that_is_built_for():
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", 3, "h", "w")}) as (x,):
        y = op.nn.conv2d(x, builder.const(np.ones((16, 3, 1, 1), np.float32)))
        y = op.nn.conv2d(y, builder.const(np.ones((16, 16, 1, 1), np.float32)))
        builder.emit_func_output(op.mean(y, [2, 3]))
    for name, block in {"x86-64-v4": 16, "x86-64-v3": 8, "neoverse-n1": 4}.items():
        optimized = builder.get().clone()
        OptimizeGraphPass.run(Context(), optimized, Target.parse(name))
        layouts = [each.layouts[2].text for each in optimized.walk() if isinstance(each, Conv2dOp)]
        assert layouts == [f"NCHW{block}c"] * 2


def test_any_number_of_channels():
    """Data of which only the run time knows how many channels it has is read as it is, and checked."""
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", "c", "h", "w")}) as (x,):
        y = op.nn.conv2d(x, builder.const(np.ones((8, 3, 1, 1), np.float32)))
        y = op.nn.conv2d(y, builder.const(np.ones((8, 8, 1, 1), np.float32)))
        builder.emit_func_output(op.mean(y, [2, 3]))
    converted = check_pass(builder.get(), IN_BLOCKS, [[np.ones((2, 3, 4, 5), np.float32)]])
    assert all(each.layouts[2].text == "NCHW4c" for each in converted.walk() if isinstance(each, Conv2dOp))
    with pytest.raises(ValueError, match="as many channels as the kernel's times 1 group"):
        runner(converted, "main", "native")(np.ones((2, 4, 4, 5), np.float32))


@pytest.mark.parametrize("constant", [True, False])
def test_a_layout_of_results_that_is_written_out(constant: bool):
    """As TVM prints it, with weights as parameters; the first convolution reads channels that are no blocks."""
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", 3, 28, 28), "v": (16, 3, 3, 3), "w": (16, 16, 3, 3)}) as (x, v, w):
        if constant:
            v, w = (builder.const(np.ones((16, channels, 3, 3), np.float32)) for channels in (3, 16))
        for weights in (v, w):
            x = op.nn.conv2d(x, weights, padding=[1], data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW")
        builder.emit_func_output(op.nn.relu(x))
    args = [np.ones(shape, np.float32) for shape in ((1, 3, 28, 28), (16, 3, 3, 3), (16, 16, 3, 3))]
    converted = check_pass(builder.get(), IN_BLOCKS, [args], tolerance=NEAR)
    assert [each.layouts[2].text for each in converted.walk() if isinstance(each, Conv2dOp)] == ["NCHW4c"] * 2
