// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: tir.prim_func @dot
tir.prim_func @dot(%A: !tir.buffer<[16], i32>, %B: !tir.buffer<[16], f32>) {
  %c0 = arith.constant 0 : index
  %a = tir.load %A[%c0] : vector<16xi32>
  %b = tir.load %B[%c0] : vector<16xf32>
  // CHECK: %s = tir.dot ui8 %a, i8 %a, %a : vector<16xi32>
  // CHECK-NEXT: %t = tir.dot bf16 %a, bf16 %a, %b {note} : vector<16xf32>
  // CHECK-NEXT: %u = tir.dot i16 %a, i16 %a, %s : vector<16xi32>
  // CHECK-NEXT: %v = tir.dot saturating ui8 %a, i8 %a, %s : vector<16xi32>
  %s = tir.dot ui8 %a, i8 %a, %a : vector<16xi32>
  %t = tir.dot bf16 %a, bf16 %a, %b {note} : vector<16xf32>
  %u = tir.dot i16 %a, i16 %a, %s : vector<16xi32>
  %v = tir.dot saturating ui8 %a, i8 %a, %s : vector<16xi32>
  tir.store %s, %A[%c0]
  tir.store %t, %B[%c0]
}
