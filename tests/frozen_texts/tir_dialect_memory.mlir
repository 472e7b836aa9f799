builtin.module {
  tir.prim_func @elements[%n](%X: !tir.buffer<[n, 4], ui8>, %S: !tir.buffer<[], f32>) {
    %c0 = arith.constant 0 : index
    tir.for (%i) in (%n) {
      %x = tir.load %X[%i, %c0]
      tir.store %x, %X[%i, %c0] {note}
    }
    %s = tir.load %S[] {note}
    tir.store %s, %S[]
  }
  tir.prim_func @vectors[%n](%X: !tir.buffer<[n, 16], f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %mask = vector.create_mask %n : vector<8xi1>
    %lanes = tir.ramp %c0 by %c1 : vector<8xindex>
    tir.for (%i) in (%n) {
      %v = tir.load %X[%i, %c0] : vector<8xf32>
      %w = tir.load %X[%i, %c0] mask %mask : vector<8xf32>
      %g = tir.load %X[%i, %lanes]
      %h = tir.load %X[%i, %lanes] mask %mask
      tir.store %v, %X[%i, %c0]
      tir.store %w, %X[%i, %c0] mask %mask
      tir.store %g, %X[%i, %lanes]
      tir.store %h, %X[%i, %lanes] mask %mask
    }
  }
  tir.prim_func @allocation[%n]() {
    %T = tir.alloc_buffer annotations {tile = 4 : i64} {note} : !tir.buffer<[n, 4], f32, scope = "local", align = 64>
  }
}
