// RUN: relax-opt %s -p "cse,dce,canonicalize" | filecheck %s

// Two loads of one element are one, as long as nothing writes in between.
// CHECK-LABEL: tir.prim_func @loads
// CHECK-NEXT:    %x = tir.load %X[]
// CHECK-NEXT:    %s = arith.addf %x, %x : f32
// CHECK-NEXT:    tir.store %s, %X[]
// CHECK-NEXT:    %z = tir.load %X[]
// CHECK-NEXT:    tir.store %z, %Y[]
// CHECK-NEXT:  }
tir.prim_func @loads(%X: !tir.buffer<[], f32>, %Y: !tir.buffer<[], f32>) {
  %x = tir.load %X[]
  %y = tir.load %X[]
  %s = arith.addf %x, %y : f32
  tir.store %s, %X[]
  %z = tir.load %X[]
  tir.store %z, %Y[]
}

// What is read but not used goes, with the loops around it; what is written stays.
// CHECK-LABEL: tir.prim_func @dead
// CHECK-NEXT:    tir.store %s, %X[]
// CHECK-NEXT:  }
tir.prim_func @dead[%n](%X: !tir.buffer<[], f32>, %s: f32) {
  tir.store %s, %X[]
  tir.for (%i) in (%n) {
    %x = tir.load %X[]
    tir.block "b" (%v = spatial %i in %n) {
      %y = tir.load %X[]
    }
  }
  %T = tir.alloc_buffer : !tir.buffer<[n], f32>
  %e = tir.call_extern pure "erff"(%s) : f32
}

// Allocations are distinct; calls, assertions and declarations stay.
// CHECK-LABEL: tir.prim_func @kept
// CHECK-NEXT:    %T = tir.alloc_buffer
// CHECK-NEXT:    %U = tir.alloc_buffer
// CHECK-NEXT:    tir.call_packed "f"(%T, %U)
// CHECK-NEXT:    tir.call_packed "f"(%T, %U)
// CHECK-NEXT:    tir.assert %ok, "message"
// CHECK-NEXT:    tir.block "b" {
// CHECK-NEXT:      tir.reads %T[%n]
// CHECK-NEXT:    }
// CHECK-NEXT:    tir.call @kept[%n](%ok)
tir.prim_func @kept[%n](%ok: i1) {
  %T = tir.alloc_buffer : !tir.buffer<[n], f32>
  %U = tir.alloc_buffer : !tir.buffer<[n], f32>
  tir.call_packed "f"(%T, %U)
  tir.call_packed "f"(%T, %U)
  tir.assert %ok, "message"
  tir.block "b" {
    tir.reads %T[%n]
  }
  tir.call @kept[%n](%ok)
}

// A dimension that is a number is a constant, one that is a symbol the argument.
// CHECK-LABEL: tir.prim_func @dims
// CHECK-NEXT:    %c = arith.constant 4 : index
// CHECK-NEXT:    %e = tir.dim n + 1
// CHECK-NEXT:    tir.call_extern "use"(%c, %n, %e)
tir.prim_func @dims[%n]() {
  %c = tir.dim 4
  %s = tir.dim n
  %e = tir.dim n + 1
  tir.call_extern "use"(%c, %s, %e)
}

// A hint changes no value, but it stays, and nothing is read again because of it.
// CHECK-LABEL: tir.prim_func @hint
// CHECK-NEXT:    tir.prefetch %X[] level 1
// CHECK-NEXT:    tir.prefetch %X[] level 1
tir.prim_func @hint(%X: !tir.buffer<[], f32>) {
  tir.prefetch %X[] level 1
  tir.prefetch %X[] level 1
}
