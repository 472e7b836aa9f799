builtin.module {
  tir.prim_func @convert(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], f32>) {
    %c0 = arith.constant 0 : index
    %a = tir.load %A[%c0] : vector<8xi32>
    %f = tir.convert sitofp %a : vector<8xi32> to vector<8xf32>
    %at = tir.convert index_cast %a {note} : vector<8xi32> to vector<8xindex>
    %w = tir.convert extf %f : vector<8xf32> to vector<8xf64>
    %bits = tir.convert bitcast %w : vector<8xf64> to vector<8xi64>
    tir.store %f, %B[%at]
  }
}
