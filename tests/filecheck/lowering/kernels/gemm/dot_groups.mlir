// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"znver4 cores=1\"}" | filecheck %s

// Bytes in dot-product groups (VNNI): four numbers along K in 32 bits. Rows of A are copied as they are. For B, four rows
// are interleaved while a panel is packed; loads at the end of a row are masked.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[2, 64, 32], i32, align = 64>
// CHECK:         %packed_rows = tir.alloc_buffer : !tir.buffer<[70, 80], i32, align = 64>
// CHECK:         tir.for (%panel)
// CHECK:           tir.for (%r)
// CHECK-COUNT-4:     tir.load %y_1[{{.*}}] mask {{.*}} : vector<32xi8>
// CHECK:             vector.shuffle {{.*}} [0, 32, 1, 33,
// CHECK:             vector.shuffle {{.*}} [0, 1, 64, 65,

// The register tile: 14 x 2 vectors of i32, one instruction for each group of four; the last strip has 8 rows.
// All lanes have columns.

// CHECK:           tir.for (%strip)
// CHECK:             %sums = tir.alloc_buffer : !tir.buffer<[14, 32], i32, scope = "local", align = 64>
// CHECK:             tir.for (%r_
// CHECK-COUNT-28:      tir.dot ui8 {{.*}}, i8 {{.*}} : vector<16xi32>
// CHECK-NOT:           tir.dot
// CHECK:             } else {
// CHECK-COUNT-16:      tir.dot ui8
// CHECK-NOT:         tir.dot
// CHECK-NOT:         vector.create_mask
// CHECK:             tir.store {{.*}}, %matmul_1

relax.func @bytes(%x: !relax.tensor<[64, 256], ui8>, %y: !relax.tensor<[256, 64], i8>) -> !relax.tensor<[64, 64], i32> {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}

// bf16: groups of two, and sums in f32.

// CHECK-LABEL: tir.prim_func @matmul_1(
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[2, 128, 32], i32, align = 64>
// CHECK-COUNT-2: tir.load %y_1[{{.*}}] mask {{.*}} : vector<32xbf16>
// CHECK:         vector.shuffle {{.*}} [0, 32, 1, 33,
// CHECK-COUNT-28: tir.dot bf16 {{.*}}, bf16 {{.*}} : vector<16xf32>

relax.func @halves(%x: !relax.tensor<[64, 256], bf16>, %y: !relax.tensor<[256, 64], bf16>) -> !relax.tensor<[64, 64], f32> {
  %0 = relax.matmul %x, %y out_dtype = f32
  relax.return %0
}
