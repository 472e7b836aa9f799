builtin.module {
  relax.func @moved[%n](%x: !relax.tensor<[n, 4, 5, 6], f32>, %w: !relax.tensor<[6, 2, 3, 3], f32>, %o: !relax.tensor<[n, 36, 5, 6], f32>, %m: !relax.tensor<[n, 18, 5, 6], f32>) -> !relax.object {
    %0 = relax.nn.deform_conv2d %x, %w, %o, %m padding = [1, 1, 1, 1] groups = 2 offset_groups = 2
    relax.return %x
  }
  relax.func @folded[%n, %c, %m](%x: !relax.tensor<[n, 6 * c, 4 * m], f32>, %s: !relax.shape<[5, m]>, %y: !relax.tensor<[n, 9, 4], i32>) -> !relax.object {
    %0 = relax.nn.col2im %x, %s window = [2, 1]
    %t = relax.shape [6, 6]
    %1 = relax.nn.col2im %y, %t window = [3, 3] strides = [2, 2] padding = [0, 0, 1, 1] dilation = [2, 2]
    relax.return %x
  }
}
