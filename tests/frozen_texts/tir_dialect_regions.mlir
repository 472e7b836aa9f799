builtin.module {
  tir.prim_func @views[%n, %m](%X: !tir.buffer<[n, m], f32>) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %T = tir.match_buffer %X[%c0 to %c16, %c0 to %c16] {note} : !tir.buffer<[16, 16], f32, strides = [m, 1]>
    %R = tir.match_buffer %X[%c0, %c0 to %c16] : !tir.buffer<[16], f32>
    %C = tir.match_buffer %X[%c0 to %c16, %c0] : !tir.buffer<[16], f32, strides = [m]>
    %P = tir.match_buffer %X[%c0, %c0] : !tir.buffer<[], f32>
  }
  tir.prim_func @declarations[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
    tir.for (%i) in (%n) {
      tir.block "opaque" (%vi = spatial %i in %n) {
        %c0 = arith.constant 0 : index
        tir.reads %X[%vi, %c0 to %m]
        tir.writes %Y[%vi]
      }
    }
  }
}
