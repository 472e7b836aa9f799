builtin.module {
  vm.func private @shapes(%t: !vm.tensor<2, f32>, %s: !vm.shape<_>) {
    %n = vm.tensor_dim %t[1]
    %m = vm.shape_dim %s[7]
    %a = vm.shape_of %t : !vm.shape<2>
    %b = vm.make_shape(%n, %m) : !vm.shape<2>
    %c = vm.make_shape() : !vm.shape<0>
    vm.ret
  }
}
