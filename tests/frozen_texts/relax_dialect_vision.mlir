builtin.module {
  relax.func @boxes[%b, %n, %c](%x: !relax.tensor<[b, n, 4], f32>, %s: !relax.tensor<[b, c, n], f32>, %m: !relax.tensor<[], i64>, %t: !relax.tensor<[], f32>) -> !relax.object {
    %v = relax.vision.non_max_suppression %x, %s, %m, %t, %t center_point_box
    %w = relax.vision.non_max_suppression %x, %s, %m, %t, %t
    relax.return %x
  }
  relax.func @regions[%b, %c, %h, %w, %r](%x: !relax.tensor<[b, c, h, w], f32>, %rois: !relax.tensor<[r, 4], f32>, %at: !relax.tensor<[r], i64>) -> !relax.object {
    %0 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5
    %1 = relax.vision.roi_align %x, %rois, %at height = 7 width = 5 sampling_ratio = 2 spatial_scale = 0.0625 mode = "max_point" aligned offset = 0.5
    %2 = relax.vision.roi_pool %x, %rois, %at height = 7 width = 5 spatial_scale = 0.5
    relax.return %x
  }
}
