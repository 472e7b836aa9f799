// RUN: relax-opt %s -p compact-buffers | filecheck %s
// RUN: relax-opt %s -p compact-buffers,compact-buffers | filecheck %s

// A tile of rows; indices count from its first element. Guards see the indices that they saw.
// CHECK-LABEL: tir.prim_func @tiles
// CHECK:         %T = tir.alloc_buffer : !tir.buffer<[32, m], f32, scope = "local">
// CHECK:           %i = arith.addi
// CHECK-NEXT:      %inside = arith.cmpi slt, %i, %n : index
// CHECK-NEXT:      tir.if %inside {
// CHECK-NEXT:        tir.for (%j) in (%m) {
// CHECK-NEXT:          %x = tir.load %X[%i, %j]
// CHECK-NEXT:          tir.store %x, %T[%i1, %j]
tir.prim_func @tiles[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  %tiles = tir.dim ceildiv(n, 32)
  %c32 = arith.constant 32 : index
  tir.for parallel (%i0) in (%tiles) {
    %T = tir.alloc_buffer : !tir.buffer<[n, m], f32, scope = "local">
    tir.for (%i1) in (%c32) {
      %base = arith.muli %i0, %c32 : index
      %i = arith.addi %base, %i1 : index
      %inside = arith.cmpi slt, %i, %n : index
      tir.if %inside {
        tir.for (%j) in (%m) {
          %x = tir.load %X[%i, %j]
          tir.store %x, %T[%i, %j]
        }
      }
    }
  }
}

// What a stencil needs of its neighbours is part of the tile, vectors with all of their lanes.
// CHECK-LABEL: tir.prim_func @halo
// CHECK:         %T = tir.alloc_buffer : !tir.buffer<[3, n + 7], f32>
// CHECK:           tir.store %v, %T[%k, %j]
// CHECK:           tir.load %T[%c2, %j_1]
tir.prim_func @halo[%m, %n](%X: !tir.buffer<[m + 2, 2 * n + 16], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  tir.for (%i) in (%m) {
    %T = tir.alloc_buffer : !tir.buffer<[m + 2, 2 * n + 16], f32>
    tir.for (%k, %j) in (%c3, %n) {
      %row = arith.addi %i, %k : index
      %v = tir.load %X[%row, %j] : vector<8xf32>
      tir.store %v, %T[%row, %j]
    }
    %last = arith.addi %i, %c2 : index
    tir.for (%j) in (%n) {
      %t = tir.load %T[%last, %j]
      tir.store %t, %Y[%i, %j]
    }
  }
}

// An extent may depend on sizes, not on the loops around; loops may be empty.
// CHECK-LABEL: tir.prim_func @triangle
// CHECK:         tir.alloc_buffer : !tir.buffer<[max(0, n - 5)], f32>
// CHECK:         %[[J:.*]] = arith.subi %j, %c5 : index
// CHECK:         tir.store %x, %T[%[[J]]]
tir.prim_func @triangle[%n](%X: !tir.buffer<[n], f32>) {
  %c5 = arith.constant 5 : index
  tir.for (%i) in (%n) {
    %T = tir.alloc_buffer : !tir.buffer<[n], f32>
    tir.for (%j) in (%c5 to %n) {
      %x = tir.load %X[%j]
      tir.store %x, %T[%j]
    }
  }
}

// Views have the strides of what is left.
// CHECK-LABEL: tir.prim_func @views
// CHECK:         %T = tir.alloc_buffer : !tir.buffer<[16, 8], f32>
// CHECK:         %V = tir.match_buffer %T[%c0 to %c16, %c0 to %c4] : !tir.buffer<[16, 4], f32, strides = [8, 1]>
// CHECK-NEXT:    %W = tir.match_buffer %V[%c0 to %c16, %c1] : !tir.buffer<[16], f32, strides = [8]>
// CHECK-NEXT:    %x = tir.load %T[%c0, %c7]
tir.prim_func @views[%n, %m]() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  tir.for (%i, %j) in (%n, %m) {
    %T = tir.alloc_buffer : !tir.buffer<[16 * n, 8 * m], f32>
    %i0 = arith.muli %i, %c16 : index
    %i1 = arith.addi %i0, %c16 : index
    %j0 = arith.muli %j, %c8 : index
    %j1 = arith.addi %j0, %c4 : index
    %j2 = arith.addi %j0, %c7 : index
    %V = tir.match_buffer %T[%i0 to %i1, %j0 to %j1] : !tir.buffer<[16, 4], f32, strides = [8 * m, 1]>
    %W = tir.match_buffer %V[%c0 to %c16, %c1] : !tir.buffer<[16], f32, strides = [8 * m]>
    %x = tir.load %T[%i0, %j2]
    tir.store %x, %W[%c1]
  }
}

// Stay: axes with indices from memory, buffers that calls see, small ones, and those that live once.
// CHECK-LABEL: tir.prim_func @stay
// CHECK:         %once = tir.alloc_buffer : !tir.buffer<[n, n], f32>
// CHECK:         %gathered = tir.alloc_buffer : !tir.buffer<[1, n], f32>
// CHECK-NEXT:    %called = tir.alloc_buffer : !tir.buffer<[n, n], f32>
// CHECK-NEXT:    %strided = tir.alloc_buffer : !tir.buffer<[n, n], f32, strides = [2 * n, 1]>
// CHECK-NEXT:    %small = tir.alloc_buffer : !tir.buffer<[4, 8], f32>
tir.prim_func @stay[%n](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[n], f32>) {
  %c0 = arith.constant 0 : index
  %once = tir.alloc_buffer : !tir.buffer<[n, n], f32>
  tir.for (%i) in (%n) {
    %gathered = tir.alloc_buffer : !tir.buffer<[n, n], f32>
    %called = tir.alloc_buffer : !tir.buffer<[n, n], f32>
    %strided = tir.alloc_buffer : !tir.buffer<[n, n], f32, strides = [2 * n, 1]>
    %small = tir.alloc_buffer : !tir.buffer<[4, 8], f32>
    %x = tir.load %X[%i]
    tir.for (%k) in (%n) {
      %i64 = tir.load %I[%k]
      %somewhere = arith.index_cast %i64 : i64 to index
      tir.store %x, %gathered[%i, %somewhere]
    }
    tir.store %x, %once[%i, %i]
    tir.store %x, %called[%i, %i]
    tir.store %x, %strided[%i, %i]
    tir.store %x, %small[%c0, %c0]
    tir.call_extern "f"(%called)
  }
}
