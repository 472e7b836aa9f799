builtin.module {
  vm.func private @callee(%n: i64, %x: !vm.object) -> !vm.tensor<_, _> {
    %t = vm.check_tensor %x
    vm.ret %t
  }
  vm.func private @nothing() {
    vm.ret
  }
  vm.func private @calls(%n: i64, %t: !vm.tensor<2, f32>) {
    %r = vm.call @callee(%n, %t) : !vm.tensor<_, _>
    vm.call @nothing()
    vm.ret
  }
  vm.func private @kernels(%n: i64, %t: !vm.tensor<2, f32>) {
    %half = vm.const 5.000000e-01 : f64
    %yes = vm.const true
    vm.call_kernel @exp[%n, %n](%t, %t, %half, %yes, %n)
    vm.call_kernel @fill(%t)
    vm.ret
  }
  vm.func @packed(%x: !vm.object) {
    %r = vm.call_packed "custom_add"(%x, %x) : !vm.object
    vm.call_packed "custom print"()
    vm.ret
  }
  vm.func private @closures(%n: i64) {
    %f = vm.make_closure @callee(%n)
    %g = vm.make_closure @nothing()
    %r = vm.call_closure %f(%f) : !vm.object
    vm.call_closure %g()
    vm.ret
  }
}
