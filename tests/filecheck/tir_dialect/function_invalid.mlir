// RUN: RELAX_INVALID

// CHECK: 'tir.prim_func' op expected 1 leading index arguments, one per symbol, got 1 arguments
"tir.prim_func"() <{sym_name = "prim_func_c1", symbols = [#tir.symbol<n>]}> ({
^bb0(%x: f32):
}) : () -> ()  // @prim_func_c1

// -----

// CHECK: 'tir.prim_func' op binds symbol n twice
tir.prim_func @prim_func_c2[%n, %m as n](%X: !tir.buffer<[n], f32>) {
}

// -----

// CHECK: 'tir.prim_func' op parameter #0 expected a buffer or a scalar, got vector<4xf32>
tir.prim_func @prim_func_c3(%x: vector<4xf32>) {
}

// -----

// Buffers may be unsigned, values are signless.
// CHECK: 'tir.prim_func' op parameter #0 expected a buffer or a scalar, got ui8
tir.prim_func @prim_func_c3(%x: ui8) {
}

// -----

// CHECK: 'tir.prim_func' op does not bind symbol m, used by parameter #0
tir.prim_func @prim_func_c4[%n](%X: !tir.buffer<[n, m], f32>) {
}

// -----

// CHECK: 'tir.prim_func' op does not bind symbol m, used by 'tir.dim'
tir.prim_func @prim_func_c4[%n](%X: !tir.buffer<[n], f32>) {
  %e = tir.dim n + m
}

// -----

// CHECK: 'tir.prim_func' op does not bind symbol k, used by 'tir.alloc_buffer'
tir.prim_func @prim_func_c4[%n](%X: !tir.buffer<[n], f32>) {
  %T = tir.alloc_buffer : !tir.buffer<[n, k], f32>
}

// -----

// CHECK: 'tir.prim_func' op expected visibility public or private, got hidden
"tir.prim_func"() <{sym_name = "prim_func_c5", symbols = [], sym_visibility = "hidden"}> ({
^bb0:
}) : () -> ()  // @prim_func_c5

// -----

// The greatest value of the loop variable makes the index n.
// CHECK: 'tir.prim_func' op has a 'tir.load' whose index 0 of %X reaches n, expected less than n (line 62)
tir.prim_func @prim_func_c6[%n](%X: !tir.buffer<[n], f32>) {
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    %j = arith.addi %i, %c1 : index
    %x = tir.load %X[%j]
  }
}

// -----

// The least value makes the index -1.
// CHECK: 'tir.prim_func' op has a 'tir.store' whose index 1 of %X reaches -1, expected at least 0
tir.prim_func @prim_func_c6[%n](%X: !tir.buffer<[2, n], f32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    %j = arith.subi %i, %c1 : index
    tir.store %s, %X[%c0, %j]
  }
}

// -----

// A constant index.
// CHECK: 'tir.prim_func' op has a 'tir.load' whose index 1 of %X reaches 4, expected less than 4
tir.prim_func @prim_func_c6(%X: !tir.buffer<[2, 4], f32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tir.load %X[%c1, %c4]
}

// -----

// Iterators are looked at through their bindings, tiles through both loops.
// CHECK: 'tir.prim_func' op has a 'tir.store' whose index 0 of %Y reaches 8 * k, expected less than 8 * k
tir.prim_func @prim_func_c6[%k](%X: !tir.buffer<[8 * k], f32>, %Y: !tir.buffer<[8 * k], f32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tir.dim 8 * k
  tir.for (%i0, %i1) in (%k, %c8) {
    %base = arith.muli %i0, %c8 : index
    %i = arith.addi %base, %i1 : index
    tir.block "shift" (%vi = spatial %i in %e) {
      %x = tir.load %X[%vi]
      %j = arith.addi %vi, %c1 : index
      tir.store %x, %Y[%j]
    }
  }
}

// -----

