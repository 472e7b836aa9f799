; What Linux reports about the processor, in the order of `lowering/llvm/features.py`: AT_HWCAP, then the low and the high
; half of AT_HWCAP2. It saves the registers of all that it reports.

declare i64 @getauxval(i64)

define internal void @relax_read_processor(ptr %to) {
  %first = call i64 @getauxval(i64 16)
  %second = call i64 @getauxval(i64 26)
  %shifted = lshr i64 %second, 32
  %low = trunc i64 %first to i32
  %low2 = trunc i64 %second to i32
  %high2 = trunc i64 %shifted to i32
  store i32 %low, ptr %to
  %to.1 = getelementptr inbounds i32, ptr %to, i64 1
  store i32 %low2, ptr %to.1
  %to.2 = getelementptr inbounds i32, ptr %to, i64 2
  store i32 %high2, ptr %to.2
  %to.15 = getelementptr inbounds i32, ptr %to, i64 15
  store i32 -1, ptr %to.15
  ret void
}
