// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"sapphirerapids cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"sapphirerapids cores=1 activation-bits=8\"}" | filecheck %s --check-prefix ROUND

// Block-quantised weights in tile registers (AMX), 24 bits of each number as three parts of bf16.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul(

// A row of x is split: a part is what is left, rounded. The sums of each step are kept for what is added to integers.

// CHECK:         %row_parts = tir.alloc_buffer : !tir.buffer<[3, 2, 3, 16, 16], i32, align = 64>
// CHECK:         %row_sums = tir.alloc_buffer : !tir.buffer<[3, 2, 16], f32, align = 64>
// CHECK:         tir.for (%i)
// CHECK:           %[[X:.*]] = tir.load %x{{.*}} : vector<16xf32>
// CHECK-NEXT:      %[[HIGH:.*]] = tir.convert truncf %[[X]] : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:      %[[BACK:.*]] = tir.convert extf %[[HIGH]] : vector<16xbf16> to vector<16xf32>
// CHECK-NEXT:      %[[LEFT:.*]] = arith.subf %[[X]], %[[BACK]] : vector<16xf32>
// CHECK-NEXT:      tir.convert truncf %[[LEFT]]

// Integers of the weights are decoded and transposed to groups of columns; scales are beside them.

// CHECK:         tir.configure_tiles
// CHECK:         %columns = tir.alloc_buffer
// CHECK:         tir.for (%column)
// CHECK:           tir.prefetch
// CHECK:           %[[INTEGERS:.*]] = tir.convert sitofp
// CHECK:           tir.store {{.*}}, %scales
// CHECK:           tir.store {{.*}}, %leasts
// CHECK:           tir.convert truncf %[[INTEGERS]]
// CHECK:         tir.for (%chunk)
// CHECK-COUNT-16:  tir.load %decoded
// CHECK:           vector.shuffle
// CHECK:           tir.store {{.*}}, %columns

// Two tiles of columns take the parts of a strip of rows, the smallest first. While that goes on, the products of the
// two tiles before are scaled and added up.

// CHECK:         tir.for (%step
// CHECK:         tir.for (%pair
// CHECK:           tir.load_tile 6, %columns
// CHECK:           tir.load_tile 7, %columns
// CHECK:           tir.load_tile 4, %row_parts
// CHECK-NEXT:      tir.dot_tiles 0, bf16 4, bf16 6
// CHECK-NEXT:      tir.dot_tiles 1, bf16 4, bf16 7
// CHECK-NEXT:      tir.load_tile 5, %row_parts
// CHECK-NEXT:      tir.dot_tiles 0, bf16 5, bf16 6
// CHECK-NEXT:      tir.dot_tiles 1, bf16 5, bf16 7
// CHECK-NEXT:      tir.load_tile 4, %row_parts
// CHECK-NEXT:      tir.dot_tiles 0, bf16 4, bf16 6
// CHECK-NEXT:      tir.dot_tiles 1, bf16 4, bf16 7
// CHECK:           tir.store_tile 0, %products
// CHECK-NEXT:      tir.store_tile 1, %products
// CHECK:           %[[PRODUCTS:.*]] = tir.load %products
// CHECK-NEXT:      math.fma %{{.*}}, %[[PRODUCTS]]
// CHECK:           tir.store {{.*}}, %totals
// CHECK:         tir.release_tiles

// With one part of 8 bits, weights are numbers, and the sums of all steps stay in registers: two strips by two tiles.

// ROUND:         tir.zero_tile 3
// ROUND-NEXT:    tir.for (%step
// ROUND:           tir.dot_tiles 0, bf16 4, bf16 6
// ROUND-NEXT:      tir.dot_tiles 1, bf16 4, bf16 7
// ROUND-NEXT:      tir.dot_tiles 2, bf16 5, bf16 6
// ROUND-NEXT:      tir.dot_tiles 3, bf16 5, bf16 7
// ROUND:         tir.store_tile 3, %totals

relax.func @main(%x: !relax.tensor<[40, 64], f32>, %w: !relax.tensor<[70, 40], ui8>) -> !relax.tensor<[40, 70], f32> {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}
