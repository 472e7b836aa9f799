builtin.module {
  tir.prim_func @relaxed_float(%A: !tir.buffer<[8], f32>, %a: f32) {
    %c0 = arith.constant 0 : index
    %v = tir.load %A[%c0] : vector<8xf32>
    %g = tir.greater %a, %a : f32
    %h = tir.greater %v, %v {note} : vector<8xf32>
    %e = tir.scaled_exp %g : f32
    %f = tir.scaled_exp %h {note} : vector<8xf32>
    tir.store %f, %A[%c0]
    tir.store %e, %A[%c0]
  }
}
