// RUN: relax-opt %s -p canonicalize | filecheck %s

// Arithmetic on constants is done at build time.
// CHECK-LABEL: vm.func @fold
// CHECK-NEXT:    %{{.*}} = vm.const 14 : i64
// CHECK-NEXT:    %{{.*}} = vm.const true
// CHECK-NEXT:    vm.call_packed "use"
vm.func @fold() {
  %two = vm.const 2 : i64
  %three = vm.const 3 : i64
  %four = vm.const 4 : i64
  %p = vm.int mul %three, %four
  %s = vm.int add %p, %two
  %c = vm.int lt %two, %three
  vm.call_packed "use"(%s, %c)
  vm.ret
}

// A division by zero stays, so that it raises its error.
// CHECK-LABEL: vm.func @keep
// CHECK:         vm.int floordiv
vm.func @keep() {
  %zero = vm.const 0 : i64
  %q = vm.int floordiv %zero, %zero
  vm.call_packed "use"(%q)
  vm.ret
}
