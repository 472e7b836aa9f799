// RUN: relax-opt %s -p hoist-branch-results --split-input-file | filecheck %s
// RUN: relax-opt %s -p hoist-branch-results,hoist-branch-results --split-input-file | filecheck %s
// RUN: relax-opt %s -p hoist-branch-results --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Nested branches write into the memory that is made in front of the outer one; another result stays a result.
// CHECK-LABEL: relax.func @nested
// CHECK-NEXT:    %r = relax.alloc_tensor
// CHECK-NEXT:    %k = relax.if %c {
// CHECK-NEXT:      relax.if %c {
// CHECK-NEXT:        relax.call_kernel @exp(%x, %r) sizes [n]
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.call_kernel @exp(%x, %r) sizes [n]
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.yield %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      relax.call_kernel @exp(%x, %r) sizes [n]
// CHECK-NEXT:      relax.yield %x
// CHECK-NEXT:    }
// CHECK-NEXT:    %y = relax.alloc_tensor
// CHECK-NEXT:    relax.call_kernel @exp(%r, %y) sizes [n]
// LOC: %r = relax.alloc_tensor : !relax.tensor<[n], f32> loc("{{.*}}":[[# @LINE + 11]]:3)
tir.prim_func @exp[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %b = math.exp %a : f32
      tir.store %b, %B[%vi]
    }
  }
}
relax.func @nested[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>) -> !relax.object force_pure {
  %r, %k = relax.if %c {
    %i = relax.if %c {
      %a = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @exp(%x, %a) sizes [n]
      relax.yield %a
    } else {
      %b = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @exp(%x, %b) sizes [n]
      relax.yield %b
    }
    relax.yield %i, %x
  } else {
    %d = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %d) sizes [n]
    relax.yield %d, %x
  }
  %y = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @exp(%r, %y) sizes [n]
  %t = relax.tuple(%y, %k)
  relax.return %t
}

// -----

// A result that is returned, that a branch only passes on, or that is yielded twice, is made where it was.
// CHECK-LABEL: relax.func @stay
// CHECK:         %r, %k, %l = relax.if %c {
tir.prim_func @exp[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %b = math.exp %a : f32
      tir.store %b, %B[%vi]
    }
  }
}
relax.func @stay[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[n], f32> force_pure {
  %r, %k, %l = relax.if %c {
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    %b = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %b) sizes [n]
    relax.yield %a, %b, %b
  } else {
    %d = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %d) sizes [n]
    relax.yield %d, %d, %x
  }
  relax.call_kernel @exp(%k, %l) sizes [n]
  relax.return %r
}
