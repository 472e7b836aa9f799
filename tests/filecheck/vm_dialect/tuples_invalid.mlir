// RUN: RELAX_INVALID

// CHECK: 'vm.make_tuple' op argument #0 of type !vm.storage cannot leave its call
vm.func private @make_tuple_c1(%s: !vm.storage) {
  %p = vm.make_tuple(%s)
  vm.ret
}

// -----

// CHECK: 'vm.tuple_get' op expected an index >= 0, got -1
vm.func @tuple_get_c1(%p: !vm.object) {
  %f = vm.tuple_get %p[-1]
  vm.ret
}
