builtin.module {
  vm.func private @memory(%n: i64, %u: !vm.tensor<2, _>) {
    %s = vm.alloc_storage %n
    %a = vm.alloc_tensor %s at %n [%n, %n] f32
    %b = vm.new_tensor [%n] bf16
    %c = vm.new_tensor [] i1
    %v = vm.view %b [%n, %n] bf16
    %w = vm.view %u [%n] _
    %r = vm.read_cond %c
    vm.kill %a
    vm.ret
  }
}
