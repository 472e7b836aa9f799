; Conversions of numbers that LLVM would make library calls of.

; The bits of the bf16 next to a number; ties go to even, a NaN stays one.
define i16 @vmrt_bf16(double %value) {
  %single = fptrunc double %value to float
  %bits = bitcast float %single to i32
  %half = lshr i32 %bits, 16
  %odd = and i32 %half, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %bits, %bias
  %upper = lshr i32 %rounded, 16
  %quiet = or i32 %half, 64
  %is.nan = fcmp uno float %single, 0.0
  %result = select i1 %is.nan, i32 %quiet, i32 %upper
  %short = trunc i32 %result to i16
  ret i16 %short
}
