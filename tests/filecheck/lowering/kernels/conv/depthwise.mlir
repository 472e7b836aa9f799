// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A depthwise convolution: a vector holds 8 channels, a tile 5 pixels, which share the three weights of a row of the
// window and the loads of data. No padded copy is made: rows of the window that are out of bounds are skipped.

// CHECK-LABEL: tir.prim_func @nn_conv2d(
// CHECK-NOT:     %padded
// CHECK:         tir.for (%tile)
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[5, 8], f32, scope = "local", align = 64>
// CHECK:           [[FIRST:%[0-9]+]] = arith.minsi
// CHECK:           [[END:%[0-9]+]] = arith.minsi
// CHECK:           tir.for (%r) in ([[FIRST]] to [[END]])
// CHECK-COUNT-3:     tir.load %w_1[{{.*}}] : vector<8xf32>
// CHECK-NOT:         tir.load %w_1
// CHECK-COUNT-15:    math.fma
// CHECK-NOT:         math.fma
// CHECK-COUNT-5:   tir.store {{.*}}, %conv2d_1

// Pixels at the ends of a row are computed one by one, over the taps that exist.

// CHECK:         tir.for (%pixel)
// CHECK:           tir.for (%r_1) in ({{.*}} to {{.*}})
// CHECK:             tir.for (%r_2) in ({{.*}} to {{.*}})
// CHECK:               math.fma
// CHECK-NOT:           math.fma
// CHECK:           tir.store {{.*}}, %conv2d_1

relax.func @each(%x: !relax.tensor<[1, 4, 28, 28, 16], f32>, %w: !relax.tensor<[4, 1, 3, 3, 16], f32>) -> !relax.tensor<[1, 4, 28, 28, 16], f32> {
  %0 = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1] groups = 64 data_layout = "NCHW16c" kernel_layout = "OIHW16o"
  relax.return %0
}

// All pixels of a row are in bounds where the window is one pixel wide. Its rows may not be: a loop runs over those that
// are, and nothing is unrolled.

// CHECK-LABEL: tir.prim_func @nn_conv2d_1(
// CHECK-NOT:     %padded
// CHECK:         tir.for (%tile)
// CHECK:           [[FIRST:%[0-9]+]] = arith.minsi
// CHECK:           [[END:%[0-9]+]] = arith.minsi
// CHECK:           tir.for (%r) in ([[FIRST]] to [[END]])
// CHECK:             tir.load %w_1[{{.*}}] : vector<8xf32>
// CHECK-NOT:         tir.load %w_1
// CHECK:         tir.for (%pixel)

relax.func @tall(%x: !relax.tensor<[1, 4, 28, 28, 16], f32>, %w: !relax.tensor<[4, 1, 5, 1, 16], f32>) -> !relax.tensor<[1, 4, 28, 28, 16], f32> {
  %0 = relax.nn.conv2d %x, %w padding = [2, 0, 2, 0] groups = 64 data_layout = "NCHW16c" kernel_layout = "OIHW16o"
  relax.return %0
}
