// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1 activation-bits=32\"}" | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s --check-prefix WORDS
// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"znver4 cores=1 activation-bits=8\"}" | filecheck %s --check-prefix VNNI

// Block-quantised weights, few rows of x: four rows of weights are decoded in registers while they are multiplied. 16
// bytes have the low halves of 16 numbers and the high halves of 16 others; the scale multiplies the sum of a block.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul[%n]
// CHECK-NOT:     !tir.buffer<[64, 256], f32>
// CHECK:         tir.if
// CHECK:           tir.for (%unit, %row)
// CHECK:             %sums = tir.alloc_buffer : !tir.buffer<[4, 8], f32, scope = "local", align = 64>
// CHECK:             tir.for (%block)
// CHECK-COUNT-4:       tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK-COUNT-2:       tir.load %w_1[{{.*}}] : vector<8xi8>
// CHECK-COUNT-2:       arith.andi {{.*}} : vector<8xi8>
// CHECK:               arith.shrui {{.*}} : vector<8xi8>
// CHECK-COUNT-4:       tir.convert sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-COUNT-4:       math.fma
// CHECK-COUNT-2:       tir.load %w_1[{{.*}}] : vector<8xi8>
// CHECK:             vector.shuffle

// More rows: four rows of weights are decoded at a time, and multiplied with all rows of x, three at a time.

// CHECK:         } else {
// CHECK:           %decoded = tir.alloc_buffer : !tir.buffer<[1024], f32, align = 64>
// CHECK:           tir.for (%block_1, %unit_1)
// CHECK:             tir.for (%column)
// CHECK:               tir.for (%block_2)
// CHECK:                 tir.prefetch %w_1
// CHECK:                 tir.load %w_1[{{.*}}] : vector<8xi8>
// CHECK:                 [[SCALE:%[0-9]+]] = vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK-COUNT-4:         arith.mulf [[SCALE]]
// CHECK:             tir.for (%group
// CHECK:               tir.for (%v)
// CHECK-COUNT-3:         tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK-COUNT-4:         tir.load %decoded[{{.*}}] : vector<8xf32>
// CHECK-NOT:     tir.load %w_1

// With dot products of bytes, rows of x are quantised, block by block: the greatest magnitude is 127.

// VNNI-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul[%n]
// VNNI:         tir.if
// VNNI:           tir.for (%row)
// VNNI:             tir.for (%block)
// VNNI:               arith.maximumf
// VNNI:               math.roundeven
// VNNI:               tir.convert trunci {{.*}} : vector<16xi32> to vector<16xi8>

// Words are copied to the lanes of their blocks. The offset of the weights times the sum of a block is what sums begin
// with.

// VNNI:             tir.for (%copy, %block_1)
// VNNI:             tir.for (%vector)
// VNNI-COUNT-8:       tir.dot ui8
// VNNI:               tir.store {{.*}}, %row_starts

// 16 blocks, one in each lane: four words of each are 16 bytes, transposed. Two vectors have the words of x in common.

// VNNI:           tir.for (%unit
// VNNI:             tir.for (%row_1)
// VNNI:               tir.for (%vector_1)
// VNNI-COUNT-16:        vector.bitcast {{.*}} : vector<16xi8> to vector<4xi32>
// VNNI:                 vector.shuffle {{.*}} [0, 16, 1, 17, 4, 20, 5, 21,
// VNNI-COUNT-8:         arith.andi {{.*}} : vector<16xi32>
// VNNI-COUNT-16:        tir.dot ui8 {{.*}}, i8 {{.*}} : vector<16xi32>
// VNNI-NOT:             tir.dot
// VNNI:                 tir.convert sitofp {{.*}} : vector<16xi32> to vector<16xf32>
// VNNI:                 tir.store {{.*}}, %partial

// The numbers of the blocks of a column are added up.

// VNNI:               tir.for (%column)
// VNNI:           } else {

// With sums of two products of 16 bits only, rows of x keep 16 bits: pairs of every other number, with which the even and
// the odd bytes of the weights are multiplied.

// WORDS-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul[%n]
// WORDS:            tir.for (%block)
// WORDS:              tir.convert trunci {{.*}} : vector<8xi32> to vector<8xi16>
// WORDS:              vector.shuffle {{.*}} [0, 2, 4, 6]
// WORDS:              vector.shuffle {{.*}} [1, 3, 5, 7]
// WORDS:          tir.for (%unit
// WORDS:            tir.for (%vector_1)
// WORDS-COUNT-32:     tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
// WORDS-NOT:          tir.dot
// WORDS:              tir.store {{.*}}, %partial

relax.func @decoded[%n](%x: !relax.tensor<[n, 256], f32>, %w: !relax.tensor<[64, 144], ui8>) -> !relax.tensor<[n, 64], f32> {
  %0 = relax.dequantize_blocks %w format = "q4_0"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}

// Four bits that select one of 16 numbers are looked up, in bytes and in words. Words have no sign: 128 is added to each.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul_1(
// CHECK-COUNT-4:       tir.lookup {{.*}}, [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] : vector<8xi8>
// CHECK-COUNT-4:       tir.convert sitofp {{.*}} : vector<8xi32> to vector<8xf32>

// VNNI-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul_1(
// VNNI-COUNT-8:         tir.lookup {{.*}}, [1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15] : vector<16xi32>
// VNNI:                 tir.dot ui8

relax.func @looked_up(%x: !relax.tensor<[1, 256], f32>, %w: !relax.tensor<[64, 144], ui8>) -> !relax.tensor<[1, 64], f32> {
  %0 = relax.dequantize_blocks %w format = "iq4_nl"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}
