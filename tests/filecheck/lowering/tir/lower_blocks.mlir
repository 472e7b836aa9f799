// RUN: relax-opt %s -p lower-blocks | filecheck %s
// RUN: relax-opt %s -p lower-blocks,lower-blocks | filecheck %s

// Iterators become their bindings; declarations go.
// CHECK-LABEL: tir.prim_func @plain
// CHECK:       tir.for (%i, %j) in (%m, %n) {
// CHECK-NEXT:    %x = tir.load %X[%i, %j]
// CHECK-NEXT:    tir.store %x, %Y[%j, %i]
// CHECK-NEXT:  }
tir.prim_func @plain[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "transpose" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      tir.reads %X[%vi, %vj]
      tir.writes %Y[%vj, %vi]
      %x = tir.load %X[%vi, %vj]
      tir.store %x, %Y[%vj, %vi]
    }
  }
}

// A condition becomes a branch. The init, which shares a loop with a spatial iterator, runs where all others are 0.
// CHECK-LABEL: tir.prim_func @guarded
// CHECK:       tir.if %inside {
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[A:.*]] = arith.cmpi eq, %r, %[[ZERO]] : index
// CHECK-NEXT:    %[[B:.*]] = arith.cmpi eq, %s, %[[ZERO]] : index
// CHECK-NEXT:    %[[FIRST:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:    tir.if %[[FIRST]] {
// CHECK-NEXT:      %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      tir.store %zero, %C[%i]
// CHECK-NEXT:    }
// CHECK-NEXT:    %c = tir.load %C[%i]
tir.prim_func @guarded[%m, %n](%C: !tir.buffer<[m], f32>) {
  %c2 = arith.constant 2 : index
  %all = tir.dim 2 * m
  tir.for (%f, %s) in (%all, %n) {
    %i = arith.floordivsi %f, %c2 : index
    %r = arith.remsi %f, %c2 : index
    %inside = arith.cmpi slt, %r, %s : index
    tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %c2, %vs = reduce %s in %n) where %inside {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi]
      }
      %c = tir.load %C[%vi]
      tir.store %c, %C[%vi]
    }
  }
}

// The init of a plain reduction is out of the loop.
// CHECK-LABEL: tir.prim_func @plain_sum
// CHECK:       tir.for (%i) in (%m) {
// CHECK:         tir.store %zero, %C[%i]
// CHECK-NEXT:    tir.for (%r) in (%n) {
// CHECK-NEXT:      %c = tir.load %C[%i]
tir.prim_func @plain_sum[%m, %n](%C: !tir.buffer<[m], f32>) {
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi]
      }
      %c = tir.load %C[%vi]
      tir.store %c, %C[%vi]
    }
  }
}

// An iterator bound to the constant 0 needs no test; blocks inside blocks go too.
// CHECK-LABEL: tir.prim_func @nested
// CHECK-NOT:   tir.if
// CHECK-NOT:   tir.block
// CHECK:       tir.store %one, %C[%i]
// CHECK:       tir.load %C[%i]
tir.prim_func @nested[%m](%C: !tir.buffer<[m], f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%m) {
    tir.block "outer" (%vi = spatial %i in %m) {
      tir.block "inner" (%vj = spatial %vi in %m, %vr = reduce %c0 in %c1) {
        tir.init {
          %one = arith.constant 1.0 : f32
          tir.store %one, %C[%vj]
        }
        %c = tir.load %C[%vj]
        tir.store %c, %C[%vj]
      }
    }
  }
}
