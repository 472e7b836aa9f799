// RUN: relax-opt %s -p tir-to-llvm | filecheck %s
// RUN: relax-opt %s -p tir-to-flat,convert-tir-to-llvm | filecheck %s --check-prefix WRITTEN

// The pipeline checks where a kernel leads by data; the pass alone compiles what is written.
// CHECK:       data, expected at least 0 and less than n
// CHECK:       llvm.func @gather
// WRITTEN-NOT: expected at least 0
tir.prim_func @gather[%n, %m](%A: !tir.buffer<[n], f32>, %I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m], f32>) {
  tir.for (%i) in (%m) {
    tir.block "gather" (%v = spatial %i in %m) {
      %k = tir.load %I[%v]
      %j = arith.index_cast %k : i64 to index
      %x = tir.load %A[%j]
      tir.store %x, %B[%v]
    }
  }
}
