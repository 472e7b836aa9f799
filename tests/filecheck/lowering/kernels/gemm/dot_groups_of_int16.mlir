// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,pack-weights{target=\"x86-64-v3\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s --check-prefix PANELS

// Without dot products of bytes (AVX2), bytes are extended to 16 bits, of which two make a group: rows where they are
// copied, columns where they are packed. What is left of a row is copied by ever smaller vectors, without a mask.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[4, 33, 16], i32, align = 64>
// CHECK:         %packed_rows = tir.alloc_buffer : !tir.buffer<[66, 48], i32, align = 64>
// CHECK:         tir.load %x{{.*}} : vector<32xi8>
// CHECK-NEXT:    tir.convert extui {{.*}} : vector<32xi8> to vector<32xi16>
// CHECK:         tir.load %x{{.*}} : vector<2xi8>
// CHECK-NEXT:    tir.convert extui {{.*}} : vector<2xi8> to vector<2xi16>
// CHECK:         vector.shuffle {{.*}} [0, 16, 1, 17,

// The register tile: 6 x 2 vectors of i32; the last strip has 4 rows.

// CHECK:         %sums = tir.alloc_buffer : !tir.buffer<[6, 16], i32, scope = "local", align = 64>
// CHECK:         tir.for (%r_
// CHECK-COUNT-12:  tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
// CHECK-NOT:       tir.dot
// CHECK:         } else {
// CHECK-COUNT-8:   tir.dot i16
// CHECK-NOT:       tir.dot
// CHECK:         tir.store {{.*}}, %matmul_1

// Constant columns stay bytes, in panels of pairs, which are extended where they are loaded.

// PANELS-LABEL: tir.prim_func @matmul_panels(
// PANELS-SAME:    !tir.buffer<[4, 33, 16, 2], i8>
// PANELS-NOT:     packed_columns
// PANELS:         tir.for (%r
// PANELS-COUNT-2:   tir.convert extsi {{.*}} : vector<16xi8> to vector<16xi16>
// PANELS-COUNT-12:  tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>

relax.func @bytes(%x: !relax.tensor<[64, 66], ui8>, %y: !relax.tensor<[66, 64], i8>) -> !relax.tensor<[64, 64], i32> {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}

relax.func @constant(%x: !relax.tensor<[64, 66], ui8>) -> !relax.tensor<[64, 64], i32> {
  %y = relax.constant dense<100> : tensor<66x64xi8>
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}
