// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: tir.prim_func @fields[%n](%tensor: i64, %X: !tir.buffer<[n, 4], f32>) may_alias {
tir.prim_func @fields[%n](%tensor: i64, %X: !tir.buffer<[n, 4], f32>) may_alias {
  %c0 = arith.constant 0 : index
  // CHECK: %data = tir.memory_at %tensor : !tir.buffer<[1], i64>
  // CHECK-NEXT: %address = tir.load %data[%c0]
  // CHECK-NEXT: %A = tir.memory_at %address : !tir.buffer<[n, 4], f32, strides = [8, 1]>
  %data = tir.memory_at %tensor : !tir.buffer<[1], i64>
  %address = tir.load %data[%c0]
  %A = tir.memory_at %address : !tir.buffer<[n, 4], f32, strides = [8, 1]>
  // CHECK-NEXT: %there = tir.address_of %X[%c0, %c0]
  %there = tir.address_of %X[%c0, %c0]
  tir.store %there, %data[%c0]
  // CHECK: %text = tir.text "a \22text\22"
  %text = tir.text "a \22text\22"
  // CHECK-NEXT: tir.call_boxed "f"(%text, 0)
  tir.call_boxed "f"(%text, 0)
}
