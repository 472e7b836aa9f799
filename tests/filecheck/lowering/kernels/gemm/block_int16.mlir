// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Weights of 8 bits where the machine adds up two products of 16 bits: rows of x become integers of 16 bits, with a step
// for each block of 32.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul(
// CHECK:         %row_integers = tir.alloc_buffer : !tir.buffer<[192], i16
// CHECK:         %row_steps = tir.alloc_buffer : !tir.buffer<[14], f32
// CHECK:         tir.for (%block)
// CHECK:           math.roundeven
// CHECK:           tir.convert trunci {{.*}} : vector<8xi32> to vector<8xi16>

// A column is a row of the matrix, which is read from its first byte to its last. The scales of three of its six blocks
// are converted at once, times the steps of the row.

// CHECK:         tir.for (%unit
// CHECK:           tir.for (%column)
// CHECK:             %accumulators = tir.alloc_buffer : !tir.buffer<[3, 8], f32
// CHECK:             tir.for (%blocks)
// CHECK-COUNT-2:       tir.prefetch %w
// CHECK-COUNT-2:       vector.shuffle {{.*}} : vector<8xi16>, vector<8xi16>
// CHECK:               vector.bitcast {{.*}} : vector<8xi16> to vector<8xf16>
// CHECK:               tir.convert extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK:               arith.mulf

// Of each block, 16 bytes are extended at a time.

// CHECK:               tir.convert extsi {{.*}} : vector<16xi8> to vector<16xi16>
// CHECK:               tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
// CHECK:               tir.convert extsi {{.*}} : vector<16xi8> to vector<16xi16>
// CHECK:               tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
// CHECK:               tir.convert sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// CHECK:               math.fma
// CHECK:               tir.store {{.*}}, %accumulators
// CHECK-COUNT-4:       tir.dot i16
// CHECK-NOT:           tir.dot

relax.func @decoded(%x: !relax.tensor<[1, 192], f32>, %w: !relax.tensor<[64, 204], ui8>) -> !relax.tensor<[1, 64], f32> {
  %0 = relax.dequantize_blocks %w format = "q8_0"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}
