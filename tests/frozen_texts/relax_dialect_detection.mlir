builtin.module {
  relax.func @rows[%b, %n](%x: !relax.tensor<[b, n, 6], f32>) -> !relax.object {
    %c, %r, %p = relax.vision.get_valid_counts %x
    %d, %s, %q = relax.vision.get_valid_counts %x score_threshold = 0.5 id_index = -1 score_index = 2
    %t, %k, %n_1 = relax.vision.box_nms %r, %c, %p
    %u, %l, %m = relax.vision.box_nms %r, %c, %p max_output_size = 3 iou_threshold = 0.25 force_suppress top_k = 9 coord_start = 1 score_index = 0 id_index = -1 invalid_to_bottom soft_nms_sigma = 0.5 score_threshold = 0.125
    relax.return %x
  }
}
