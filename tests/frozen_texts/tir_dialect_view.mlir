builtin.module {
  tir.prim_func @views[%n, %m](%X: !tir.buffer<[n, m], f32>) {
    %c0 = arith.constant 0 : index
    %V = tir.view %X : !tir.buffer<[4 * n, m], i8>
    %W = tir.view %X at %n {note} : !tir.buffer<[m], f32>
    %S = tir.view %X : !tir.buffer<[n], f32, strides = [m]>
    %x = tir.load %W[%c0]
  }
}
