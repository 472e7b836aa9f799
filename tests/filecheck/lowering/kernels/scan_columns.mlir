// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A scan along columns whose result is too large for the caches: rows are read one after the other, each lane has the sum
// of its column. The sums of the row before are in a buffer, since the result is written past the caches.

// CHECK-LABEL: tir.prim_func @cumsum(
// CHECK:         %before = tir.alloc_buffer : !tir.buffer<[4096], f32, align = 64>
// CHECK:         tir.for (%row)
// CHECK:           tir.for (%block)
// CHECK:             tir.for vectorized
// CHECK:               [[X:%[0-9]+]] = tir.load %x_1
// CHECK:               [[BEFORE:%[0-9]+]] = tir.load %before
// CHECK-NEXT:          [[SUM:%[0-9]+]] = arith.addf [[BEFORE]], [[X]] : f32
// CHECK-NEXT:          tir.store [[SUM]], %before
// CHECK:               tir.store [[SUM]], %cumsum_1[{{.*}}] {relax.store.streamed_from
// CHECK-NOT:           tir.load %cumsum_1

relax.func @large(%x: !relax.tensor<[4096, 4096], f32>) -> !relax.tensor<[4096, 4096], f32> {
  %0 = relax.cumsum %x axis = 0
  relax.return %0
}
