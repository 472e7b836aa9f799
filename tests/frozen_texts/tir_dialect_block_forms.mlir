builtin.module {
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
        tir.for (%j_1) in (%c8) {
          %a = arith.addi %base, %j_1 : index
          tir.block "inner" (%va = spatial %a in %e) {
            tir.store %s, %X[%va]
          }
        }
      }
    }
  }
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
  tir.prim_func @indirect[%n](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[n], f32>, %s: f32) {
    tir.for (%i) in (%n) {
      tir.block "scatter" (%vi = spatial %i in %n) {
        %k = tir.load %I[%vi]
        %j = arith.index_cast %k : i64 to index
        tir.store %s, %X[%j]
      }
      tir.block "histogram" (%vi_1 = reduce %i in %n) {
        %k_1 = tir.load %I[%vi_1]
        %j_1 = arith.index_cast %k_1 : i64 to index
        %x = tir.load %X[%j_1]
        %y = arith.addf %x, %s : f32
        tir.store %y, %X[%j_1]
      }
    }
  }
  tir.prim_func @unit[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
    %c1 = arith.constant 1 : index
    tir.for (%i, %j) in (%n, %c1) {
      tir.block "b" (%vi = spatial %i in %n, %vj = spatial %j in %c1) {
        tir.store %s, %X[%vi]
      }
    }
  }
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
}
