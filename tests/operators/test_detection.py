"""Rows of detected boxes, in every mode, against plain loops."""

import numpy as np
import pytest

from tests.operators.support import Programs, random

ROWS = "%x: !relax.tensor<[b, n, e], f32>"
KEPT = f"{ROWS}, %count: !relax.tensor<[b], i32>, %at: !relax.tensor<[b, n], i32>"
COUNTS = "%c, %r, %p = relax.vision.get_valid_counts %x"
NMS = "%r, %k, %t = relax.vision.box_nms %x, %count, %at"
OPTIONS: dict[str, dict[str, float]] = {
    "plain": {},
    "any_class": {"id_index": -1, "iou_threshold": 0.25},
    "forced": {"force_suppress": 1, "invalid_to_bottom": 1, "max_output_size": 3},
    "few": {"top_k": 4, "score_index": 0, "id_index": 1, "iou_threshold": 0.75},
    "soft": {"soft_nms_sigma": 0.25, "score_threshold": 0.125, "iou_threshold": 0.9},
    "soft_few": {"soft_nms_sigma": 2.0, "id_index": -1, "max_output_size": 2, "top_k": 5},
}


def _attributes(options: dict[str, float]) -> str:
    flags = ("force_suppress", "invalid_to_bottom")
    return " ".join(name if name in flags else f"{name} = {value}" for name, value in options.items())


PROGRAMS = Programs(
    {
        "counts": (ROWS, COUNTS),
        "counts_any": (ROWS, f"{COUNTS} score_threshold = 0.5 id_index = -1 score_index = 0"),
        "counts_f16": (ROWS.replace("f32", "f16"), COUNTS),
        **{name: (KEPT, f"{NMS} {_attributes(options)}") for name, options in OPTIONS.items()},
    }
)


def _detections(batches: int, count: int, dtype: str = "f32") -> np.ndarray:
    """Rows of class, score, corners; no two scores are equal, some corners are swapped."""
    rng = np.random.default_rng((batches, count))
    scores = (rng.permuted(np.tile(np.arange(count), (batches, 1)), axis=1) - count // 4) / max(count, 1)
    low = random("f32", batches, count, 2, low=0, high=3)
    corners = np.concatenate([low, low + random("f32", batches, count, 2, seed=1, low=-2, high=3)], 2)
    classes = rng.integers(-1, 2, (batches, count, 1))
    return np.concatenate([classes, scores[..., None], corners], 2).astype(np.float16 if dtype == "f16" else np.float32)


def _counts(x: np.ndarray, least: float = 0.0, kind: int = 0, column: int = 1):
    count, rows, places = np.zeros(len(x), np.int32), np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    for batch, data in enumerate(x):
        for place, row in enumerate(data):
            if row[column] > least and (kind < 0 or row[kind] >= 0):
                rows[batch, count[batch]], places[batch, count[batch]] = row, place
                count[batch] += 1
    return count, rows, places


@pytest.mark.parametrize(("batches", "count"), [(2, 9), (1, 1), (1, 0), (0, 3)])
def test_get_valid_counts(batches: int, count: int):
    x = _detections(batches, count)
    PROGRAMS.check("counts", [x], _counts(x))
    PROGRAMS.check("counts_any", [x], _counts(x, 0.5, -1, 0))
    half = _detections(batches, count, "f16")
    PROGRAMS.check("counts_f16", [half], _counts(half))


def _share(p: np.ndarray, q: np.ndarray) -> float:
    low = np.maximum(np.minimum(p[:2], p[2:]), np.minimum(q[:2], q[2:]))
    shared = np.maximum(np.minimum(np.maximum(p[:2], p[2:]), np.maximum(q[:2], q[2:])) - low, 0).prod()
    union = np.abs(p[2:] - p[:2]).prod() + np.abs(q[2:] - q[:2]).prod() - shared
    return shared / union if union > 0 else 0


def _nms(x: np.ndarray, count: np.ndarray, indices: np.ndarray, options: dict[str, float]):
    column, kind = int(options.get("score_index", 1)), int(options.get("id_index", 0))
    sigma, iou, least = (options.get(each, 0) for each in ("soft_nms_sigma", "iou_threshold", "score_threshold"))
    most, limit = int(options.get("max_output_size", -1)), int(options.get("top_k", -1))
    rows, kept, taken = np.full_like(x, -1), np.full_like(indices, -1), np.zeros_like(count)
    for batch, length in enumerate(count):
        ranked = sorted(range(min(length, x.shape[1])), key=lambda at: -x[batch, at, column])
        left = {rank: x[batch, place].copy() for rank, place in enumerate(ranked[: limit if limit > 0 else None])}
        while (most <= 0 or taken[batch] < most) and any(row[column] > least for row in left.values()):
            best = max(left, key=lambda rank: left[rank][column])
            row = left.pop(best)
            at = taken[batch] if sigma > 0 or "invalid_to_bottom" in options else best
            rows[batch, at], kept[batch, taken[batch]] = row, indices[batch, ranked[best]]
            taken[batch] += 1
            for rank, other in list(left.items()):
                if "force_suppress" in options or kind < 0 or other[kind] == row[kind]:
                    share = _share(row[2:6], other[2:6])
                    if share >= (iou or 0.5):
                        del left[rank]
                    elif sigma > 0:
                        other[column] *= np.exp(-share * share / (2 * sigma))
    return rows, kept, taken


@pytest.mark.parametrize(("batches", "count", "columns"), [(2, 12, 6), (1, 20, 7), (1, 1, 6), (1, 0, 6), (0, 3, 6)])
def test_box_nms(batches: int, count: int, columns: int):
    x = np.concatenate([_detections(batches, count), random("f32", batches, count, columns - 6)], 2)
    x[..., :2] = x[..., 1::-1] if count == 20 else x[..., :2]
    indices = np.arange(batches * count, dtype=np.int32).reshape(batches, count)[:, ::-1] * 2
    for length in (count, count // 2, count + 5, -1):
        valid = np.array([max(length - batch, -1) for batch in range(batches)], np.int32)
        for name, options in OPTIONS.items():
            given = [x, valid, np.ascontiguousarray(indices)]
            PROGRAMS.check(name, given, _nms(*given, options))
