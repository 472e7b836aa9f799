"""What becomes of an exported program, and of one that cannot be imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from xdsl.dialects.builtin import NameLoc

from lowering import build
from relax_dialect.frontend.torch import TorchImportError, from_exported_program
from relax_dialect.ops.values import ConstantOp
from tests.relax_dialect.frontend.torch.programs import assert_same, export
from tir_dialect.weights import WeightAttr
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy
from xdsl_relax.cli.relax_opt import main as opt
from xdsl_relax.cli.relax_run import main as run
from xdsl_relax.cli.relax_translate import main as translate

Tensor = torch.Tensor
X = torch.randn(4, 4)


def _header(model: Any, args: Any, dynamic: Any = None) -> str:
    return str(from_exported_program(export(model, args, dynamic))).splitlines()[1]


def test_sizes_are_symbols_with_bounds():
    def function(x: Tensor, y: Tensor) -> Any:
        count = x.shape[0]
        return x[:-1] + y, x * count, x / count**0.5, count * 2, x.new_zeros(count + 1)

    time = Dim("time", min=1, max=32)
    args = (torch.randn(5, 2), torch.randn(4, 2))
    module = assert_same(function, args, ({0: time + 1}, {0: time}), (torch.randn(3, 2), torch.randn(2, 2)))
    assert " in [1, 32]](" in str(module)
    assert "+ 1, 2], f32>, %args_1:" in str(module)


def test_sizes_of_0_and_1_are_taken():
    """PyTorch says that these sizes are at least 2, and runs its own programs with less."""

    def function(x: Tensor, y: Tensor) -> Any:
        z = torch.cat([x, y]).softmax(-1)
        return z, x + y, x @ y.T, x.reshape(-1), x.mean(1), z[1:], x.expand(2, -1, -1)

    sizes = [(torch.randn(n, 3), torch.randn(n, 3)) for n in (5, 2, 1)]
    module = assert_same(function, sizes[0], ({0: Dim.AUTO}, {0: Dim.AUTO}), *sizes[1:])
    for how in (Dim.DYNAMIC, Dim("rows", min=2)):
        assert str(from_exported_program(export(function, sizes[0], ({0: how}, {0: how})))) == str(module)
    assert_same(lambda x: (x * 2, x.sum(1)), (torch.randn(3, 3),), ({0: Dim.AUTO},), (torch.randn(0, 3),))


def test_a_size_of_1_is_refused_where_the_rank_depends_on_it():
    main = VirtualMachine(build(from_exported_program(export(lambda x: x.squeeze(0), (X,), ({0: Dim.AUTO},)))))["main"]
    assert main(X).shape == (4, 4)
    with pytest.raises(ValueError, match="in the range at least 2, got 1"):
        main(X[:1])


def test_data_become_sizes():
    def function(x: Tensor, mask: Tensor, n: Tensor) -> Any:
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        some = x[mask]
        return some * 2, some.shape[0], x.narrow(0, 0, k) * x.sum().item(), torch.zeros(k, 2)

    args = (X, torch.tensor([True, False, True, True]), torch.tensor(3))
    assert_same(function, args, None, (X, torch.zeros(4, dtype=torch.bool), torch.tensor(0)))


def test_branches_and_loops():
    def function(x: Tensor) -> Any:
        y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))
        loop = torch._higher_order_ops.while_loop
        return loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), (torch.tensor(0), y))[1]

    assert_same(function, (torch.ones(3),), ({0: Dim.AUTO},), (-torch.ones(2),))


def test_what_is_inlined_or_known():
    def function(x: Tensor, times: int, *, _: None = None) -> Any:
        with torch.no_grad():
            y = x * times
        return {"b": y + 1, "a": (y, [x])}

    assert_same(function, (X, 3))


class Cached(nn.Module):
    """A module that changes a buffer and its input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(8, 4))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.cache[at] = x
        x.mul_(2)
        return self.cache.sum(0)


def test_what_changes_comes_last():
    module = from_exported_program(export(Cached(), (torch.randn(4), torch.tensor([2]))))
    text = str(module)
    assert (
        "@main(%x: !relax.tensor<[4], f32>, %at: !relax.tensor<[1], i64>, %b_cache: !relax.tensor<[8, 4], f32>)" in text
    )
    results = ["!relax.tensor<[4], f32>", "!relax.tensor<[8, 4], f32>", "!relax.tensor<[4], f32>"]
    assert f"-> !relax.tuple<{', '.join(results)}>" in text


