// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// How many boxes are taken depends on the data.
// CHECK-LABEL: relax.func @boxes[
// CHECK-NEXT:      %v = relax.vision.non_max_suppression %x, %s, %m, %t, %t center_point_box
// CHECK-NEXT:      %w = relax.vision.non_max_suppression %x, %s, %m, %t, %t
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "boxes"
// TYPES: "relax.vision.non_max_suppression"{{.*}} -> !relax.tensor<[_, 3], i64>
// TYPES: "relax.vision.non_max_suppression"{{.*}} -> !relax.tensor<[_, 3], i64>
relax.func @boxes[%b, %n, %c](%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %v = relax.vision.non_max_suppression %x, %s, %m, %t, %t center_point_box
  %w = relax.vision.non_max_suppression %x, %s, %m, %t, %t
  relax.return %x
}

// One size for all regions.
// CHECK-LABEL: relax.func @regions[
// CHECK-NEXT:      %0 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5
// CHECK-NEXT:      %1 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5 sampling_ratio = 2 spatial_scale = 0.0625 mode = "max_point" aligned offset = 0.5
// CHECK-NEXT:      %2 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 5 spatial_scale = 0.5
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "regions"
// TYPES: "relax.vision.roi_align"{{.*}} -> !relax.tensor<[r, c, 7, 5], f32>
// TYPES: "relax.vision.roi_align"{{.*}} -> !relax.tensor<[r, c, 7, 5], f32>
// TYPES: "relax.vision.roi_pool"{{.*}} -> !relax.tensor<[r, c, 7, 5], f32>
relax.func @regions[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5
  %1 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5 sampling_ratio = 2 spatial_scale = 0.0625 mode = "max_point" aligned offset = 0.5
  %2 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 5 spatial_scale = 0.5
  relax.return %x
}

// As many rows as the data has, counts and places apart.
// CHECK-LABEL: relax.func @rows[
// CHECK-NEXT:      %c, %r, %p = relax.vision.get_valid_counts %x
// CHECK-NEXT:      %d, %s, %q = relax.vision.get_valid_counts %x score_threshold = 0.5 id_index = -1 score_index = 2
// CHECK-NEXT:      %t, %k, %n_1 = relax.vision.box_nms %r, %c, %p
// CHECK-NEXT:      %u, %l, %m = relax.vision.box_nms %r, %c, %p max_output_size = 3 iou_threshold = 0.25 force_suppress top_k = 9 coord_start = 1 score_index = 0 id_index = -1 invalid_to_bottom soft_nms_sigma = 0.5 score_threshold = 0.125
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "rows"
// TYPES: "relax.vision.get_valid_counts"{{.*}} -> (!relax.tensor<[b], i32>, !relax.tensor<[b, n, 6], f32>, !relax.tensor<[b, n], i32>)
// TYPES: "relax.vision.box_nms"{{.*}} -> (!relax.tensor<[b, n, 6], f32>, !relax.tensor<[b, n], i32>, !relax.tensor<[b], i32>)
relax.func @rows[%b, %n](%x: !relax.tensor<[b, n, 6], f32>) -> !relax.object {
  %c, %r, %p = relax.vision.get_valid_counts %x
  %d, %s, %q = relax.vision.get_valid_counts %x score_threshold = 0.5 id_index = -1 score_index = 2
  %t, %k, %n_1 = relax.vision.box_nms %r, %c, %p
  %u, %l, %m = relax.vision.box_nms %r, %c, %p max_output_size = 3 iou_threshold = 0.25 force_suppress top_k = 9 coord_start = 1 score_index = 0 id_index = -1 invalid_to_bottom soft_nms_sigma = 0.5 score_threshold = 0.125
  relax.return %x
}
