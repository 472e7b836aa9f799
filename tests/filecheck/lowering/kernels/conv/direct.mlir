// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A convolution of 3 x 3 on blocks of 16 channels. The padding is copied once. A tile is 6 pixels of a row by a block of
// filters; the reduction goes over groups of channels, rows of the window, and the channels of a block. Weights are loaded
// in place; a pixel is broadcast.

// CHECK-LABEL: tir.prim_func @nn_conv2d(
// CHECK:         %padded = tir.alloc_buffer : !tir.buffer<[1, 4, 30, 30, 16], f32>
// CHECK:         tir.for (%row)
// CHECK:           tir.store {{.*}}, %padded_1
// CHECK-NOT:     %packed
// CHECK:         tir.for (%task)
// CHECK:           tir.for (%unit) {{.*}}relax.loop.plain_addresses
// CHECK:             tir.for (%set)
// CHECK:             tir.for (%part, %position)
// CHECK:               %sums = tir.alloc_buffer : !tir.buffer<[6, 16], f32, scope = "local", align = 64>
// CHECK:               tir.for (%r)
// CHECK:                 tir.for (%r_1)
// CHECK-COUNT-6:           tir.prefetch %padded_1[{{.*}}] level 1
// CHECK:                   tir.prefetch %w_1[{{.*}}] level 2
// CHECK:                   tir.for (%r_2)
// CHECK:                     [[W0:%[0-9]+]] = tir.load %w_1[{{.*}}] : vector<8xf32>
// CHECK:                     [[W1:%[0-9]+]] = tir.load %w_1[{{.*}}] : vector<8xf32>
// CHECK:                     [[PIXEL:%[0-9]+]] = vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK:                     math.fma {{.*}}[[W0]]
// CHECK:                     math.fma {{.*}}[[W1]]
// CHECK-COUNT-10:            math.fma
// CHECK-NOT:                 math.fma

// The last tile of a range has 5 pixels; then the tile is stored, pixels that it shares with another one once.

// CHECK:               %sums_1 = tir.alloc_buffer : !tir.buffer<[5, 16], f32, scope = "local", align = 64>
// CHECK-COUNT-10:              math.fma
// CHECK-NOT:                   math.fma
// CHECK:             tir.for (%p)
// CHECK:               tir.store {{.*}}, %conv2d_1

relax.func @blocks(%x: !relax.tensor<[1, 4, 28, 28, 16], f32>, %w: !relax.tensor<[4, 4, 3, 3, 16, 16], f32>) -> !relax.tensor<[1, 4, 28, 28, 16], f32> {
  %0 = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1] data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
  relax.return %0
}
