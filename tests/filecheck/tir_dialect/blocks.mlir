// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: tir.prim_func @matmul
tir.prim_func @matmul[%m, %n, %k](%A: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n, k], f32>, %C: !tir.buffer<[m, k], f32>) {
  // CHECK-NEXT: tir.for (%i, %j, %r) in (%m, %k, %n) {
  // CHECK-NEXT: tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
  // CHECK-NEXT: tir.init {
  // CHECK-NEXT: %zero = arith.constant
  // CHECK-NEXT: tir.store %zero, %C[%vi, %vj]
  // CHECK-NEXT: }
  // CHECK-NEXT: %a = tir.load %A[%vi, %vr]
  tir.for (%i, %j, %r) in (%m, %k, %n) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// CHECK-LABEL: tir.prim_func @everything
tir.prim_func @everything[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  %c1 = arith.constant 1 : index
  // CHECK: tir.for (%i) in (%n) {
  tir.for (%i) in (%n) {
    %inside = arith.cmpi slt, %i, %n : index
    // CHECK: tir.block "scan" (%vi = scan %i in %n, %vo = opaque %i in %n) where %inside annotations {auto = "yes"} attributes {note} {
    // CHECK-NEXT: tir.reads %X[%vi to %n]
    // CHECK-NEXT: tir.writes %Y[%vi] {note}
    // CHECK-NEXT: }
    tir.block "scan" (%vi = scan %i in %n, %vo = opaque %i in %n) where %inside annotations {auto = "yes"} attributes {note} {
      tir.reads %X[%vi to %n]
      tir.writes %Y[%vi] {note}
    }
  }
  // CHECK: tir.block "root" {
  // CHECK-NEXT: }
  tir.block "root" {
  }
}
