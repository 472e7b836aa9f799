// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"sapphirerapids cores=1\"}" | filecheck %s

// Bytes in tile registers (AMX): both factors are signed, which no row needs a correction for. 67 groups are four steps
// of sixteen and one of three, for which registers 5 and 7 are configured.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %packed_rows = tir.alloc_buffer : !tir.buffer<[96, 80], i32, align = 64>
// CHECK:         %[[REST:.*]] = arith.constant 3 : index
// CHECK:         tir.configure_tiles %[[REST]]

// Two by two registers of accumulators: columns of one register are loaded for both halves of the rows.

// CHECK:         tir.zero_tile 0
// CHECK-NEXT:    tir.zero_tile 1
// CHECK-NEXT:    tir.zero_tile 2
// CHECK-NEXT:    tir.zero_tile 3
// CHECK:         tir.for (%step)
// CHECK:           tir.load_tile 4, %packed_rows
// CHECK:           tir.load_tile 6, %packed_columns
// CHECK-NEXT:      tir.dot_tiles 0, i8 4, i8 6
// CHECK:           tir.load_tile 6, %packed_columns
// CHECK-NEXT:      tir.dot_tiles 1, i8 4, i8 6
// CHECK:           tir.load_tile 4, %packed_rows
// CHECK-NEXT:      tir.dot_tiles 3, i8 4, i8 6
// CHECK:           tir.load_tile 6, %packed_columns
// CHECK-NEXT:      tir.dot_tiles 2, i8 4, i8 6

// The last three groups.

// CHECK:         tir.load_tile 5, %packed_rows
// CHECK:         tir.load_tile 7, %packed_columns
// CHECK-NEXT:    tir.dot_tiles 0, i8 5, i8 7
// CHECK:         tir.store_tile 0, %tile
// CHECK:         tir.store_tile 3, %tile

// The last strip has 6 rows: one by two registers.

// CHECK:         } else {
// CHECK:           tir.zero_tile 1
// CHECK-NOT:       tir.zero_tile 2
// CHECK:         tir.release_tiles

relax.func @bytes(%x: !relax.tensor<[70, 266], i8>, %y: !relax.tensor<[266, 64], i8>) -> !relax.tensor<[70, 64], i32> {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}

// bf16: groups of two, and sums in f32.

// CHECK-LABEL: tir.prim_func @matmul_1(
// CHECK:         tir.dot_tiles 0, bf16 4, bf16 6

relax.func @halves(%x: !relax.tensor<[64, 256], bf16>, %y: !relax.tensor<[256, 64], bf16>) -> !relax.tensor<[64, 64], f32> {
  %0 = relax.matmul %x, %y out_dtype = f32
  relax.return %0
}
