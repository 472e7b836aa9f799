builtin.module {
  tir.prim_func @remainder(%A: !tir.buffer<[8], f64>, %a: f32) {
    %c0 = arith.constant 0 : index
    %v = tir.load %A[%c0] : vector<8xf64>
    %g = tir.fmod %a, %a : f32
    %h = tir.fmod %v, %v {note} : vector<8xf64>
    tir.store %h, %A[%c0]
  }
}
