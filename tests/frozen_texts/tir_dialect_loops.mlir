builtin.module {
  tir.prim_func @nests[%n, %m](%X: !tir.buffer<[n, m], f32>, %s: f32) {
    %c1 = arith.constant 1 : index
    tir.for (%i, %j) in (%n, %c1 to %m) {
      tir.store %s, %X[%i, %j]
    }
    tir.for parallel (%i_1, %k) in (%n, %c1) {
      tir.for vectorized (%j_1) in (%m) {
        tir.store %s, %X[%i_1, %j_1]
      }
    }
    tir.for (%i_2) in (%n) {
      tir.for (%j_2) in (%i_2) {
      }
    }
    tir.for unrolled (%i_3) in (%n) {
      tir.for unrolled (%j_3) in (%m) {
      }
      tir.for unrolled (%j_4) in (%m) {
      }
    }
  }
  tir.prim_func @annotations[%n, %m](%X: !tir.buffer<[n, m], f32>) {
    tir.for (%i) in (%n) annotations {factor = 4 : i64} attributes {note} {
      tir.for (%j) in (%m) annotations {x} {
        tir.for (%k) in (%m) {
        }
      }
    }
  }
  tir.prim_func @threads[%n, %m](%X: !tir.buffer<[n, m], f32>) {
    tir.for thread_binding "blockIdx.x" (%i) in (%n) {
      tir.for thread_binding "threadIdx.x" (%j) in (%m) {
      }
    }
  }
}
