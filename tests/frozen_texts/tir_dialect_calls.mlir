builtin.module {
  tir.prim_func @foreign[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
    tir.call_extern "kernel"(%X, %s, %n) {note}
    %e = tir.call_extern pure "erff"(%s) : f32
    tir.call_packed "sort"(%X)
    %p = tir.call_packed "rank"(%X) : i64
  }
  tir.prim_func @caller[%a](%X: !tir.buffer<[2 * a, 4], f32>, %Y: !tir.buffer<[8], f32>) {
    %rows = tir.dim 2 * a
    %c4 = arith.constant 4 : index
    tir.call @callee[%rows, %c4](%X)
    tir.call @fixed(%Y) {note}
    tir.call unchecked @relax.routine.fixed(%Y)
  }
  tir.prim_func private @callee[%n, %m](%Z: !tir.buffer<[n, m], f32>) {
  }
  tir.prim_func private @fixed(%Z: !tir.buffer<[8], f32>) {
  }
  tir.prim_func private @relax.routine.fixed(%Z: !tir.buffer<[8], f32>) {
  }
  tir.prim_func @late[%a](%X: !tir.buffer<[a], f32>, %s: i64) {
    %rows = arith.index_cast %s : i64 to index
    tir.call @late[%rows](%X, %s)
    tir.call @late[%a](%X, %s)
  }
}