// CHECK: 'tir.prim_func' op has a 'tir.block' "copy" whose binding 0 reaches n, expected less than n
tir.prim_func @prim_func_c6[%n](%X: !tir.buffer<[n], f32>) {
  %e = tir.dim n + 1
  tir.for (%i) in (%e) {
    tir.block "copy" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      tir.store %x, %X[%vi]
    }
  }
}

// -----

// Each iteration of the outer loop has some of the inner one.
// CHECK: 'tir.prim_func' op has a 'tir.load' whose index 0 of %X reaches n, expected less than n
tir.prim_func @prim_func_c6[%n](%X: !tir.buffer<[n], f32>) {
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    %m = arith.subi %n, %i : index
    tir.for (%j) in (%m) {
      %k = arith.addi %i, %c1 : index
      %x = tir.load %X[%k]
      tir.store %x, %X[%i]
    }
  }
}

// -----

// CHECK: cannot name a symbol
tir.prim_func @f[%0](%X: !tir.buffer<[1], f32>) {
}

// -----

// CHECK: symbol n has empty or negative bounds [4, 1]
tir.prim_func @f[%n in [4, 1]](%X: !tir.buffer<[n], f32>) {
}

// -----

// CHECK: 'tir.prim_func' op has a 'tir.load' whose index 0 of %X reaches 11, expected less than 10
tir.prim_func @prim_func_c6(%X: !tir.buffer<[10], f32>) {
  %c4 = arith.constant 4 : index
  %v = tir.load %X[%c4] : vector<8xf32>
  tir.store %v, %X[%c4]
}

// -----

// CHECK: 'tir.prim_func' op has a 'tir.match_buffer' whose range 1 of %X reaches n + 3, expected less than n
tir.prim_func @prim_func_c6[%n](%X: !tir.buffer<[2, n], f32>) {
  %c1 = arith.constant 1 : index
  %end = tir.dim n + 4
  %V = tir.match_buffer %X[%c1, %n to %end] : !tir.buffer<[4], f32>
}

// -----

// The part that a view takes begins too late to have four elements of two bytes.
// CHECK: 'tir.prim_func' op has a 'tir.view' of %X, which reaches 2 * n, expected less than 2 * n
tir.prim_func @prim_func_c6[%n in [2, 100]](%X: !tir.buffer<[n], f32>) {
  %start = tir.dim 2 * n - 3
  %V = tir.view %X at %start : !tir.buffer<[4], i16>
}

// -----

// Every iteration adds to one element.
// CHECK: 'tir.prim_func' op has a parallel loop whose iterations store to the same element of %Y (line
tir.prim_func @prim_func_c7[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[1], f32>) {
  %c0 = arith.constant 0 : index
  tir.for parallel (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = tir.load %Y[%c0]
    %s = arith.addf %x, %y : f32
    tir.store %s, %Y[%c0]
  }
}

// -----

// The first four iterations are of one row.
// CHECK: 'tir.prim_func' op has a parallel loop whose iterations store to the same element of %Y
tir.prim_func @prim_func_c7[%n](%X: !tir.buffer<[n, 4], f32>, %Y: !tir.buffer<[n], f32>) {
  %c4 = arith.constant 4 : index
  %e = tir.dim 4 * n
  tir.for parallel (%f) in (%e) {
    %i = arith.floordivsi %f, %c4 : index
    %j = arith.remsi %f, %c4 : index
    %x = tir.load %X[%i, %j]
    tir.store %x, %Y[%i]
  }
}

// -----

// What a block sums up is not divided among threads, also where a condition cuts the loop off.
// CHECK: 'tir.prim_func' op has a parallel loop whose iterations store to the same element of %Y
tir.prim_func @prim_func_c7[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
  %e = tir.dim m + 1
  tir.for (%i) in (%n) {
    tir.for parallel (%j) in (%e) {
      %inside = arith.cmpi slt, %j, %m : index
      tir.block "sum" (%vi = spatial %i in %n, %vj = reduce %j in %m) where %inside {
        %x = tir.load %X[%vi, %vj]
        %y = tir.load %Y[%vi]
        %s = arith.addf %x, %y : f32
        tir.store %s, %Y[%vi]
      }
    }
  }
}
