// RUN: RELAX_INVALID

// CHECK: 'relax.call' op expected a 'relax.func', but @missing is not defined in the module
relax.func @call_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call @missing(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op expected a 'relax.func', but @kernel is a 'tir.prim_func'
tir.prim_func private @kernel(%x: !tir.buffer<[4], f32>) {
}
relax.func @call_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call @kernel(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op expected 2 arguments, got 1
relax.func private @f[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @call_c2(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call @f(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op argument #1 dimension 0: 5 does not match n with n = 4
relax.func private @f[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @call_c2(%x: !relax.tensor<[4], f32>, %y: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.call @f(%x, %y) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op argument #0: expected !relax.tensor<[n], f32>, got !relax.tensor<[4, 4], f32>
relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @call_c2(%x: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %0 = relax.call @f(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op argument #0 dimension 0: expected n in [1, 8], got 9
relax.func private @f[%n in [1, 8]](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @call_c2(%x: !relax.tensor<[9], f32>) -> !relax.object {
  %0 = relax.call @f(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call' op result #0 expected !relax.tensor<[4], f32> as inferred, got !relax.tensor<[5], f32>
relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @call_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call @f(%x) : !relax.tensor<[5], f32>
  relax.return %0
}

// -----

// More than the callee promises takes a match_cast.
// CHECK: 'relax.call' op result #0 declares !relax.tensor<[n], f32>, but only !relax.tensor<[_], f32> can be inferred; refine the result with 'relax.match_cast'
relax.func private @f(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  relax.return %x
}
relax.func @call_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.call @f(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call' op calls @f, which is impure; write 'impure'
relax.func private @f(%x: !relax.object) -> !relax.object impure {
  relax.print "{}"(%x)
  relax.return %x
}
relax.func @call_c4(%x: !relax.object) -> !relax.object impure {
  %0 = relax.call @f(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.call_closure' op expected a function as callee, got !relax.tensor<[4], f32>
relax.func @call_closure_c1(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call_closure %x(%x)
  relax.return %0
}

// -----

// CHECK: 'relax.call_closure' op expected 1 argument, got 2
relax.func @call_closure_c2(%f: !relax.func<[n](!relax.tensor<[n], f32>) -> !relax.object, pure>, %x: !relax.object) -> !relax.object {
  %0 = relax.call_closure %f(%x, %x)
  relax.return %0
}

// -----

// CHECK: 'relax.call_closure' op argument #0 dimension 0: 5 does not match 2 * n
relax.func @call_closure_c2(%f: !relax.func<[n](!relax.tensor<[2 * n], f32>) -> !relax.object, pure>, %x: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.call_closure %f(%x)
  relax.return %0
}

// -----

// A derive function has to be registered before its name is used.
// CHECK: 'relax.call_closure' op the derive function unknown is not registered
relax.func @call_closure(%f: !relax.func<* derive "unknown" -> !relax.object, pure>, %x: !relax.object) -> !relax.object {
  %0 = relax.call_closure %f(%x)
  relax.return %0
}

// -----

// CHECK: 'relax.make_closure' op expected a 'relax.func', but @missing is not defined in the module
relax.func @make_closure_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.make_closure @missing(%x) : !relax.func<() -> !relax.object, pure>
  relax.return %0
}

// -----

// CHECK: 'relax.make_closure' op captures 2 values, but @make_closure_c1 has 1 parameters
relax.func @make_closure_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.make_closure @make_closure_c1(%x, %x) : !relax.func<() -> !relax.object, pure>
  relax.return %0
}

// -----

// CHECK: 'relax.make_closure' op captured value #0 dimension 0: 5 does not match 4
relax.func private @f(%x: !relax.tensor<[4], f32>) -> !relax.object {
  relax.return %x
}
relax.func @make_closure_c2(%x: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.make_closure @f(%x) : !relax.func<() -> !relax.object, pure>
  relax.return %0
}

// -----

// CHECK: 'relax.make_closure' op result #0 expected !relax.func<() -> !relax.object, impure> as inferred, got !relax.func<() -> !relax.object, pure>
relax.func private @f(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  relax.return %x
}
relax.func @make_closure_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.make_closure @f(%x) : !relax.func<() -> !relax.object, pure>
  relax.return %0
}

// -----

// CHECK: 'relax.extern_func' op expected an opaque function type, got !relax.func<() -> !relax.object, pure>
relax.func @extern_func_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.extern_func "f" : !relax.func<() -> !relax.object, pure>
  relax.return %0
}

// -----

// CHECK: 'relax.call' op expected a 'relax.func', but @g is not defined in the module
relax.func @nothing(%x: !relax.object) -> !relax.object {
  %0 = relax.call @g(%x)
  relax.return %0
}

// -----

// CHECK: 'relax.call' op argument #0 dimension 0: 4 does not match 3
relax.func @wrong_argument(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call @g(%x)
  relax.return %0
}
relax.func private @g(%x: !relax.tensor<[3], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.make_closure' op captures 2 values, but @g has 1 parameters
relax.func @wrong_captures(%x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.make_closure @g(%x, %x)
  relax.return %0
}
relax.func private @g(%x: !relax.tensor<[3], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.make_closure' op captured value #0 dimension 0: 4 does not match 3
relax.func @wrong_captured(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.make_closure @g(%x)
  relax.return %0
}
relax.func private @g(%x: !relax.tensor<[3], f32>) -> !relax.object {
  relax.return %x
}
