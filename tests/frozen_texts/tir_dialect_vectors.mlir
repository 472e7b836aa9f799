builtin.module {
  tir.prim_func @lanes[%n](%A: !tir.buffer<[8], f32>, %B: !tir.buffer<[8], i32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = tir.ramp %c0 by %c1 : vector<8xindex>
    %a = tir.load %A[%at]
    %b = tir.load %B[%at]
    %m = tir.compare olt %a, %a : vector<8xf32>
    %k = tir.compare sge %b, %b {note} : vector<8xi32>
    %r = tir.select %m, %a, %a : vector<8xf32>
    %s = tir.select %k, %b, %b {note} : vector<8xi32>
    %i = tir.first_lane %m {note} : vector<8xi1>
    tir.store %r, %A[%at]
    tir.store %s, %B[%at]
  }
}
