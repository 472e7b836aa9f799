builtin.module {
  tir.prim_func @matmul[%m, %n, %k](%A: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n, k], f32>, %C: !tir.buffer<[m, k], f32>) {
    tir.for (%i, %j, %r) in (%m, %k, %n) {
      tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
        tir.init {
          %zero = arith.constant 0.000000e+00 : f32
          tir.store %zero, %C[%vi, %vj]
        }
        %a = tir.load %A[%vi, %vr]
        %b = tir.load %B[%vr, %vj]
        %c = tir.load %C[%vi, %vj]
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        tir.store %s, %C[%vi, %vj]
      }
    }
  }
  tir.prim_func @everything[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
    %c1 = arith.constant 1 : index
    tir.for (%i) in (%n) {
      %inside = arith.cmpi slt, %i, %n : index
      tir.block "scan" (%vi = scan %i in %n, %vo = opaque %i in %n) where %inside annotations {auto = "yes"} attributes {note} {
        tir.reads %X[%vi to %n]
        tir.writes %Y[%vi] {note}
      }
    }
    tir.block "root" {
    }
  }
}
