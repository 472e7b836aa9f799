// RUN: RELAX_INVALID

// CHECK: 'vm.int' op add expected (i64, i64) -> i64, got (i64, i64) -> i1
vm.func private @int_c1(%a: i64) {
  %0 = "vm.int"(%a, %a) <{kind = #vm<int_kind add>}> : (i64, i64) -> i1
  vm.ret
}

// -----

// CHECK: operand is used with type i64, but has been previously used or defined with type i1
vm.func private @int_c1(%a: i1) {
  %0 = vm.int add %a, %a
  vm.ret
}
