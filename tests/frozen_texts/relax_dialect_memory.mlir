builtin.module {
  relax.func @memory[%n](%s: !relax.shape<[n]>) -> !relax.tensor<[n, 4], f32> impure {
    %a = relax.alloc_tensor : !relax.tensor<[n, 4], f32>
    %b = relax.alloc_tensor shape(%s) : !relax.tensor<[_], f32>
    %c = relax.alloc_storage size 64 * n
    %d = relax.storage_tensor %c at 32 * n : !relax.tensor<[2 * n], f32>
    relax.call_kernel @fill(%d) sizes [2 * n]
    relax.call_kernel @nothing()
    relax.check_apart %a, %d, "fill: argument #1 (Y): overlaps argument #0 (X): pass a copy"
    relax.kill %c
    relax.return %a
  }
  tir.prim_func private @fill[%n](%X: !tir.buffer<[n], f32>) {
  }
  tir.prim_func private @nothing() {
  }
}
