"""Operators of object detection, in every mode, against plain loops."""

import numpy as np
import pytest

from tests.operators.support import Programs, Tolerance, random
from tests.support.programs import MODES

BOXES = "%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>"
LIMITS = "%max: !relax.tensor<[], i64>, %iou: !relax.tensor<[], f32>, %least: !relax.tensor<[], f32>"
IMAGE = "%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>"
NMS = "relax.vision.non_max_suppression %x, %s, %max, %iou, %least"
ALIGN = "relax.vision.roi_align %x, %rois, %at height = 3 width = 2"
HALF = IMAGE.replace("f32", "f16")
PROGRAMS = Programs(
    {
        "nms": (f"{BOXES}, {LIMITS}", NMS),
        "nms_center": (f"{BOXES}, {LIMITS}", f"{NMS} center_point_box"),
        "align": (IMAGE, f"{ALIGN} spatial_scale = 0.5 sampling_ratio = 2"),
        "align_free": (IMAGE, f"{ALIGN} aligned offset = 0.5"),
        "align_max": (IMAGE, f'{ALIGN} mode = "max" aligned offset = 0.5 sampling_ratio = 3'),
        "align_point": (IMAGE, f'{ALIGN} mode = "max_point" aligned sampling_ratio = 2'),
        "pool": (IMAGE, "relax.vision.roi_pool %x, %rois, %at height = 3 width = 2 spatial_scale = 0.5"),
        "align_f16": (HALF, f"{ALIGN} sampling_ratio = 1"),
    }
)


def _share(p: np.ndarray, q: np.ndarray) -> float:
    """Of two boxes as least and greatest coordinates."""
    height, width = min(p[2], q[2]) - max(p[0], q[0]), min(p[3], q[3]) - max(p[1], q[1])
    shared = max(height, 0) * max(width, 0)
    union = (p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - shared
    return shared / union if shared > 0 else 0


def _nms(boxes: np.ndarray, scores: np.ndarray, limit: int, iou: float, least: float) -> np.ndarray:
    rows: list[tuple[int, int, int]] = []
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            left = [i for i in range(scores.shape[2]) if scores[b, c, i] > least]
            count = 0
            while left and count < limit:
                best = max(left, key=lambda i: (scores[b, c, i], -i))
                rows.append((b, c, best))
                count += 1
                left = [i for i in left if i != best and _share(boxes[b, best], boxes[b, i]) <= iou]
    return np.array(rows, np.int64).reshape(-1, 3)


def _boxes(batches: int, count: int) -> np.ndarray:
    low = random("f32", batches, count, 2, low=0, high=4)
    return np.concatenate([low, low + random("f32", batches, count, 2, seed=1, low=0.5, high=3)], 2)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 9), (1, 2, 40), (1, 1, 0), (0, 1, 3)])
def test_non_max_suppression(sizes: tuple[int, int, int]):
    batches, classes, count = sizes
    boxes, scores = _boxes(batches, count), random("f32", batches, classes, count, seed=2, low=0, high=2)
    flipped = boxes[..., [2, 1, 0, 3]].copy()
    size = boxes[..., 2:] - boxes[..., :2]
    center = np.concatenate([(boxes[..., :2] + size / 2)[..., ::-1], size[..., ::-1]], 2).astype(np.float32)
    for limit, iou, least in ((100, 0.5, -np.inf), (2, 0.25, 0.5), (0, 0.5, 0.0), (9, 1.0, 1.0)):
        limits = [np.array(limit), np.asarray(iou, np.float32), np.asarray(least, np.float32)]
        expected = _nms(boxes, scores, limit, iou, least)
        PROGRAMS.check("nms", [boxes, scores, *limits], expected)
        PROGRAMS.check("nms", [flipped, scores, *limits], expected)
        PROGRAMS.check("nms_center", [center, scores, *limits], expected)


def _sample(image: np.ndarray, y: float, x: float) -> list[np.ndarray]:
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return [np.zeros(image.shape[0])] * 4
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    at = image.astype(np.float64)
    upper = [at[:, top, left] * (1 - dy) * (1 - dx), at[:, top, right] * (1 - dy) * dx]
    return [*upper, at[:, bottom, left] * dy * (1 - dx), at[:, bottom, right] * dy * dx]


def _align(
    x: np.ndarray, rois: np.ndarray, at: np.ndarray, ratio: int, scale: float, mode: str, aligned: bool, offset: float
):
    join = {"avg": lambda p: p.sum(1).mean(0), "max": lambda p: p.max((0, 1)), "max_point": lambda p: p.sum(1).max(0)}
    result = np.zeros((len(rois), x.shape[1], 3, 2))
    for r, roi in enumerate(rois.astype(np.float64)):
        x1, y1, x2, y2 = roi * scale - offset
        height, width = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        rows, columns = (ratio, ratio) if ratio else (int(np.ceil(height / 3)), int(np.ceil(width / 2)))
        for i in range(3):
            for j in range(2):
                points = [
                    _sample(
                        x[at[r]], y1 + (i + (p + 0.5) / rows) * height / 3, x1 + (j + (q + 0.5) / columns) * width / 2
                    )
                    for p in range(rows)
                    for q in range(columns)
                ]
                if points:
                    result[r, :, i, j] = join[mode](np.array(points))
    return result.astype(x.dtype)


