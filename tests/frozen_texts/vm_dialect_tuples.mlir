builtin.module {
  vm.func private @tuples(%t: !vm.tensor<2, f32>, %n: i64) {
    %p = vm.make_tuple(%t, %n)
    %q = vm.make_tuple()
    %f = vm.tuple_get %p[1]
    vm.ret
  }
}
