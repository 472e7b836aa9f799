// RUN: relax-opt %s -p plan-memory | filecheck %s
// RUN: relax-opt %s -p plan-memory,plan-memory | filecheck %s

tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// A chain of three tensors needs the memory of two; what is returned keeps its own.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %storage = relax.alloc_storage size 128 * floordiv(n + 15, 16)
// CHECK-NEXT:    %a = relax.storage_tensor %storage at 0 : !relax.tensor<[n], f32>
// CHECK:         %b = relax.storage_tensor %storage at 64 * floordiv(n + 15, 16) : !relax.tensor<[n], f32>
// CHECK:         %c = relax.storage_tensor %storage at 0 : !relax.tensor<[n], f32>
// CHECK:         %d = relax.alloc_tensor : !relax.tensor<[n], f32>
relax.func @chain[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%a, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%b, %c) sizes [n]
  %d = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%c, %d) sizes [n]
  relax.return %d
}

// A view keeps memory alive; a view that leaves the function takes its tensor with it.
// CHECK-LABEL: relax.func @views
// CHECK:         %a = relax.storage_tensor %storage at 0
// CHECK:         %b = relax.storage_tensor %storage at 64
// CHECK:         %c = relax.alloc_tensor
relax.func @views(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[2, 2], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[4], f32>
  relax.call_kernel @copy(%x, %a) sizes [4]
  %v = relax.match_cast %a : !relax.tensor<[4], f32>
  %b = relax.alloc_tensor : !relax.tensor<[4], f32>
  relax.call_kernel @copy(%x, %b) sizes [4]
  %c = relax.alloc_tensor : !relax.tensor<[4], f32>
  relax.call_kernel @copy(%v, %c) sizes [4]
  %s = relax.shape [2, 2]
  %w = relax.reshape %c, %s
  relax.return %w
}

// A size is known where its last symbol is bound: there is a storage for each such place.
// CHECK-LABEL: relax.func @places
// CHECK-NEXT:    %storage = relax.alloc_storage size 64 * floordiv(n + 15, 16)
// CHECK-NEXT:    %a = relax.storage_tensor %storage at 0
// CHECK:         %z, %m = relax.match_cast
// CHECK-NEXT:    %storage_1 = relax.alloc_storage size 64 * floordiv(m + 15, 16)
// CHECK-NEXT:    %b = relax.storage_tensor %storage_1 at 0
relax.func @places[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[_], f32>) -> !relax.tensor<[n], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  %z, %m = relax.match_cast %y : !relax.tensor<[m], f32> binds [m]
  %b = relax.alloc_tensor : !relax.tensor<[m], f32>
  relax.call_kernel @copy(%z, %b) sizes [m]
  relax.return %x
}

// What a packed function is given may be kept by it.
// CHECK-LABEL: relax.func @escapes
// CHECK-NOT:     relax.alloc_storage
relax.func @escapes[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  relax.call_packed "keep"(%a)
  relax.return %x
}

// Where symbols have upper bounds, sizes are planned at their greatest values.
// CHECK-LABEL: relax.func @bounded
// CHECK-NEXT:    %storage = relax.alloc_storage size 512
// CHECK-NEXT:    %a = relax.storage_tensor %storage at 0 : !relax.tensor<[n], f32>
// CHECK:         %b = relax.storage_tensor %storage at 256 : !relax.tensor<[n], f32>
relax.func @bounded[%n in [1, 50]](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%a, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%b, %c) sizes [n]
  relax.return %c
}
