"""The list of schedule primitives, made from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

from tir_dialect.schedule import Schedule

GROUPS = {
    "Finding blocks and loops": "work_on enter_postproc get_block get_blocks get_loops get_child_blocks",
    "Data flow between blocks": "get_producers get_consumers get_output_blocks annotate_buffer_access",
    "Loops": "split fuse reorder reorder_block_iter_var tile add_unit_loop loop_partition merge",
    "Loop kinds and annotations": "parallel vectorize unroll bind annotate unannotate",
    "Compute location": "compute_inline reverse_compute_inline compute_at reverse_compute_at rolling_buffer",
    "Caching": "cache_read cache_write cache_inplace cache_index read_at write_at reindex reindex_cache_read "
    "reindex_cache_write",
    "Layouts and storage": "set_scope storage_align unsafe_set_dtype transform_layout transform_block_layout",
    "Padding": "pad_einsum can_decompose_padding decompose_padding",
    "Reductions": "decompose_reduction rfactor fuse_reduction_epilogue",
    "Blocks and tensorization": "blockize tensorize",
    "Sampling": "sample_categorical sample_perfect_tile sample_partitioned_tile sample_compute_location",
}
MARK = "<!-- generated: schedule primitives -->\n"


def with_primitives(page: str) -> str:
    """The page with the list behind its mark brought up to date."""
    written, mark, _ = page.partition(MARK)
    return f"{written}{mark}{primitives()}"


def primitives() -> str:
    """Each group: a table of those without an example, then the others with what they make of one and refuse."""
    return "".join(_group(title, names.split()) for title, names in GROUPS.items())


def _group(title: str, names: Sequence[str]) -> str:
    examples = {name: _rewrite(name) for name in names}
    rows = [f"| `{name}{_parameters(name)}` | {_summary(name)} |" for name in names if not examples[name]]
    table = ["| | |", "|---|---|", *rows, ""] if rows else []
    shown = [
        f"`{name}{_parameters(name)}`: {_summary(name)}\n\n```text\n{example}\n```\n{_refusals(name)}"
        for name, example in examples.items()
        if example
    ]
    return "\n".join([f"\n### {title}\n", *table, *shown]).rstrip() + "\n"


def _parameters(name: str) -> str:
    shown = list(inspect.signature(getattr(Schedule, name)).parameters)[1:]
    return f"({', '.join(shown)})"


def _summary(name: str) -> str:
    return " ".join(_doc(name).split("\n\n")[0].split())


def _rewrite(name: str) -> str:
    """The example in the docstring of a primitive: before, and `->` after."""
    _, _, rest = _doc(name).partition("\nrewrite:\n")
    return inspect.cleandoc(rest.split("\n\n")[0])


def _refusals(name: str) -> str:
    """The numbered list of a docstring."""
    _, _, conditions = _doc(name).partition("\nRefuses:\n")
    lines = " ".join(conditions.split())
    items = re.sub(r" (?=\d+\. )", "\n", lines)
    return f"\nRefuses:\n\n{items}\n" if items else ""


def _doc(name: str) -> str:
    return inspect.getdoc(getattr(Schedule, name)) or ""
