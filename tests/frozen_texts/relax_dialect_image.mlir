builtin.module {
  relax.func @resize[%n, %h](%x: !relax.tensor<[n, 3, h, h], f32>, %y: !relax.tensor<[n, 4, 5, 3], ui8>, %u: !relax.shape<*>) -> !relax.object {
    %s = relax.shape [2 * h, 7]
    %0 = relax.image.resize2d %x, %s
    %1 = relax.image.resize2d %y, %s method = "nearest_neighbor" coordinates = "asymmetric" rounding = "floor" layout = "NHWC" out_dtype = f32
    %2 = relax.image.resize2d %x, %u method = "cubic" coordinates = "tf_crop_and_resize" cubic_alpha = -0.75 cubic_exclude extrapolation_value = 1.0 roi = [0.0, 0.0, 0.5, 1.0]
    relax.return %x
  }
}
