// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// An elementwise stage over contiguous memory is one loop, whatever its rank: full vectors, then a masked remainder.
// CHECK-LABEL: tir.prim_func @map
// CHECK:         %X_1 = tir.flatten %X
// CHECK:         %Y_1 = tir.flatten %Y
// CHECK:         tir.dim m * n
// CHECK:         tir.for (%v)
// CHECK:           tir.for vectorized (%lane)
// CHECK:             tir.load %X_1
// CHECK:             tir.store {{.*}}, %Y_1
// CHECK:         tir.if
// CHECK-NEXT:      tir.for vectorized
// CHECK:             arith.cmpi slt, %lane_1
// CHECK-NEXT:        tir.if
// CHECK:               tir.store {{.*}}, %Y_1
tir.prim_func @map[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %y = arith.negf %x : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// A column is loaded once per row, before the loop along the row.
// CHECK-LABEL: tir.prim_func @broadcast
// CHECK:         tir.for (%vi)
// CHECK:           %[[COLUMN:.*]] = tir.load %C_1[%vi]
// CHECK:           tir.for (%v)
// CHECK:             tir.for vectorized
// CHECK:               arith.addf {{.*}}, %[[COLUMN]] : f32
tir.prim_func @broadcast[%m, %n](%X: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m, 1], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %zero = arith.constant 0 : index
      %x = tir.load %X[%vi, %vj]
      %c = tir.load %C[%vi, %zero]
      %y = arith.addf %x, %c : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// Consecutive elementwise stages are fused.
// CHECK-LABEL: tir.prim_func @fused
// CHECK-NOT:     tir.alloc_buffer
// CHECK:         tir.for vectorized
// CHECK:           arith.negf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      tir.store {{.*}}, %Y_1
tir.prim_func @fused[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  %T = tir.alloc_buffer : !tir.buffer<[n], f32>
  tir.for (%i) in (%n) {
    tir.block "first" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %t = arith.negf %x : f32
      tir.store %t, %T[%vi]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "second" (%vi = spatial %i in %n) {
      %t = tir.load %T[%vi]
      %y = arith.mulf %t, %t : f32
      tir.store %y, %Y[%vi]
    }
  }
}

// A nest that reads other elements of what it writes is not scheduled.
// CHECK-LABEL: tir.prim_func @shifted
// CHECK:         tir.block "b"
tir.prim_func @shifted[%n](%X: !tir.buffer<[n + 1], f32>) {
  %one = arith.constant 1 : index
  tir.for (%i) in (%n) {
    tir.block "b" (%vi = spatial %i in %n) {
      %next = arith.addi %vi, %one : index
      %x = tir.load %X[%next]
      tir.store %x, %X[%vi]
    }
  }
}

// A transposition has square tiles, which are transposed in registers; the edges are moved one by one.
// CHECK-LABEL: tir.prim_func @transpose
// CHECK:         tir.for (%panel)
// CHECK:           tir.for (%block)
// CHECK:             tir.for (%tile)
// CHECK:               tir.load %X_1[{{.*}}] : vector<8xf32>
// CHECK:               tir.alloc_buffer : !tir.buffer<[64], f32, scope = "local", align = 64>
// CHECK:               vector.shuffle
// CHECK:               tir.for vectorized
// CHECK:                 tir.store {{.*}}, %Y_1
// CHECK:         annotations {llvm.loop.vectorize.enable = false, llvm.loop.unroll.disable}
tir.prim_func @transpose[%m, %n](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vj, %vi]
      tir.store %x, %Y[%vi, %vj]
    }
  }
}

// Channels that do not fill their groups stay one axis.
// CHECK-LABEL: tir.prim_func @unfilled
// CHECK-NOT:     tir.for (%group)
// CHECK:         arith.divui
// CHECK:         tir.store {{.*}}, %Y
tir.prim_func @unfilled(%M: !tir.buffer<[2, 3], f32>, %Y: !tir.buffer<[2, 40], f32>) {
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  tir.for (%i, %j) in (%c2, %c40) {
    tir.block "b" (%vi = spatial %i in %c2, %vj = spatial %j in %c40) {
      %c16 = arith.constant 16 : index
      %g = arith.divui %vj, %c16 : index
      %m = tir.load %M[%vi, %g]
      tir.store %m, %Y[%vi, %vj]
    }
  }
}

// Assertions about sizes stay before the loops.
// CHECK-LABEL: tir.prim_func @asserted
// CHECK:         tir.assert %{{.*}}, "fits"
// CHECK:         tir.for vectorized
tir.prim_func @asserted[%n, %m](%X: !tir.buffer<[m], f32>, %Y: !tir.buffer<[n], f32>) {
  %fits = arith.cmpi sle, %n, %m : index
  tir.assert %fits, "fits"
  tir.for (%i) in (%n) {
    tir.block "b" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      tir.store %x, %Y[%vi]
    }
  }
}