class Shared(nn.Module):
    """A static cache as transformers has it: a buffer that the layers know as an attribute of a plain object."""

    class Layer:
        def __init__(self, keys: Tensor):
            self.keys = keys

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(8, 4), persistent=False)
        self.layer = Shared.Layer(self.keys)

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.layer.keys.index_copy_(0, at, x)
        return self.layer.keys.sum(0)


def test_a_buffer_with_two_names_is_one():
    program = torch.export.export(Shared(), (torch.randn(1, 4), torch.tensor([2])), strict=False)
    module = from_exported_program(program)
    assert "%b_keys: !relax.tensor<[8, 4], f32>" in str(module)
    x, at, keys = torch.ones(1, 4), torch.tensor([3]), torch.full((8, 4), 2.0)
    total, after = map(to_numpy, VirtualMachine(build(module))["main"](x, at, keys))
    assert total.tolist() == [15.0] * 4
    assert after[:, 0].tolist() == [2, 2, 2, 1, 2, 2, 2, 2]


def test_weights_share_memory_and_nodes_have_names():
    model = nn.Sequential(nn.Linear(64, 32), nn.GELU())
    module = from_exported_program(export(model, (torch.randn(2, 64),)))
    weights = [op.value for op in module.walk() if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr)]
    assert [weight.weight_name for weight in weights] == ["0.weight"]
    assert weights[0].array is not None
    assert np.shares_memory(weights[0].array, model[0].weight.detach().numpy())
    names = {op.location.desc.data for op in module.walk() if isinstance(op.location, NameLoc)}
    assert {"0/linear", "1/gelu"} <= names


def test_layers_stay_whole():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Softmax(-1)).eval()
    text = str(from_exported_program(export(model, (X,))))
    for name in ("matmul", "nn.layer_norm", "nn.gelu", "nn.softmax"):
        assert text.count(f"relax.{name} ") == 1


def test_all_unsupported_operators_are_told():
    def function(x: Tensor) -> Any:
        return torch.hash_tensor(x), torch.poisson(x), torch.poisson(x + 1)

    with pytest.raises(TorchImportError, match="operators that are not supported") as caught:
        from_exported_program(export(function, (X,)))
    found = {each.name: len(each.nodes) for each in caught.value.operators}
    assert found == {"aten.poisson.default": 2, "aten.hash_tensor.default": 1}
    message = str(caught.value)
    assert "there is no converter" in message
    assert f'File "{export.__code__.co_filename}", line' in message
    assert '@relax_dialect.frontend.torch.converts("' in message


def test_what_a_converter_refuses_is_told():
    with pytest.raises(TorchImportError, match=r"aten\.pow\..* .*integers to negative powers are not supported"):
        from_exported_program(export(lambda x: x.int() ** -2, (X,)))


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, text, weights = (str(tmp_path / name) for name in ("m.pt2", "m.mlir", "m.safetensors"))
    torch.export.save(export(nn.Linear(64, 32), (torch.randn(2, 64),)), path)
    assert translate(["--import-torch", path, "-o", text, "--save-weights", weights]) == 0
    assert run([path, "--random", "f32[2,64]"]) == 0
    assert run([text, "--weights", weights, "--random", "f32[2,64]"]) == 0
    assert opt([path, "-p", "fuse-ops"]) == 0
    assert "relax.matmul" in capsys.readouterr().out
    (tmp_path / "m.pt2").write_bytes(b"nothing of the kind")
    assert run([path]) == 1
    assert "the file cannot be read" in capsys.readouterr().err


def test_each_input_has_its_name():
    class Difference(nn.Module):
        def forward(self, token_1, token_0):
            return token_1 - token_0

    ten, one = torch.full((2,), 10.0), torch.ones(2)
    program = torch.export.export(Difference(), (ten, one))
    main = VirtualMachine(build(from_exported_program(program)))["main"]
    assert to_numpy(main(token_0=one, token_1=ten)).tolist() == [9, 9]
