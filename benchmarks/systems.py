"""The systems that are compared: each makes a function of an ONNX file, dynamic dimensions left dynamic.

They get the file, the number of threads, and the precision of matrix products and convolutions: `f32` or `bf16`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Run = Callable[["Mapping[str, np.ndarray]"], Callable[[], Sequence[Any]]]
"""Given inputs by name, a call of the compiled model on them; results are arrays or DLPack tensors."""


def ours(path: str, threads: int, precision: str) -> Run:
    """xdsl-relax, native mode; in other precisions than `f32` after `to-mixed-precision`."""
    # tvm-ffi imports PyTorch where it is installed, for symbols of which nothing is used here
    sys.modules.setdefault("torch", None)
    from lowering import build
    from relax_dialect.frontend.onnx import import_model
    from vm_dialect import VirtualMachine
    from xdsl_relax.passes import run_passes

    module = import_model(path)
    if precision != "f32":
        module = run_passes(module, f"to-mixed-precision{{dtype={precision}}}")
    main = VirtualMachine(build(module))["main"]

    def run(inputs: Mapping[str, np.ndarray]) -> Callable[[], Sequence[Any]]:
        import tvm_ffi

        arguments = [tvm_ffi.from_dlpack(inputs[name]) for name in _input_names(path)]

        def call() -> Sequence[Any]:
            result = main(*arguments)
            return [result] if isinstance(result, tvm_ffi.Tensor) else result

        return call

    return run


def onnxruntime(path: str, threads: int, precision: str) -> Run:
    """ONNX Runtime on the CPU, which computes in the precision of the file."""
    import onnxruntime as ort

    return _session(path, threads, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)


def reference(path: str, threads: int, precision: str) -> Run:
    """ONNX Runtime node by node, whose results are what the file means: optimised it rounds quantised values
    otherwise.
    """
    import onnxruntime as ort

    return _session(path, threads, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)


def _session(path: str, threads: int, level: Any) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: lambda: session.run(None, dict(inputs))


def openvino(path: str, threads: int, precision: str) -> Run:
    """OpenVINO on the CPU, for latency."""
    import openvino as ov

    core = ov.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()

    def run(inputs: Mapping[str, np.ndarray]) -> Callable[[], Sequence[Any]]:
        def call() -> Sequence[Any]:
            return list(request.infer(dict(inputs), share_inputs=True, share_outputs=True).values())

        return call

    return run


def tvm(path: str, threads: int, precision: str) -> Run:
    """TVM's default pipeline for the CPU, in the precision of the file."""
    import onnx
    import tvm as peer
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    os.environ["TVM_NUM_THREADS"] = str(threads)
    module = from_onnx(onnx.load(path), keep_params_in_input=False)
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), peer.cpu())

    def run(inputs: Mapping[str, np.ndarray]) -> Callable[[], Sequence[Any]]:
        arguments = [peer.runtime.tensor(inputs[name]) for name in _input_names(path)]

        def call() -> Sequence[Any]:
            result = machine["main"](*arguments)
            return [each.numpy() for each in result] if hasattr(result, "__len__") else [result.numpy()]

        return call

    return run


def iree(path: str, threads: int, precision: str) -> Run:
    """IREE for the CPU of this machine; one thread runs without its task system. In the precision of the file."""
    from iree import compiler, runtime
    from iree.compiler.tools.import_onnx import __main__ as importer

    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/model.mlir"
        importer.main(importer.parse_arguments([path, "-o", text]))
        options = ["--iree-llvmcpu-target-cpu=host"]
        code = compiler.compile_file(text, target_backends=["llvm-cpu"], input_type="onnx", extra_args=options)
    if threads > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    context = runtime.SystemContext(config=runtime.Config("local-task" if threads > 1 else "local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))

    def run(inputs: Mapping[str, np.ndarray]) -> Callable[[], Sequence[Any]]:
        main = context.modules.module[_graph(path).name]
        arguments = [runtime.asdevicearray(context.config.device, inputs[name]) for name in _input_names(path)]

        def call() -> Sequence[Any]:
            result = main(*arguments)
            return [each.to_host() for each in (result if isinstance(result, tuple) else (result,))]

        return call

    return run


def _graph(path: str) -> Any:
    import onnx

    return onnx.load(path).graph


def _input_names(path: str) -> list[str]:
    return [each.name for each in _graph(path).input]


SYSTEMS: Mapping[str, Callable[[str, int, str], Run]] = {
    "ours": ours,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "tvm": tvm,
    "iree": iree,
}
"""What is timed."""
