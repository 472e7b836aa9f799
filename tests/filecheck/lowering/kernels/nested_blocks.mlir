// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" --split-input-file | filecheck %s

// A nest in a block is scheduled as if its loops were around one block.
// CHECK-LABEL: tir.prim_func @matmul
// CHECK:         tir.call unchecked @relax.routine
// CHECK-NOT:     tir.block
tir.prim_func @matmul(%A: !tir.buffer<[64, 64], f32>, %B: !tir.buffer<[64, 64], f32>, %C: !tir.buffer<[64, 64], f32>) {
  %n = arith.constant 64 : index
  tir.for (%i) in (%n) {
    tir.block "rows" (%vi = spatial %i in %n) {
      tir.for (%j) in (%n) {
        tir.block "row" (%vj = spatial %j in %n) {
          tir.for (%r) in (%n) {
            tir.block "product" (%wi = spatial %vi in %n, %vr = reduce %r in %n) {
              tir.init {
                %zero = arith.constant 0.0 : f32
                tir.store %zero, %C[%wi, %vj]
              }
              %a = tir.load %A[%vi, %vr]
              %b = tir.load %B[%vr, %vj]
              %c = tir.load %C[%wi, %vj]
              %p = arith.mulf %a, %b : f32
              %s = arith.addf %c, %p : f32
              tir.store %s, %C[%wi, %vj]
            }
          }
        }
      }
    }
  }
}

// -----

// CHECK-LABEL: tir.prim_func @exp
// CHECK:         tir.dim m * n
// CHECK-NOT:     tir.block
// CHECK:         tir.for vectorized
tir.prim_func @exp[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i) in (%n) {
    tir.block "row" (%vi = spatial %i in %n) {
      %zero = arith.constant 0 : index
      tir.reads %X[%vi, %zero to %m]
      tir.writes %Y[%vi, %zero to %m]
      tir.for (%j) in (%m) {
        tir.block "element" (%vj = spatial %j in %m) {
          %x = tir.load %X[%vi, %vj]
          %y = math.absf %x : f32
          tir.store %y, %Y[%vi, %vj]
        }
      }
    }
  }
}

// -----

// A domain that depends on the outer block stays.
// CHECK-LABEL: tir.prim_func @triangle
// CHECK:         tir.block "row"
// CHECK:           tir.block "element"
tir.prim_func @triangle[%n](%X: !tir.buffer<[n, n], f32>, %Y: !tir.buffer<[n, n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "row" (%vi = spatial %i in %n) {
      tir.for (%j) in (%vi) {
        tir.block "element" (%vj = spatial %j in %n) {
          %x = tir.load %X[%vi, %vj]
          tir.store %x, %Y[%vi, %vj]
        }
      }
    }
  }
}
