builtin.module {
  vm.func @checks(%x: !vm.object) {
    %t = vm.check_tensor %x rank 2 dtype f32 as "main: argument #0 (x)"
    %u = vm.check_tensor %t
    %v = vm.check_tensor %x dtype i1
    %s = vm.check_shape %x rank 3 as "s"
    %r = vm.check_shape %x
    %i = vm.check_int %x
    %f = vm.check_float %x as "f"
    %b = vm.check_bool %x
    %p = vm.check_tuple %x size 2 as "p"
    %g = vm.check_func %x
    %m = vm.check_tensor %x rank 2 dtype f64
    vm.check_apart %t, %m, "f: argument #1 (y): overlaps argument #0 (x): pass a copy"
    vm.assert %b, "main: expected n = {}, got {}"(%i, %i)
    vm.assert %b, "no number"
    vm.ret
  }
}
