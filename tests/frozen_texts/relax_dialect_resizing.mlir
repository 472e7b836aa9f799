builtin.module {
  relax.func @resized[%n, %m](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.image.resize1d %x axis = 0 length = 2 * n
    %1 = relax.image.resize1d %x length = 5 scale = 0.625 method = "cubic" coordinates = "tf_crop_and_resize" cubic_alpha = -0.5 exclude_outside antialias extrapolation_value = 7.0 roi = [0.1, 0.9]
    %2 = relax.image.resize1d %u length = n method = "nearest_neighbor" rounding = "ceil"
    relax.return %x
  }
}
