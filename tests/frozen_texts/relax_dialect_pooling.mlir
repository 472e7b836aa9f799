builtin.module {
  relax.func @windows[%n, %h](%x: !relax.tensor<[n, 3, 10], f32>, %y: !relax.tensor<[n, 3, 11, h], f32>, %z: !relax.tensor<[n, 3, 4, 5, 6], f32>) -> !relax.object {
    %0 = relax.nn.max_pool1d %x pool_size = [3]
    %1 = relax.nn.max_pool2d %y pool_size = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]
    %2 = relax.nn.max_pool2d %y pool_size = [2, 2] strides = [2, 2] ceil_mode
    %3 = relax.nn.max_pool3d %z pool_size = [2, h, n + 1] dilation = [1, 2, 3]
    %4 = relax.nn.avg_pool1d %x pool_size = [3] padding = [1, 1] count_include_pad
    %5 = relax.nn.avg_pool2d %y pool_size = [2, 2] layout = "NCHW" out_layout = "NHWC"
    %6 = relax.nn.avg_pool3d %z pool_size = [1, 2, 3]
    relax.return %x
  }
  relax.func @ceil_mode(%x: !relax.tensor<[1, 1, 5], f32>, %y: !relax.tensor<[1, 1, 3], f32>) -> !relax.object {
    %0 = relax.nn.max_pool1d %x pool_size = [2] strides = [2] ceil_mode
    %1 = relax.nn.max_pool1d %y pool_size = [1] strides = [2] padding = [0, 1] ceil_mode
    relax.return %x
  }
  relax.func @adaptive[%n, %h](%x: !relax.tensor<[n, 3, 10], f32>, %y: !relax.tensor<[n, h, h, 3], f32>, %z: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.nn.adaptive_avg_pool1d %x output_size = [3]
    %1 = relax.nn.adaptive_avg_pool2d %y output_size = [1, 1] layout = "NHWC"
    %2 = relax.nn.adaptive_avg_pool3d %z output_size = [1, h, n + 1]
    relax.return %x
  }
  relax.func @blocks[%n, %c, %h](%x: !relax.tensor<[n, c, h, 5, 16], f32>) -> !relax.object {
    %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCHW16c"
    %1 = relax.nn.avg_pool2d %x pool_size = [2, 2] layout = "NCHW16c" out_layout = "NHWC8c"
    %2 = relax.nn.adaptive_avg_pool2d %x output_size = [1, 1] layout = "NCHW16c" out_layout = "NCHW"
    relax.return %x
  }
}
