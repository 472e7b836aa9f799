// RUN: RELAX_INVALID

// CHECK: 'tir.if' op then region expected to yield (f32), got ()
tir.prim_func @if_c1(%c: i1, %x: f32) {
  %r = tir.if %c -> (f32) {
  } else {
    tir.yield %x
  }
}

// -----

// CHECK: 'tir.if' op else region expected to yield (f32), got (i1)
tir.prim_func @if_c1(%c: i1, %x: f32) {
  %r = tir.if %c -> (f32) {
    tir.yield %x
  } else {
    tir.yield %c
  }
}

// -----

// CHECK: 'tir.if' op then region expected to yield (), got (f32)
tir.prim_func @if_c1(%c: i1, %x: f32) {
  tir.if %c {
    tir.yield %x
  }
}

// -----

// CHECK: 'tir.while' op first region expected to end in 'tir.condition'
tir.prim_func @while_c1(%c: i1) {
  tir.while {
  } do {
  }
}
