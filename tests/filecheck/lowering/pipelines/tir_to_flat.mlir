// RUN: relax-opt %s -p "tir-to-flat,verify-stage{stage=tir-flat}" | filecheck %s

// Blocks go; what they initialise comes before the loop of the reduction.
// CHECK-LABEL: tir.prim_func @sum
// CHECK:         arith.constant 0.000000e+00
// CHECK-NEXT:    tir.store
// CHECK:         tir.for (%r) in (%n) {
// CHECK-NOT:     tir.block
// CHECK:         arith.addf
tir.prim_func @sum[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[1], f32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  tir.for (%r) in (%n) {
    tir.block "sum" (%vi = spatial %zero in %one, %vr = reduce %r in %n) {
      tir.init {
        %z = arith.constant 0.0 : f32
        tir.store %z, %Y[%vi]
      }
      %x = tir.load %X[%vr]
      %y = tir.load %Y[%vi]
      %s = arith.addf %x, %y : f32
      tir.store %s, %Y[%vi]
    }
  }
}
