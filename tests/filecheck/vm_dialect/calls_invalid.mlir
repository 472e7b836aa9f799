// RUN: RELAX_INVALID

// CHECK: 'vm.call' op @missing is not a 'vm.func'
vm.func @call_c1(%x: !vm.object) {
  vm.call @missing(%x)
  vm.ret
}

// -----

// CHECK: 'vm.call' op @f expected 1 arguments, got 2
vm.func private @f(%n: i64) {
  vm.ret
}
vm.func private @call_c2(%n: i64) {
  vm.call @f(%n, %n)
  vm.ret
}

// -----

// CHECK: 'vm.call' op @f argument #0 expected type i64, got !vm.object
vm.func private @f(%n: i64) {
  vm.ret
}
vm.func @call_c2(%x: !vm.object) {
  vm.call @f(%x)
  vm.ret
}

// -----

// CHECK: 'vm.call' op @f expected result type none, got !vm.object
vm.func private @f() {
  vm.ret
}
vm.func @call_c3() {
  %r = vm.call @f() : !vm.object
  vm.ret
}

// -----

// CHECK: 'vm.call_kernel' op argument #1 expected a tensor of known rank and dtype, or a number, got !vm.tensor<_, f32>
vm.func private @call_kernel_c1(%t: !vm.tensor<2, f32>, %u: !vm.tensor<_, f32>) {
  vm.call_kernel @k(%t, %u)
  vm.ret
}

// -----

// CHECK: 'vm.call_packed' op argument #0 of type !vm.storage cannot leave its call
vm.func private @call_packed_c1(%s: !vm.storage) {
  vm.call_packed "f"(%s)
  vm.ret
}

// -----

// CHECK: Expected attribute !vm.object but got i64
vm.func @call_packed_c2() {
  %r = vm.call_packed "f"() : i64
  vm.ret
}

// -----

// CHECK: 'vm.make_closure' op @missing is not a 'vm.func'
vm.func @make_closure_c1() {
  %f = vm.make_closure @missing()
  vm.ret
}

// -----

// CHECK: 'vm.make_closure' op @f takes 1 arguments, captured 2
vm.func private @f(%n: i64) {
  vm.ret
}
vm.func private @make_closure_c2(%n: i64) {
  %f = vm.make_closure @f(%n, %n)
  vm.ret
}

// -----

// CHECK: 'vm.make_closure' op @f parameters after #1 must be !vm.object
vm.func private @f(%n: i64, %m: i64) {
  vm.ret
}
vm.func private @make_closure_c3(%n: i64) {
  %f = vm.make_closure @f(%n)
  vm.ret
}

// -----

// CHECK: 'vm.call_closure' op argument #0 of type !vm.storage cannot leave its call
vm.func private @call_closure_c1(%f: !vm.object, %s: !vm.storage) {
  vm.call_closure %f(%s)
  vm.ret
}

// -----

// CHECK: Expected attribute !vm.object but got i64
vm.func @call_closure_c2(%f: !vm.object) {
  %r = vm.call_closure %f() : i64
  vm.ret
}
