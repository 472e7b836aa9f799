// RUN: relax-opt %s -p 'bind-symbolic-vars{func=main n=4}' | filecheck %s

// Sizes and scalar parameters of a kernel: what is known is no parameter, and bounds of loops are numbers.
// CHECK-LABEL: tir.prim_func @main[%k](%A: !tir.buffer<[4, k], f32>, %B: !tir.buffer<[4], f32>) {
// CHECK-DAG:     %[[N:.*]] = arith.constant 4 : index
// CHECK:         tir.alloc_buffer : !tir.buffer<[5], f32>
// CHECK:         tir.for (%i) in (%[[N]])
tir.prim_func @main[%n, %k](%A: !tir.buffer<[n, k], f32>, %B: !tir.buffer<[n], f32>) {
  %t = tir.alloc_buffer : !tir.buffer<[n + 1], f32>
  tir.for (%i) in (%n) {
    tir.for (%j) in (%k) {
      %a = tir.load %A[%i, %j]
      tir.store %a, %t[%i]
    }
    %x = tir.load %t[%i]
    tir.store %x, %B[%i]
  }
}
