; Pages of memory.

; Asks the system for large pages for a block of 4 MiB or more, of which else every 4 KiB stop the kernel that first
; writes there. What it cannot give is not missed.
define void @vmrt_ask_for_large_pages(ptr %block, i64 %bytes) {
entry:
  %is.small = icmp ult i64 %bytes, 4194304
  br i1 %is.small, label %done, label %ask

ask:
  %start = ptrtoint ptr %block to i64
  %behind = add i64 %start, 4095
  %page = and i64 %behind, -4096
  %gap = sub i64 %page, %start
  %first = getelementptr inbounds i8, ptr %block, i64 %gap
  %rest = sub i64 %bytes, %gap
  ; 14 is MADV_HUGEPAGE
  %status = call i32 @madvise(ptr %first, i64 %rest, i32 14)
  br label %done

done:
  ret void
}
