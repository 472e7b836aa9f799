// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"znver4 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s --check-prefix PAIRS

// A depthwise convolution of bytes that are padded with a number. A vector has the groups of 16 channels, a group the
// bytes of four rows of the image, of which two rows of the output take three each. No padded copy is made.

// CHECK-LABEL: tir.prim_func @fused_nn_pad_nn_conv2d[
// CHECK-NOT:     %pad
// CHECK:         tir.for (%unit)
// CHECK:           tir.for (%v)
// CHECK:             %weights = tir.alloc_buffer : !tir.buffer<[6, 16], i32, scope = "local", align = 64>
// CHECK:             %begin = tir.alloc_buffer : !tir.buffer<[2, 16], i32, scope = "local", align = 64>

// Weights of rows out of bounds are 0. Their products with the padding, four times 7 in a word, are added before.

// CHECK-COUNT-9:     tir.load %k_1[{{.*}}] : vector<16xi8>
// CHECK:             [[KEPT:%[0-9]+]] = vector.broadcast {{.*}} : i32 to vector<16xi32>
// CHECK:             [[WHOLE:%[0-9]+]] = vector.bitcast {{.*}} : vector<64xi8> to vector<16xi32>
// CHECK:             [[SOME:%[0-9]+]] = arith.andi [[WHOLE]], [[KEPT]]
// CHECK:             [[MISSED:%[0-9]+]] = arith.xori [[WHOLE]], [[SOME]]
// CHECK:             [[SEVEN:%[0-9]+]] = arith.constant 117901063 : i32
// CHECK:             [[SEVENS:%[0-9]+]] = vector.broadcast [[SEVEN]]
// CHECK:             tir.dot ui8 [[SEVENS]], i8 [[MISSED]],
// CHECK:             tir.store [[SOME]], %weights

// Five pixels of two rows, which have seven columns: each dot product takes a column of the window.

// CHECK:             tir.for (%tile)
// CHECK:               %sums = tir.alloc_buffer : !tir.buffer<[10, 16], i32, scope = "local", align = 64>
// CHECK-COUNT-4:       tir.load %x_1[{{.*}}] : vector<16xi8>
// CHECK-COUNT-3:       vector.shuffle
// CHECK:               [[COLUMN:%[0-9]+]] = vector.bitcast
// CHECK-COUNT-2:       tir.dot ui8 [[COLUMN]], i8
// CHECK-COUNT-28:      tir.dot
// CHECK-NOT:           tir.dot
// CHECK-COUNT-10:      tir.store {{.*}}, %T_1

// Where a column is out of bounds, groups of padding take its place.

// CHECK:             tir.for (%pixel)
// CHECK:               [[EDGE:%[0-9]+]] = arith.select {{.*}} : vector<16xi32>
// CHECK-COUNT-2:       tir.dot ui8 [[EDGE]], i8

// Without dot products of bytes, groups are made by shifts, of which those that take them apart again leave less.

// PAIRS:             tir.for (%tile)
// PAIRS-COUNT-4:       tir.load %x_1[{{.*}}] : vector<8xi8>
// PAIRS-NOT:           vector.shuffle
// PAIRS:               tir.convert extui {{.*}} : vector<8xi8> to vector<8xi32>
// PAIRS-NEXT:          [[ROW:%[0-9]+]] = tir.convert extui {{.*}} : vector<8xi8> to vector<8xi32>
// PAIRS:               arith.shli [[ROW]]
// PAIRS:               arith.ori
// PAIRS:               tir.dot ui8 {{.*}}, i8

relax.func @main[%n](%x: !relax.tensor<[n, 28, 28, 32], ui8>, %k: !relax.tensor<[3, 3, 1, 32], i8>) -> !relax.tensor<[n, 28, 28, 32], i32> {
  %p = relax.nn.pad %x pad_width = [0, 0, 1, 1, 1, 1, 0, 0] pad_value = 7.0
  %0 = relax.nn.conv2d %p, %k groups = 32 data_layout = "NHWC" kernel_layout = "HWIO" out_dtype = i32
  relax.return %0
}
