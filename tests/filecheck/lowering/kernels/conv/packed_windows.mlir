// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A convolution in NCHW is a packed GEMM: filters are rows, pixels of the output are columns. The offset of each element
// of the window is computed once; a panel gathers the windows of 16 pixels, row by row of the image, a vector at a time.

// CHECK-LABEL: tir.prim_func @nn_conv2d(
// CHECK:         %padded = tir.alloc_buffer : !tir.buffer<[1, 3, 34, 34], f32>
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[2, 32, 16], f32, align = 64>
// CHECK:         tir.for (%k_block, %section, %block)
// CHECK:           %offsets = tir.alloc_buffer : !tir.buffer<[32], i64, align = 64>
// CHECK:           tir.for (%r)
// CHECK:             tir.store {{.*}}, %offsets[%r]
// CHECK:           tir.for (%panel)
// CHECK:             tir.for (%r_1)
// CHECK:               tir.load %offsets[%r_1]
// CHECK:               [[MASK:%[0-9]+]] = vector.create_mask
// CHECK:               [[WINDOW:%[0-9]+]] = tir.load %padded_1[{{.*}}] mask [[MASK]] : vector<8xf32>
// CHECK:               tir.store [[WINDOW]], {{.*}} mask [[MASK]]

// 16 filters are two strips of 6 rows and one of 4. All lanes have pixels.

// CHECK:             tir.for (%strip)
// CHECK:               tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}(%w_1
// CHECK:               tir.call unchecked @relax.routine.tile.f32.4x16{{.*}}(%w_1
// CHECK-NOT:           vector.create_mask
// CHECK:               tir.store {{.*}}, %conv2d_1

relax.func @image(%x: !relax.tensor<[1, 3, 32, 32], f32>, %w: !relax.tensor<[16, 3, 3, 3], f32>) -> !relax.tensor<[1, 16, 32, 32], f32> {
  %0 = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1]
  relax.return %0
}
