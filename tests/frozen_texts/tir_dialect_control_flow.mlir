builtin.module {
  tir.prim_func @branches(%c: i1, %x: f32, %y: f32) {
    tir.if %c {
      tir.assert %c, "taken"
    }
    tir.if %c attributes {note} {
    } else {
      tir.assert %c, "not taken"
    }
    %r = tir.if %c -> (f32) {
      tir.yield %x
    } else {
      tir.yield %y
    }
    %two, %two_1 = tir.if %c -> (f32, i1) {
      tir.yield %x, %c
    } else {
      tir.yield %r, %c
    }
  }
  tir.prim_func @loops(%X: !tir.buffer<[], i32>, %limit: i32) {
    tir.while {
      %x = tir.load %X[]
      %go = arith.cmpi slt, %x, %limit : i32
      tir.condition %go
    } do {
      tir.store %limit, %X[]
    }
  }
}
