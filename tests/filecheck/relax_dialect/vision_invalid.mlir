// RUN: RELAX_INVALID

// CHECK: 'relax.vision.non_max_suppression' op expected a score for each box, got n and 4 * n + 1
relax.func @vision_non_max_suppression_c1[%b, %n, %c](%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, 4*n+1], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.vision.non_max_suppression %x, %s, %m, %t, %t
  relax.return %x
}

// -----

// CHECK: 'relax.vision.non_max_suppression' op operand #0 expected rank 3, got !relax.tensor<[n, 4], f32>
relax.func @vision_non_max_suppression_c1[%n, %b, %c](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.vision.non_max_suppression %x, %s, %m, %t, %t
  relax.return %x
}

// -----

// CHECK: 'relax.vision.non_max_suppression' op expected boxes of four numbers, got 5 and 4
relax.func @vision_non_max_suppression_c2[%b, %n, %c](%x: !relax.tensor<[b, n, 5], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.vision.non_max_suppression %x, %s, %m, %t, %t
  relax.return %x
}

// -----

// CHECK: 'relax.vision.non_max_suppression' op operand #2 expected rank 0, got !relax.tensor<[1], i64>
relax.func @vision_non_max_suppression_c3[%b, %n, %c](%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[1], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.vision.non_max_suppression %x, %s, %m, %t, %t
  relax.return %x
}

// -----

// CHECK: 'relax.vision.non_max_suppression' op operand #2 expected an integer dtype, got f32
relax.func @vision_non_max_suppression_c3[%b, %n, %c](%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.vision.non_max_suppression %x, %s, %t, %t, %t
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_align' op expected regions of four numbers, got 5 and 4
relax.func @vision_roi_align_c1[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 5], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_align' op operand #2 expected an integer dtype, got f32
relax.func @vision_roi_align_c2[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], f32>) -> !relax.object {
  %0 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_align' op expected a size of at least 1 and a ratio of at least 0, got 0, 5, 0
relax.func @vision_roi_align_c3[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_align %x, %rois, %at height = 0 width = 5
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_align' op mode expected avg, max, max_point, got mean
relax.func @vision_roi_align_c4[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_align %x, %rois, %at height = 1 width = 5 mode = "mean"
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_pool' op expected regions of four numbers, got 5 and 4
relax.func @vision_roi_pool_c1[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 5], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 5
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_pool' op operand #2 expected an integer dtype, got f32
relax.func @vision_roi_pool_c2[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], f32>) -> !relax.object {
  %0 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 5
  relax.return %x
}

// -----

// CHECK: 'relax.vision.roi_pool' op expected a size of at least 1, got 7 and 0
relax.func @vision_roi_pool_c3[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
  %0 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 0
  relax.return %x
}

// -----

// CHECK: 'relax.vision.get_valid_counts' op operand #0 expected rank 3, got !relax.tensor<[b, n], i32>
relax.func @vision_get_valid_counts_c1[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.get_valid_counts %i
  relax.return %x
}

// -----

// CHECK: 'relax.vision.get_valid_counts' op operand #0 expected a floating-point dtype, got i8
relax.func @vision_get_valid_counts_c1[%b, %n](%x: !relax.tensor<[b, n, 6], i8>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.get_valid_counts %x
  relax.return %x
}

// -----

// CHECK: 'relax.vision.get_valid_counts' op expected rows with all columns from score_index on, got 7 and 6
relax.func @vision_get_valid_counts_c2[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.get_valid_counts %x score_index = 6
  relax.return %x
}

// -----

// CHECK: 'relax.vision.get_valid_counts' op id_index expected at least -1, got -2
relax.func @vision_get_valid_counts_c2[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.get_valid_counts %x id_index = -2
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op operand #0 expected a floating-point dtype, got i8
relax.func @vision_box_nms_c1[%b, %n](%x: !relax.tensor<[b, n, 6], i8>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op expected an index for each row, got n and 4 * n + 1
relax.func @vision_box_nms_c2[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, 4*n+1], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op operand #1 expected an integer dtype, got f32
relax.func @vision_box_nms_c2[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], f32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op operand #2 expected a signed integer dtype, got ui8
relax.func @vision_box_nms_c2[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], ui8>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op expected rows with all columns from coord_start on, got 7 and 6
relax.func @vision_box_nms_c3[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i coord_start = 3
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op score_index expected at least 0, got -1
relax.func @vision_box_nms_c3[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i score_index = -1
  relax.return %x
}

// -----

// CHECK: 'relax.vision.box_nms' op soft_nms_sigma expected at least 0, got -1.0
relax.func @vision_box_nms_c4[%b, %n](%x: !relax.tensor<[b, n, 6], f32>, %c: !relax.tensor<[b], i32>, %i: !relax.tensor<[b, n], i32>) -> !relax.object {
  %0, %1, %2 = relax.vision.box_nms %x, %c, %i soft_nms_sigma = -1.0
  relax.return %x
}
