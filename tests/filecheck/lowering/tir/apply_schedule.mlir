// RUN: relax-opt %s -p 'apply-schedule{file="%S/inputs/matmul.json"}' | filecheck %s
// RUN: relax-opt %s -p 'apply-schedule{file="%S/inputs/matmul.json"},apply-schedule{file="%S/inputs/matmul.json"}' | filecheck %s

// The trace is replayed on the function that it names, once.
// CHECK-LABEL: tir.prim_func @matmul
// CHECK-SAME:    attributes {schedule = "
// CHECK:         tir.for parallel (%i0) in (%{{.*}}) {
// CHECK-NEXT:      tir.for (%i1, %j) in (%c4, %m) {
// CHECK-NEXT:        %{{.*}} = arith.muli %i0, %c4 : index
// CHECK:             tir.block "C_init" (%vi = spatial %{{.*}} in %n, %vj = spatial %j in %m) where %{{.*}} {
// CHECK-NOT:         tir.init
// CHECK:             tir.for (%r) in (%k) {
// CHECK:               tir.block "C_update"
tir.prim_func @matmul[%n, %k, %m](%A: !tir.buffer<[n, k], f32>, %B: !tir.buffer<[k, m], f32>, %C: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j, %r) in (%n, %m, %k) {
    tir.block "C" (%vi = spatial %i in %n, %vj = spatial %j in %m, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// Functions that the file does not name stay as they are.
// CHECK-LABEL: tir.prim_func @other
// CHECK-SAME:    %X: !tir.buffer<[n], f32>) {
// CHECK-NEXT:    tir.for (%i) in (%n) {
tir.prim_func @other[%n](%X: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "X" (%vi = spatial %i in %n) {
      %zero = arith.constant 0.0 : f32
      tir.store %zero, %X[%vi]
    }
  }
}
