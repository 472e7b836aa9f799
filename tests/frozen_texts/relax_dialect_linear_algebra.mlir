builtin.module {
  relax.func @matmul[%n, %k, %m, %b](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k, m], f32>, %v: !relax.tensor<[k], f32>, %t: !relax.tensor<[b, 1, n, k], f32>, %w: !relax.tensor<[4, k, m], f32>) -> !relax.object {
    %0 = relax.matmul %x, %y
    %1 = relax.matmul %x, %v
    %2 = relax.matmul %v, %y
    %3 = relax.matmul %v, %v
    %4 = relax.matmul %t, %w
    %5 = relax.matmul %x, %y out_dtype = f64
    relax.return %x
  }
  relax.func @matmul_unknown[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[m, 4], f32>, %u: !relax.tensor<[_, _], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.matmul %x, %y
    %1 = relax.matmul %u, %x
    %2 = relax.matmul %x, %v
    relax.return %x
  }
  relax.func @outer[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object {
    %0 = relax.outer %x, %y
    relax.return %0
  }
  relax.func @einsum[%b, %n, %k](%x: !relax.tensor<[b, n, k], f32>, %y: !relax.tensor<[b, k, 4], f32>, %s: !relax.tensor<[n, n], f32>) -> !relax.object {
    %0 = relax.einsum %x, %y subscripts = "bij,bjk->bik"
    %1 = relax.einsum %s subscripts = "ii->i"
    %2 = relax.einsum %s subscripts = "ii"
    %3 = relax.einsum %x, %y subscripts = "bij,bjk"
    relax.return %0
  }
}
