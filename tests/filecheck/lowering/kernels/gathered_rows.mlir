// RUN: relax-opt %s -p "check-accesses,schedule-cpu{target=\"x86-64-v3 cores=2\"}" | filecheck %s

// The check of the indices stays before the loops, without a loop over columns. Row indices, which all lanes share, do
// not make vectors shorter: 8 lanes of f32.
// CHECK:       tir.for (%{{.*}}) in (%{{.*}} to %m) {
// CHECK:         tir.assert %{{.*}}, "rows: a 'tir.load' whose index 0 of %A is data
// CHECK:       tir.for parallel
// CHECK-NOT:   tir.assert
// CHECK:       arith.constant 8 : index
// CHECK:       tir.for vectorized
tir.prim_func @rows[%n, %m, %k](%A: !tir.buffer<[n, k], f32>, %I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m, k], f32>) {
  tir.for (%i, %c) in (%m, %k) {
    tir.block "rows" (%v = spatial %i in %m, %w = spatial %c in %k) {
      %at = tir.load %I[%v]
      %j = arith.index_cast %at : i64 to index
      %x = tir.load %A[%j, %w]
      tir.store %x, %B[%v, %w]
    }
  }
}
