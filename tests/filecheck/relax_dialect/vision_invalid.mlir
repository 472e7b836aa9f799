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
