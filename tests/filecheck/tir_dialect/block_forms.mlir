// RUN: relax-opt %s | filecheck %s

// What a block may write to: elements that each of its spatial iterators picks, also by way of inner loops, nested
// blocks, views and memory; and anything in its own buffers.

// CHECK-LABEL: tir.prim_func @tiles
tir.prim_func @tiles[%k](%X: !tir.buffer<[8 * k], f32>, %s: f32) {
  %c8 = arith.constant 8 : index
  %e = tir.dim 8 * k
  tir.for (%i) in (%k) {
    tir.block "outer" (%vi = spatial %i in %k) {
      %base = arith.muli %vi, %c8 : index
      %T = tir.alloc_buffer : !tir.buffer<[8], f32>
      tir.for (%j) in (%c8) {
        tir.store %s, %T[%j]
      }
      tir.for (%j) in (%c8) {
        %a = arith.addi %base, %j : index
        tir.block "inner" (%va = spatial %a in %e) {
          tir.store %s, %X[%va]
        }
      }
    }
  }
}

// CHECK-LABEL: tir.prim_func @views
tir.prim_func @views[%n](%X: !tir.buffer<[n, 8], f32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  tir.for (%i) in (%n) {
    tir.block "rows" (%vi = spatial %i in %n) {
      %R = tir.match_buffer %X[%vi, %c0 to %c8] : !tir.buffer<[8], f32>
      tir.store %s, %R[%c0]
    }
  }
}

// A store to where memory says, and a histogram: the reduce iterator picks the element by a value, not by itself.
// CHECK-LABEL: tir.prim_func @indirect
tir.prim_func @indirect[%n](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    tir.block "scatter" (%vi = spatial %i in %n) {
      %k = tir.load %I[%vi]
      %j = arith.index_cast %k : i64 to index
      tir.store %s, %X[%j]
    }
    tir.block "histogram" (%vi = reduce %i in %n) {
      %k = tir.load %I[%vi]
      %j = arith.index_cast %k : i64 to index
      %x = tir.load %X[%j]
      %y = arith.addf %x, %s : f32
      tir.store %y, %X[%j]
    }
  }
}

// An iterator with one value need not occur.
// CHECK-LABEL: tir.prim_func @unit
tir.prim_func @unit[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  %c1 = arith.constant 1 : index
  tir.for (%i, %j) in (%n, %c1) {
    tir.block "b" (%vi = spatial %i in %n, %vj = spatial %j in %c1) {
      tir.store %s, %X[%vi]
    }
  }
}

// One without values need not, either, nor one that a condition inside decides about.
// CHECK-LABEL: tir.prim_func @at_most_one
tir.prim_func @at_most_one[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for (%i, %j, %k) in (%n, %c0, %n) {
    tir.block "outer" (%vi = spatial %i in %n, %vj = spatial %j in %c0, %vk = spatial %k in %n) {
      %first = arith.cmpi slt, %vk, %c1 : index
      tir.block "inner" (%va = spatial %vi in %n) where %first {
        tir.store %s, %X[%va]
      }
    }
  }
}

// Iterators of outer blocks and values of the function come in freely.
// CHECK-LABEL: tir.prim_func @captures
tir.prim_func @captures[%n](%X: !tir.buffer<[n, n], f32>, %s: f32) {
  tir.for (%i) in (%n) {
    tir.block "outer" (%vi = spatial %i in %n) {
      tir.for (%j) in (%vi) {
        tir.block "inner" (%vj = spatial %j in %n) {
          tir.store %s, %X[%vi, %vj]
        }
      }
    }
  }
}
