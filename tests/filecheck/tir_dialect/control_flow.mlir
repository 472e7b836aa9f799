// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: tir.prim_func @branches
tir.prim_func @branches(%c: i1, %x: f32, %y: f32) {
  // CHECK: tir.if %c {
  // CHECK-NEXT: tir.assert
  // CHECK-NEXT: }
  tir.if %c {
    tir.assert %c, "taken"
  }
  // CHECK: tir.if %c attributes {note} {
  // CHECK-NEXT: } else {
  // CHECK-NEXT: tir.assert
  // CHECK-NEXT: }
  tir.if %c attributes {note} {
  } else {
    tir.assert %c, "not taken"
  }
  // With results, both regions yield.
  // CHECK: %r = tir.if %c -> (f32) {
  // CHECK-NEXT: tir.yield %x
  // CHECK-NEXT: } else {
  // CHECK-NEXT: tir.yield %y
  // CHECK-NEXT: }
  %r = tir.if %c -> (f32) {
    tir.yield %x
  } else {
    tir.yield %y
  }
  // CHECK: %two, %two_1 = tir.if %c -> (f32, i1) {
  %two:2 = tir.if %c -> (f32, i1) {
    tir.yield %x, %c
  } else {
    tir.yield %r, %c
  }
}

// CHECK-LABEL: tir.prim_func @loops
tir.prim_func @loops(%X: !tir.buffer<[], i32>, %limit: i32) {
  // CHECK: tir.while {
  // CHECK-NEXT: %x = tir.load %X[]
  // CHECK-NEXT: %go = arith.cmpi slt, %x, %limit : i32
  // CHECK-NEXT: tir.condition %go
  // CHECK-NEXT: } do {
  // CHECK-NEXT: tir.store %limit, %X[]
  // CHECK-NEXT: }
  tir.while {
    %x = tir.load %X[]
    %go = arith.cmpi slt, %x, %limit : i32
    tir.condition %go
  } do {
    tir.store %limit, %X[]
  }
}
