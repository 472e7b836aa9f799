// RUN: RELAX_INVALID

// CHECK: 'tir.block' op "b" expected 1 bindings, extents and index region arguments, got 1, 0 and 1
tir.prim_func @block_c1[%n]() {
  "tir.block"(%n) <{block_name = "b", iterator_kinds = [#tir<iterator_kind spatial>], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%v: index):
  }) : (index) -> ()
}

// -----

// CHECK: 'tir.block' op "b" expected 'tir.init' as its first op
tir.prim_func @block_c2[%n]() {
  tir.for (%i) in (%n) {
    tir.block "b" (%v = reduce %i in %n) {
      %c = arith.constant 0.0 : f32
      tir.init {
      }
    }
  }
}

// -----

// CHECK: 'tir.block' op "b" has 'tir.init' but no reduce or scan iterator
tir.prim_func @block_c2[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    tir.block "b" (%v = spatial %i in %n) {
      tir.init {
        tir.store %s, %X[%v]
      }
    }
  }
}

// -----

// CHECK: 'tir.block' op "b" uses the loop variable %i, expected an iterator for it
tir.prim_func @block_c3[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    tir.block "b" (%v = spatial %i in %n) {
      tir.store %s, %X[%i]
    }
  }
}

// -----

// A value that is computed from a loop variable does not come in, either.
// CHECK: 'tir.block' op "b" uses the loop variable %i, expected an iterator for it
tir.prim_func @block_c3[%n](%X: !tir.buffer<[2 * n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    %j = arith.addi %i, %n : index
    tir.block "b" (%v = opaque %i in %n) {
      tir.store %s, %X[%j]
    }
  }
}

// -----

// CHECK: 'tir.block' op "b" stores to %X at indices without its spatial iterator %w
tir.prim_func @block_c4[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  tir.for (%i, %j) in (%n, %n) {
    tir.block "b" (%v = spatial %i in %n, %w = spatial %j in %n) {
      tir.store %s, %X[%v]
    }
  }
}

// -----

// CHECK: 'tir.block' op "b" stores to %X at indices with its reduce iterator %v
tir.prim_func @block_c4[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    tir.block "b" (%v = reduce %i in %n) {
      tir.store %s, %X[%v]
    }
  }
}

// -----

// CHECK: 'tir.init' expects parent op 'tir.block'
tir.prim_func @init_c1[%n]() {
  tir.init {
  }
}

// -----

// CHECK: 'tir.block' op expected the kind of an iterator, one of spatial, reduce, scan, opaque, got 'ordered'
tir.prim_func @unknown_kind[%n]() {
  tir.block "b" (%v = ordered %n in %n) {
  }
}

// -----

// CHECK: 'tir.block' op "b" has a 'tir.load' of %Y, which it does not declare (line
tir.prim_func @block_c5[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "b" (%v = spatial %i in %n) {
      tir.reads %X[%v]
      %y = tir.load %Y[%v]
      tir.store %y, %X[%v]
    }
  }
}

// -----

// CHECK: 'tir.block' op "b" has a 'tir.store' whose index 0 of %X reaches {{.*}} + 4, expected less than {{.*}} + 4
tir.prim_func @block_c5[%n](%X: !tir.buffer<[n + 8], f32>, %s: f32) {
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  tir.for (%i) in (%n) {
    tir.block "b" (%v = spatial %i in %n) {
      %end = arith.addi %v, %c4 : index
      tir.writes %X[%v to %end]
      tir.for (%j) in (%c5) {
        %p = arith.addi %v, %j : index
        tir.store %s, %X[%p]
      }
    }
  }
}
