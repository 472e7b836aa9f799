// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"sapphirerapids cores=1\"}" | filecheck %s

// Block-quantised weights in tile registers (AMX), 24 bits of each number as three parts of bf16.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul(

// A row of x is split: a part is what is left, rounded.

// CHECK:         %row_parts = tir.alloc_buffer : !tir.buffer<[4, 2, 3, 16, 16], i32, align = 64>
// CHECK:         tir.for (%i)
// CHECK:           %[[X:.*]] = tir.load %x{{.*}} : vector<16xf32>
// CHECK-NEXT:      %[[HIGH:.*]] = tir.convert truncf %[[X]] : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:      %[[BACK:.*]] = tir.convert extf %[[HIGH]] : vector<16xbf16> to vector<16xf32>
// CHECK-NEXT:      %[[LEFT:.*]] = arith.subf %[[X]], %[[BACK]] : vector<16xf32>
// CHECK-NEXT:      tir.convert truncf %[[LEFT]]

// Rows of the weights are decoded, split, and transposed to groups of columns.

// CHECK:         tir.configure_tiles
// CHECK:         %column_parts = tir.alloc_buffer
// CHECK:         tir.for (%column)
// CHECK:           tir.prefetch
// CHECK:           tir.convert truncf
// CHECK:         tir.for (%chunk)
// CHECK-COUNT-16:  tir.load %decoded
// CHECK:           vector.shuffle
// CHECK:           tir.store {{.*}}, %column_parts

// Two by two registers of accumulators take a pair of parts before the next pair, which has a part in common with it.

// CHECK:         tir.zero_tile 3
// CHECK:         tir.for (%step
// CHECK:           tir.load_tile 4, %row_parts
// CHECK-NEXT:      tir.load_tile 5, %row_parts
// CHECK:           tir.load_tile 6, %column_parts
// CHECK-NEXT:      tir.load_tile 7, %column_parts
// CHECK-NEXT:      tir.dot_tiles 0, bf16 4, bf16 6
// CHECK-NEXT:      tir.dot_tiles 1, bf16 4, bf16 7
// CHECK-NEXT:      tir.dot_tiles 2, bf16 5, bf16 6
// CHECK-NEXT:      tir.dot_tiles 3, bf16 5, bf16 7
// CHECK:           tir.load_tile 6, %column_parts
// CHECK-NEXT:      tir.load_tile 7, %column_parts
// CHECK-NEXT:      tir.dot_tiles 0, bf16 4, bf16 6
// CHECK:         tir.store_tile 0, %tile
// CHECK:         tir.release_tiles

relax.func @main(%x: !relax.tensor<[40, 64], f32>, %w: !relax.tensor<[70, 40], ui8>) -> !relax.tensor<[40, 70], f32> {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}
