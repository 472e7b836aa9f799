// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A chain goes row by row: exponentials and their sum in one loop, into memory for one row, from which the quotients are
// computed.
// The row is multiplied by the reciprocal of its sum if that is a normal number.
// Short rows go in blocks of as many as a vector has lanes: a tree of shuffles folds their accumulators into one vector
// with a lane for each row, so that one division gives all reciprocals.
// CHECK-LABEL: tir.prim_func @shares
// CHECK-NOT:     tir.alloc_buffer : !tir.buffer<[m, n], f32>
// CHECK:         %[[IS_SHORT:.*]] = arith.cmpi sle
// CHECK:         %[[ARE_SOME:.*]] = arith.cmpi sge
// CHECK:         %[[SUITS:.*]] = arith.andi %[[IS_SHORT]], %[[ARE_SOME]]
// CHECK:         tir.if %[[SUITS]]
// CHECK:           tir.alloc_buffer : !tir.buffer<[8 * n], f32, align = 64>
// CHECK:           tir.for (%block)
// CHECK:             %[[PARTS:.*]] = tir.alloc_buffer : !tir.buffer<[64], f32, scope = "local", align = 64>
// CHECK:             tir.for (%row)
// CHECK:               math.exp
// CHECK:               tir.store {{.*}}, %[[PARTS]]
// CHECK:             tir.load %[[PARTS]]
// CHECK:             vector.shuffle
// CHECK:             arith.addf {{.*}} : vector<8xf32>
// CHECK:             %[[RECIPROCALS:.*]] = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:             tir.for vectorized
// CHECK:               arith.divf
// CHECK:               tir.store {{.*}}, %[[RECIPROCALS]]
// CHECK:             tir.for (%row
// CHECK:               tir.load %[[RECIPROCALS]]
// CHECK:         } else {
// CHECK:         %[[E:E.*]] = tir.alloc_buffer : !tir.buffer<[n], f32, align = 64>
// CHECK:         tir.for (%row
// CHECK:           tir.for (%v
// CHECK:             tir.for vectorized
// CHECK:               %[[POWER:.*]] = math.exp
// CHECK:               tir.store %[[POWER]], %[[E]][
// CHECK:               arith.addf {{.*}}, %[[POWER]] : f32
// CHECK:           arith.cmpf oge
// CHECK:           tir.if
// CHECK:             tir.for (%v
// CHECK:               arith.mulf
// CHECK:           } else {
// CHECK:               arith.divf
tir.prim_func @shares[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %E = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  %S = tir.alloc_buffer : !tir.buffer<[m], f32>
  tir.for (%i, %j) in (%m, %n) {
    tir.block "powers" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %e = math.exp %x : f32
      tir.store %e, %E[%vi, %vj]
    }
  }
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sums" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %S[%vi]
      }
      %s = tir.load %S[%vi]
      %e = tir.load %E[%vi, %vr]
      %t = arith.addf %s, %e : f32
      tir.store %t, %S[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "quotients" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %e = tir.load %E[%vi, %vj]
      %s = tir.load %S[%vi]
      %y = arith.divf %e, %s : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// While the exponentials of a row are computed, the next row and the memory of this row's result are prefetched.
// CHECK-LABEL: tir.prim_func @powers
// CHECK:         tir.for (%row)
// CHECK:           tir.greater
// CHECK:           tir.for (%v_2)
// CHECK:             tir.prefetch %X_1
// CHECK:             tir.prefetch %Y_1
// CHECK-NEXT:        tir.for vectorized
// CHECK:               tir.scaled_exp
// CHECK:           arith.subf
tir.prim_func @powers[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %T = tir.alloc_buffer : !tir.buffer<[m], f32>
  %S = tir.alloc_buffer : !tir.buffer<[m], f32>
  %least = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  tir.for (%i, %r) in (%m, %n) {
    tir.block "top" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init { tir.store %least, %T[%vi] }
      %x = tir.load %X[%vi, %vr]
      %t = tir.load %T[%vi]
      %u = arith.maximumf %t, %x : f32
      tir.store %u, %T[%vi]
    }
  }
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init { tir.store %zero, %S[%vi] }
      %x = tir.load %X[%vi, %vr]
      %t = tir.load %T[%vi]
      %d = arith.subf %x, %t : f32
      %e = math.exp %d : f32
      %s = tir.load %S[%vi]
      %u = arith.addf %s, %e : f32
      tir.store %u, %S[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "rest" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %s = tir.load %S[%vi]
      %d = arith.subf %x, %s : f32
      tir.store %d, %Y[%vi, %vj]
    }
  }
}