@pytest.mark.parametrize(("count", "shape"), [(0, (1, 1, 2, 2)), (1, (1, 1, 1, 1)), (5, (2, 3, 6, 5))])
def test_roi_align(count: int, shape: tuple[int, ...]):
    x, at = random("f32", *shape), np.arange(count) % shape[0]
    low = random("f32", count, 2, seed=1, low=-2, high=4)
    rois = np.concatenate([low, low + random("f32", count, 2, seed=2, low=0.5, high=6)], 1)
    near = Tolerance(1e-4, 1e-5)
    PROGRAMS.check("align", [x, rois, at], _align(x, rois, at, 2, 0.5, "avg", False, 0), near)
    PROGRAMS.check("align_free", [x, rois, at], _align(x, rois, at, 0, 1.0, "avg", True, 0.5), near)
    PROGRAMS.check("align_max", [x, rois, at], _align(x, rois, at, 3, 1.0, "max", True, 0.5), near)
    PROGRAMS.check("align_point", [x, rois, at], _align(x, rois, at, 2, 1.0, "max_point", True, 0), near)
    half = [x.astype(np.float16), rois.astype(np.float16), at]
    PROGRAMS.check("align_f16", half, _align(*half, 1, 1.0, "avg", False, 0), Tolerance(2e-3, 2e-3))


def _pool(x: np.ndarray, rois: np.ndarray, at: np.ndarray) -> np.ndarray:
    result = np.zeros((len(rois), x.shape[1], 3, 2), np.float32)
    for r, roi in enumerate(rois.astype(np.float64) * 0.5):
        x1, y1, x2, y2 = (int(np.sign(each) * np.floor(abs(each) + 0.5)) for each in roi)
        height, width = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i, j in np.ndindex(3, 2):
            rows = range(int(np.floor(i * height / 3)) + y1, int(np.ceil((i + 1) * height / 3)) + y1)
            columns = range(int(np.floor(j * width / 2)) + x1, int(np.ceil((j + 1) * width / 2)) + x1)
            inside = [(y, c) for y in rows for c in columns if 0 <= y < x.shape[2] and 0 <= c < x.shape[3]]
            for channel in range(x.shape[1]):
                result[r, channel, i, j] = max((x[at[r], channel, y, c] for y, c in inside), default=0)
    return result


@pytest.mark.parametrize(("count", "shape"), [(0, (1, 1, 2, 2)), (1, (1, 1, 1, 1)), (7, (2, 3, 6, 5))])
def test_roi_pool(count: int, shape: tuple[int, ...]):
    x, at = random("f32", *shape), np.arange(count) % shape[0]
    low = random("f32", count, 2, seed=1, low=-4, high=8)
    rois = np.concatenate([low, low + random("f32", count, 2, seed=2, low=-1, high=12)], 1)
    PROGRAMS.check("pool", [x, rois, at], _pool(x, rois, at))


@pytest.mark.parametrize("name", ["align", "align_free", "align_max", "align_point", "pool"])
def test_regions_beyond_all_bounds(name: str):
    """Points that are not finite are outside, corners are limited, and the nearest image counts for one that there is
    not.
    """
    x, far = random("f32", 2, 1, 4, 4, low=1, high=2), 1e30 if name == "pool" else np.inf
    rois = np.array([[0, 0, far, 3], [np.nan] * 4, [-far, 1, 3, 3], [far, far, far, far], [0, 0, 8, 8]], np.float32)
    at = np.array([0, 1, 1, 0, 9])
    expected = np.zeros((5, 1, 3, 2), np.float32)
    expected[4:] = PROGRAMS.runners["interpret"](name)(x, rois[4:], np.array([1]))
    if name == "pool":
        limited = np.clip(np.nan_to_num(rois), -2000, 2000)  # beyond the image all the same
        expected = _pool(x, limited, np.minimum(at, 1))
    PROGRAMS.check(name, [x, rois, at], expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["align", "pool"])
def test_regions_without_images(name: str, mode: str):
    run, rois = PROGRAMS.runners[mode](name), np.zeros((1, 4), np.float32)
    for shape in ((0, 1, 4, 4), (1, 1, 0, 4), (1, 1, 4, 0)):
        with pytest.raises(ValueError, match="images with elements for the regions"):
            run(np.zeros(shape, np.float32), rois, np.array([0]))


ROWS = "%x: !relax.tensor<[b, n, e], f32>"
KEPT = f"{ROWS}, %count: !relax.tensor<[b], i32>, %at: !relax.tensor<[b, n], i32>"
COUNTS = "%c, %r, %p = relax.vision.get_valid_counts %x"
DETECTION_NMS = "%r, %k, %t = relax.vision.box_nms %x, %count, %at"
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


DETECTION_PROGRAMS = Programs(
    {
        "counts": (ROWS, COUNTS),
        "counts_any": (ROWS, f"{COUNTS} score_threshold = 0.5 id_index = -1 score_index = 0"),
        "counts_f16": (ROWS.replace("f32", "f16"), COUNTS),
        **{name: (KEPT, f"{DETECTION_NMS} {_attributes(options)}") for name, options in OPTIONS.items()},
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
    DETECTION_PROGRAMS.check("counts", [x], _counts(x))
    DETECTION_PROGRAMS.check("counts_any", [x], _counts(x, 0.5, -1, 0))
    half = _detections(batches, count, "f16")
    DETECTION_PROGRAMS.check("counts_f16", [half], _counts(half))


def _detection_share(p: np.ndarray, q: np.ndarray) -> float:
    low = np.maximum(np.minimum(p[:2], p[2:]), np.minimum(q[:2], q[2:]))
    shared = np.maximum(np.minimum(np.maximum(p[:2], p[2:]), np.maximum(q[:2], q[2:])) - low, 0).prod()
    union = np.abs(p[2:] - p[:2]).prod() + np.abs(q[2:] - q[:2]).prod() - shared
    return shared / union if union > 0 else 0


def _detection_nms(x: np.ndarray, count: np.ndarray, indices: np.ndarray, options: dict[str, float]):
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
                    share = _detection_share(row[2:6], other[2:6])
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
            DETECTION_PROGRAMS.check(name, given, _detection_nms(*given, options))
