builtin.module {
  vm.func @unused(%x: !vm.object) {
    %t = vm.check_tensor %x rank 1
    %n = vm.tensor_dim %t[0]
    %i = vm.check_int %x
    %two = vm.const 2 : i64
    %m = vm.int mul %i, %two
    %new = vm.new_tensor [%m] f32
    vm.ret
  }
}
