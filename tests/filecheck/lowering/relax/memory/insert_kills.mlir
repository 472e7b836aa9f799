// RUN: relax-opt %s -p insert-kills --split-input-file --verify-diagnostics | filecheck %s
// RUN: relax-opt %s -p insert-kills,insert-kills --split-input-file --verify-diagnostics | filecheck %s

tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// A value ends after its last use, a storage after the last use of what lies in it; parameters and results do not end.
// CHECK-LABEL: relax.func @main
// CHECK:         relax.call_kernel @copy(%x, %a) sizes [n]
// CHECK-NEXT:    %b = relax.alloc_tensor : !relax.tensor<[n], f32>
// CHECK-NEXT:    relax.call_kernel @copy(%a, %b) sizes [n]
// CHECK-NEXT:    relax.kill %s
// CHECK-NEXT:    relax.call_packed "use"(%b)
// CHECK-NEXT:    relax.kill %b
// CHECK-NEXT:    relax.call_packed "use"(%x)
// CHECK-NEXT:    relax.return %x
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %s = relax.alloc_storage size 4 * n
  %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%a, %b) sizes [n]
  relax.call_packed "use"(%b)
  relax.call_packed "use"(%x)
  relax.return %x
}

// Nothing comes between a call in tail position and the return.
// CHECK-LABEL: relax.func @tail
// CHECK:         %r = relax.call @tail(%a) : !relax.tensor<[4], f32>
// CHECK-NEXT:    relax.return %r
relax.func @tail(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %a = relax.call_pure_packed "next"(%x) : !relax.tensor<[4], f32>
  %r = relax.call @tail(%a) : !relax.tensor<[4], f32>
  relax.return %r
}

// To free what a function made itself does not make it impure.
// CHECK-LABEL: relax.func @pure
// CHECK-SAME:    force_pure
// CHECK:         relax.kill %a
// CHECK-NEXT:    %c = relax.call_pure_packed "next"(%b)
relax.func @pure(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %a = relax.call_pure_packed "next"(%x) : !relax.tensor<[4], f32>
  %b = relax.call_pure_packed "next"(%a) : !relax.tensor<[4], f32>
  %c = relax.call_pure_packed "next"(%b) : !relax.tensor<[4], f32>
  relax.return %c
}

// -----

// The values of a closure are those of its calls.
// CHECK: error: 'relax.closure' op has values that end with its own calls
// CHECK: hint: run 'lambda-lift' before
relax.func @closure(%x: !relax.object) -> !relax.object {
  %f = relax.closure (%y: !relax.object) -> !relax.object {
    relax.return %y
  }
  relax.return %f
}
