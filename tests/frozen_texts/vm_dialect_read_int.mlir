builtin.module {
  vm.func private @elements(%v: !vm.tensor<1, i64>) {
    %i = vm.read_int %v[2]
    vm.ret
  }
}
