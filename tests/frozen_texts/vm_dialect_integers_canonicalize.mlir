builtin.module {
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
  vm.func @keep() {
    %zero = vm.const 0 : i64
    %q = vm.int floordiv %zero, %zero
    vm.call_packed "use"(%q)
    vm.ret
  }
}
