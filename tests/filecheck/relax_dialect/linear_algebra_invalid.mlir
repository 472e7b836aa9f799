// RUN: RELAX_INVALID

// CHECK: 'relax.matmul' op expected operands of one dtype, got f32 and f64; convert with 'relax.astype'
relax.func @matmul_c1[%k, %m, %n](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k, m], f64>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.matmul' op expected operands of rank 1 or more, got a scalar
relax.func @matmul_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.matmul' op expected equal contracted dimensions, got 4 and 5
relax.func @matmul_c3[%m, %n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[5, m], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.matmul' op expected equal contracted dimensions, got n and n + 1
relax.func @matmul_c3[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n + 1], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.matmul' op dimensions 2 and 3 do not broadcast
relax.func @matmul_c4[%k, %m, %n](%x: !relax.tensor<[2, n, k], f32>, %y: !relax.tensor<[3, k, m], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.matmul' op property out_dtype expected an element type, got !relax.object
relax.func @matmul[%k, %n](%x: !relax.tensor<[n, k], f32>) -> !relax.object {
  %0 = relax.matmul %x, %x out_dtype = !relax.object
  relax.return %x
}

// -----

// CHECK: 'relax.outer' op expected operands of one dtype, got f32 and f64; convert with 'relax.astype'
relax.func @outer_c1[%m, %n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f64>) -> !relax.object {
  %0 = relax.outer %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.outer' op operand #0 expected rank 1, got !relax.tensor<[n, 1], f32>
relax.func @outer_c2[%n](%x: !relax.tensor<[n, 1], f32>) -> !relax.object {
  %0 = relax.outer %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op expected operands of one dtype, got f32 and f64; convert with 'relax.astype'
relax.func @einsum_c1[%m, %n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f64>) -> !relax.object {
  %0 = relax.einsum %x, %y subscripts = "i,j->ij"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op subscripts expected letters for 1 operands and a result over them, got i,j->ij
relax.func @einsum_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "i,j->ij"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op subscripts expected letters for 1 operands and a result over them, got i->j
relax.func @einsum_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "i->j"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op subscripts expected each letter of the result once, got ii
relax.func @einsum_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "i->ii"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op subscripts expected letters for 1 operands and a result over them, got ...i->i
relax.func @einsum_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "...i->i"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op operand #0 expected rank 2, got !relax.tensor<[n], f32>
relax.func @einsum_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "ij->i"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op expected equal dimensions i, got 2 and 3
relax.func @einsum_c4(%x: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.einsum %x subscripts = "ii->i"
  relax.return %x
}

// -----

// CHECK: 'relax.einsum' op dimensions 2 and 3 do not broadcast
relax.func @einsum_c5(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.einsum %x, %y subscripts = "i,i->i"
  relax.return %x
}
