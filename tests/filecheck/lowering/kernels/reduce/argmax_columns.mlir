// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Argmax along an axis that is not contiguous: each lane has the best element of its column so far and its index, which is
// as wide as the element. Bands of eight rows are read over all columns; between bands the lanes are in memory.

// CHECK-LABEL: tir.prim_func @argmax(
// CHECK:         %best = tir.alloc_buffer : !tir.buffer<[1008], f32, align = 64>
// CHECK:         %indices = tir.alloc_buffer : !tir.buffer<[1008], i32, align = 64>
// CHECK:         tir.for (%band)
// CHECK:           tir.for (%block_2)
// CHECK:             %part = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local", align = 64>
// CHECK:             tir.for vectorized
// CHECK:               tir.load %best
// CHECK:             tir.for (%row)
// CHECK:               [[ROW:%[0-9]+]] = arith.index_cast %row : index to i32
// CHECK:               tir.for vectorized
// CHECK:                 [[X:%[0-9]+]] = tir.load %x_1
// CHECK-NEXT:            [[GREATER:%[0-9]+]] = arith.cmpf ugt, [[X]], [[BEST:%[0-9]+]] : f32
// CHECK-NEXT:            [[NUMBER:%[0-9]+]] = arith.cmpf ord, [[BEST]], [[BEST]] : f32
// CHECK-NEXT:            [[TAKES:%[0-9]+]] = arith.andi [[GREATER]], [[NUMBER]] : i1
// CHECK-NEXT:            arith.select [[TAKES]], [[X]], [[BEST]] : f32
// CHECK-NEXT:            arith.select [[TAKES]], [[ROW]]
// CHECK:             tir.for vectorized
// CHECK:               tir.store {{.*}}, %best
// CHECK:               tir.store {{.*}}, %indices

// At the end indices become as wide as the result says.

// CHECK:         tir.for (%block_4)
// CHECK:           tir.store {{.*}}, %argmax_v1_1

relax.func @which(%x: !relax.tensor<[128, 1000], f32>) -> !relax.tensor<[1000], i64> {
  %0 = relax.argmax %x axis = 0
  relax.return %0
}
