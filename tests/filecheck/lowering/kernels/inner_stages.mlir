// RUN: relax-opt %s -p "schedule-cpu{target=\"znver4 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"znver4 cores=1\"},schedule-cpu{target=\"znver4 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"znver4 cores=1\" inner-stages=false}" | filecheck %s --check-prefix OFF

// OFF-LABEL: tir.prim_func @steps
// OFF:         tir.block "range"
// OFF:         tir.block "product"

// A product in each step of a loop is a GEMM, here of bytes in dot-product groups: nothing is packed but the rows, since the columns lie in panels. The extremes are found by lanes.
// CHECK-LABEL: tir.prim_func @steps
// CHECK-NOT:     packed_columns
// CHECK:         tir.for (%step) in (%t) {
// CHECK-NOT:       tir.block "range"
// CHECK:           tir.for vectorized
// CHECK:             tir.greater {{.*}} : f32
// CHECK-NOT:       tir.block "product"
// CHECK:           %packed_rows = tir.alloc_buffer
// CHECK:           tir.dot ui8 %{{[0-9]+}}, i8 %{{[0-9]+}}, %{{[0-9]+}} : vector<16xi32>
tir.prim_func @steps[%t, %b](%X: !tir.buffer<[b, 64], ui8>, %H: !tir.buffer<[b, 64], f32>, %W: !tir.buffer<[2, 16, 32, 4], i8>, %Y: !tir.buffer<[t, b, 64], i32>, %M: !tir.buffer<[], f32>) {
  %c64 = arith.constant 64 : index
  tir.block "all" {
    %P = tir.alloc_buffer : !tir.buffer<[b, 64], i32>
    tir.for (%step) in (%t) {
      tir.for (%n0, %k0) in (%b, %c64) {
        tir.block "range" (%vn = reduce %n0 in %b, %vk = reduce %k0 in %c64) {
          tir.init {
            %low = arith.constant 0xFF800000 : f32
            tir.store %low, %M[]
          }
          %m = tir.load %M[]
          %h = tir.load %H[%vn, %vk]
          %g = arith.maximumf %m, %h : f32
          tir.store %g, %M[]
        }
      }
      tir.for (%n, %k, %j) in (%b, %c64, %c64) {
        tir.block "product" (%vn = spatial %n in %b, %vk = reduce %k in %c64, %vj = spatial %j in %c64) {
          tir.init {
            %zero = arith.constant 0 : i32
            tir.store %zero, %P[%vn, %vj]
          }
          %c4 = arith.constant 4 : index
          %c32 = arith.constant 32 : index
          %panel = arith.divui %vj, %c32 : index
          %column = arith.remui %vj, %c32 : index
          %group = arith.divui %vk, %c4 : index
          %part = arith.remui %vk, %c4 : index
          %p = tir.load %P[%vn, %vj]
          %x = tir.load %X[%vn, %vk]
          %w = tir.load %W[%panel, %group, %column, %part]
          %a = arith.extui %x : i8 to i32
          %v = arith.extsi %w : i8 to i32
          %q = arith.muli %a, %v : i32
          %s = arith.addi %p, %q : i32
          tir.store %s, %P[%vn, %vj]
        }
      }
      tir.for (%n1, %j1) in (%b, %c64) {
        %p = tir.load %P[%n1, %j1]
        tir.store %p, %Y[%step, %n1, %j1]
      }
    }
  }
}

// A matrix of unknown sizes is left alone: the code for all sizes takes several times as long to compile.
// CHECK-LABEL: tir.prim_func @unknown
// CHECK:         tir.for (%step) in (%t) {
// CHECK:           tir.block "product"
tir.prim_func @unknown[%t, %b, %n](%X: !tir.buffer<[b, n], f32>, %W: !tir.buffer<[n, n], f32>, %P: !tir.buffer<[b, n], f32>) {
  tir.for (%step) in (%t) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    tir.for (%i, %k, %j) in (%b, %n, %n) {
      tir.block "product" (%vi = spatial %i in %b, %vk = reduce %k in %n, %vj = spatial %j in %n) {
        tir.init {
          tir.store %zero, %P[%vi, %vj]
        }
        %p = tir.load %P[%vi, %vj]
        %x = tir.load %X[%vi, %vk]
        %w = tir.load %W[%vk, %vj]
        %q = arith.mulf %x, %w : f32
        %s = arith.addf %p, %q : f32
        tir.store %s, %P[%vi, %vj]
      }
    }
  }
}
