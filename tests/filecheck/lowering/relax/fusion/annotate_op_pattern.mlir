// RUN: relax-opt %s -p annotate-op-pattern | filecheck %s
// RUN: relax-opt %s -p annotate-op-pattern,annotate-op-pattern | filecheck %s

// CHECK-LABEL: tir.prim_func @exp
// CHECK-SAME:    attributes {op_pattern = "elementwise"}
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = math.exp %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
// CHECK-LABEL: tir.prim_func @sum
// CHECK-SAME:    attributes {op_pattern = "reduction"}
tir.prim_func @sum[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i, %r) in (%n, %m) {
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vi]
      }
      %y = tir.load %Y[%vi]
      %x = tir.load %X[%vi, %vr]
      %s = arith.addf %y, %x : f32
      tir.store %s, %Y[%vi]
    }
  }
}
// What is said already stays.
// CHECK-LABEL: tir.prim_func @chosen
// CHECK-SAME:    attributes {op_pattern = "opaque"}
tir.prim_func @chosen[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) attributes {op_pattern = "opaque"} {
  tir.for (%i) in (%n) {
    tir.block "copy" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      tir.store %x, %Y[%vi]
    }
  }
}
