// RUN: relax-opt %s -p "legalize-ops,pack-weights{target=\"x86-64-v3\"},schedule-cpu{target=\"x86-64-v3 cores=1\" explain=true}" | filecheck %s

// Without dot products of bytes (AVX2), constant columns that are so small that hardly any sum of two products could
// saturate 16 bits lie in panels of four bytes.

// CHECK-LABEL: tir.prim_func @matmul_panels(
// CHECK-SAME:    !tir.buffer<[4, 17, 16, 4], i8>
// CHECK-SAME:    dot-product groups since 4 numbers make one of 32 bits, pairs saturating where none can
// CHECK-DAG:     %packed_rows = tir.alloc_buffer
// CHECK-DAG:     %even_bytes = tir.alloc_buffer
// CHECK-DAG:     %odd_bytes = tir.alloc_buffer
// CHECK-DAG:     %order = tir.alloc_buffer

// The steps of a panel are put in order: those in which neither the positive nor the negative numbers of a pair add up
// to more than 128 come first.

// CHECK:         arith.maxsi {{.*}} : vector<16xi16>
// CHECK:         arith.minsi {{.*}} : vector<16xi16>
// CHECK:         %[[LIMIT:.*]] = arith.constant {{.*}}128 : i16
// CHECK:         tir.compare sgt
// CHECK:         tir.first_lane
// CHECK:         tir.store {{.*}}, %order

// The register tile: the first steps in pairs of bytes, the others in 16 bits, first the even and then the odd bytes.

// CHECK:         %[[STEP:.*]] = tir.load %order
// CHECK-COUNT-12:  tir.dot saturating ui8 {{.*}}, i8 {{.*}} : vector<8xi32>
// CHECK:         tir.load %even_bytes
// CHECK-COUNT-12:  tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
// CHECK:         tir.load %odd_bytes
// CHECK-COUNT-12:  tir.dot i16 {{.*}}, i16 {{.*}} : vector<8xi32>
relax.func @small(%x: !relax.tensor<[18, 66], ui8>) -> !relax.tensor<[18, 64], i32> {
  %y = relax.constant dense<-64> : tensor<66x64xi8>
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}

// With small M, or where nothing is known of it, pairs of 16 bits are faster.
// CHECK-LABEL: tir.prim_func @matmul_1_panels(
// CHECK-SAME:    !tir.buffer<[4, 33, 16, 2], i8>
// CHECK-SAME:    of 16 bits
relax.func @few(%x: !relax.tensor<[4, 66], ui8>) -> !relax.tensor<[4, 64], i32> {
  %y = relax.constant dense<-64> : tensor<66x64xi8>
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}
