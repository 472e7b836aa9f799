builtin.module {
  vm.func @main(%x: !vm.object, %w: !vm.object) -> !vm.object attributes {arg_names = ["x", "w"]} {
    vm.ret %x
  }
  vm.func private @nothing(%n: i64, %t: !vm.tensor<2, f32>, %s: !vm.storage) {
    vm.ret
  }
  vm.func private @loop(%n: i64, %t: !vm.tensor<2, f32>) -> !vm.object {
    vm.goto ^head(%n, %t)
  ^head(%i: i64, %o: !vm.object):
    %c = vm.int lt %i, %n
    vm.if %c, ^head(%i, %o), ^done
  ^done:
    vm.ret %o
  }
  vm.func private @order(%x: !vm.object) -> !vm.object {
    vm.goto ^second
  ^first:
    vm.ret (%late : !vm.tensor<_, _>)
  ^second:
    %late = vm.check_tensor %x
    vm.goto ^first
  }
  vm.func @registers(%x: !vm.object) attributes {frame_size = 2 : i64, block_registers = [array<i32: 0>]} {
    %n = vm.check_int %x {regs = array<i32: 1>}
    vm.ret
  }
}
