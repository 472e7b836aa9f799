builtin.module {
  vm.func private @arithmetic(%a: i64, %b: i64) {
    %0 = vm.int add %a, %b
    %1 = vm.int sub %a, %b
    %2 = vm.int mul %a, %b
    %3 = vm.int floordiv %a, %b
    %4 = vm.int mod %a, %b
    %5 = vm.int min %a, %b
    %6 = vm.int max %a, %b
    %7 = vm.int broadcast %a, %b
    vm.ret
  }
  vm.func private @logic(%a: i64, %b: i64) {
    %0 = vm.int eq %a, %b
    %1 = vm.int ne %a, %b
    %2 = vm.int lt %a, %b
    %3 = vm.int le %a, %b
    %4 = vm.int gt %a, %b
    %5 = vm.int ge %a, %b
    %6 = vm.int and %0, %1
    %7 = vm.int or %6, %5
    vm.ret
  }
}
