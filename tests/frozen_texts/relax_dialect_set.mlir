builtin.module {
  relax.func @sets[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.unique %x
    %1 = relax.unique %x axis = 0
    %2, %3, %4, %5 = relax.unique %x return_index return_inverse return_counts
    %6, %7 = relax.unique %x axis = 1 return_inverse
    %8 = relax.unique %u axis = 0
    %9 = relax.nonzero %x
    %10 = relax.nonzero %u
    %11, %12 = relax.unique %x unsorted return_counts
    relax.return %x
  }
}
