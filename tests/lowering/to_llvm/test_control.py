import numpy as np
import pytest

MATMUL = """
tir.prim_func @matmul[%m, %n, %k](%A: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n, k], f32>, %C: !tir.buffer<[m, k], f32>) {
  tir.for (%i, %j, %r) in (%m, %k, %n) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
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
}"""


@pytest.mark.parametrize("sizes", [(0, 3, 2), (1, 1, 1), (3, 5, 7), (16, 8, 33), (2, 0, 2), (5, 4, 0)])
def test_matmul(sizes: tuple[int, int, int], same_as_interpreter):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape).astype("f4") for shape in ((m, n), (n, k), (m, k))]
    same_as_interpreter(MATMUL, args, {"m": m, "n": n, "k": k})
