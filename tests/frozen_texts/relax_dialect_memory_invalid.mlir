builtin.module {
  relax.func @unbound() -> !relax.object impure {
    %0 = relax.alloc_storage size 64 * n
    relax.return %0
  }
}
