// RUN: relax-opt %s -p lower-init-blocks | filecheck %s
// RUN: relax-opt %s -p lower-init-blocks,lower-init-blocks | filecheck %s

// The init of a plain reduction becomes a block before the reduction's loop.
// CHECK-LABEL: tir.prim_func @matmul
// CHECK:       tir.for (%i, %j) in (%m, %k) {
// CHECK-NEXT:    tir.block "matmul_init" (%vi = spatial %i in %m, %vj = spatial %j in %k) {
// CHECK-NEXT:      %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      tir.store %zero, %C[%vi, %vj]
// CHECK-NEXT:    }
// CHECK-NEXT:    tir.for (%r) in (%n) {
// CHECK-NEXT:      tir.block "matmul" (%{{.*}} = spatial %i in %m, %{{.*}} = spatial %j in %k, %vr = reduce %r in %n) {
// CHECK-NEXT:        %a = tir.load
tir.prim_func @matmul[%m, %n, %k](%A: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m, k], f32>) {
  tir.for (%i, %j, %r) in (%m, %k, %n) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %c = tir.load %C[%vi, %vj]
      %s = arith.addf %c, %a : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// Spatial loops inside the reduction are copied, with what their variables are used for, and keep their kind.
// CHECK-LABEL: tir.prim_func @reordered
// CHECK:       tir.for vectorized (%[[J:.*]]) in (%c4) {
// CHECK-NEXT:    %[[TWICE:.*]] = arith.addi %[[J]], %[[J]] : index
// CHECK-NEXT:    tir.block "sum_init" (%[[VJ:.*]] = spatial %[[TWICE]] in %c8) {
// CHECK:           tir.store %{{.*}}, %C[%[[VJ]]]
// CHECK:       tir.for (%{{.*}}) in (%n) {
// CHECK-NEXT:    tir.for vectorized
// CHECK-NOT:     tir.init
tir.prim_func @reordered[%n](%A: !tir.buffer<[8, n], f32>, %C: !tir.buffer<[8], f32>) {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  tir.for (%r) in (%n) {
    tir.for vectorized (%j) in (%c4) {
      %twice = arith.addi %j, %j : index
      tir.block "sum" (%vj = spatial %twice in %c8, %vr = reduce %r in %n) {
        tir.init {
          %zero = arith.constant 0.0 : f32
          tir.store %zero, %C[%vj]
        }
        %a = tir.load %A[%vj, %vr]
        %c = tir.load %C[%vj]
        %s = arith.addf %c, %a : f32
        tir.store %s, %C[%vj]
      }
    }
  }
}

// Conditions on spatial iterators guard the init too; those on the reduction do not.
// CHECK-LABEL: tir.prim_func @guarded
// CHECK:       %[[IN:.*]] = arith.cmpi slt, %i, %m : index
// CHECK:       tir.block "sum_init" (%{{.*}} = spatial %i in %m) where %[[IN]] {
tir.prim_func @guarded[%m, %n](%A: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m], f32>) {
  %more = tir.dim m + 3
  tir.for (%i) in (%more) {
    tir.for (%r) in (%more) {
      %x = arith.cmpi slt, %i, %m : index
      %y = arith.cmpi slt, %r, %n : index
      %both = arith.andi %x, %y : i1
      tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) where %both {
        tir.init {
          %zero = arith.constant 0.0 : f32
          tir.store %zero, %C[%vi]
        }
        %a = tir.load %A[%vi, %vr]
        tir.store %a, %C[%vi]
      }
    }
  }
}

// A loop that drives a spatial and a reduce iterator keeps the init where it is.
// CHECK-LABEL: tir.prim_func @shared
// CHECK-NOT:   _init"
// CHECK:       tir.init
tir.prim_func @shared[%n](%A: !tir.buffer<[n], f32>, %C: !tir.buffer<[n], f32>) {
  %c2 = arith.constant 2 : index
  %all = tir.dim 2 * n
  tir.for (%f) in (%all) {
    %i = arith.floordivsi %f, %c2 : index
    %r = arith.remsi %f, %c2 : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %c2) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi]
      }
      %c = tir.load %C[%vi]
      tir.store %c, %C[%vi]
    }
  }
}
