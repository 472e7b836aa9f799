"""Tensors that a program names twice, such as a buffer that the model also keeps as an attribute of something else.

PyTorch lifts the second one as a constant. It cannot decompose a program that changes one of both.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from relax_dialect.frontend.torch.library import is_tensor, torch
from relax_dialect.frontend.torch.program import ExportedProgram


def without_aliases(program: ExportedProgram) -> ExportedProgram:
    """The program with each of its tensors named once; itself if there are no two names of one."""
    same = _second_names(program)
    if not same:
        return program
    library, values = torch(), dict[Any, Any]()
    source, graph = program.graph_module.graph, torch().fx.Graph()
    inputs = {node.name: node for node in source.nodes if node.op == "placeholder"}
    for node in source.nodes:
        if node.name in same:
            values[node] = values[inputs[same[node.name]]]
        elif node.op == "output":
            graph.output(library.fx.map_arg(node.args[0], values.__getitem__)).meta = dict(node.meta)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    signature = program.graph_signature
    kept = [spec for spec in signature.input_specs if spec.arg.name not in same]
    whole: Any = program
    return library.export.ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=library.export.ExportGraphSignature(kept, signature.output_specs),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=whole.module_call_graph,
        example_inputs=whole.example_inputs,
        constants=program.constants,
        verifiers=whole.verifiers,
    )


def _second_names(program: ExportedProgram) -> dict[str, str]:
    """The inputs of the graph that are the same tensor as an earlier one, with the name of that."""
    first, second = dict[Hashable, str](), dict[str, str]()
    for spec in program.graph_signature.input_specs:
        found = program.state_dict.get(spec.target or "", program.constants.get(spec.target or ""))
        if spec.kind.name not in ("BUFFER", "CONSTANT_TENSOR") or not is_tensor(found) or not found.numel():
            continue
        key = found.data_ptr(), tuple(found.shape), tuple(found.stride()), found.dtype
        if first.setdefault(key, spec.arg.name) != spec.arg.name:
            second[spec.arg.name] = first[key]
    return second
