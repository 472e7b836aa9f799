"""The list of schedule primitives, made from their docstrings."""

from __future__ import annotations

import inspect

from tir_dialect.schedule import Schedule

GROUPS = {
    "Finding blocks and loops": "get_block get_blocks get_loops get_child_blocks",
    "What blocks use": "get_producers get_consumers get_output_blocks annotate_buffer_access",
    "Loops": "split fuse reorder reorder_block_iter_var tile add_unit_loop loop_partition merge",
    "Kinds of loops, notes": "parallel vectorize unroll bind annotate unannotate",
    "Where something is computed": "compute_inline reverse_compute_inline compute_at reverse_compute_at",
    "Copies and memory": "cache_read cache_write cache_inplace reindex reindex_cache_read reindex_cache_write",
    "Layouts and scopes": "set_scope storage_align transform_layout transform_block_layout pad_einsum decompose_padding",
    "Reductions": "decompose_reduction rfactor fuse_reduction_epilogue",
    "Blocks of blocks": "blockize tensorize",
    "Choices at random": "sample_categorical sample_perfect_tile sample_compute_location",
}
MARK = "<!-- generated: schedule primitives -->\n"


def with_primitives(page: str) -> str:
    """The page with the list behind its mark brought up to date."""
    written, mark, _ = page.partition(MARK)
    return f"{written}{mark}{primitives()}"


def primitives() -> str:
    """A table of each group: the call, and the first paragraph of what is said of it."""
    parts: list[str] = []
    for title, names in GROUPS.items():
        rows = [f"| `{name}{_parameters(name)}` | {_summary(name)} |" for name in names.split()]
        parts.append("\n".join([f"\n### {title}\n", "| | |", "|---|---|", *rows]))
    return "\n".join(parts) + "\n"


def _parameters(name: str) -> str:
    shown = list(inspect.signature(getattr(Schedule, name)).parameters)[1:]
    return f"({', '.join(shown)})"


def _summary(name: str) -> str:
    return " ".join((inspect.getdoc(getattr(Schedule, name)) or "").split("\n\n")[0].split())
