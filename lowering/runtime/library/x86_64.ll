; What the processor reports by `cpuid`, in the order of `lowering/llvm/features.py`: leaf 1 ecx, leaf 7 ebx, ecx and edx,
; leaf 7.1 eax and edx, leaf 0x80000001 ecx, a bit for each version of AVX10, and in register 15 XCR0.

define internal { i32, i32, i32, i32 } @relax_cpuid(i32 %leaf, i32 %part) {
  %all = call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %part)
  ret { i32, i32, i32, i32 } %all
}

; Of a leaf that the processor does not have nothing is set: it would report another one.
define internal { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 %leaf, i32 %part) {
entry:
  %range = and i32 %leaf, -2147483648
  %limits = call { i32, i32, i32, i32 } @relax_cpuid(i32 %range, i32 0)
  %last = extractvalue { i32, i32, i32, i32 } %limits, 0
  %is.there = icmp ule i32 %leaf, %last
  br i1 %is.there, label %leaf.there, label %none

leaf.there:
  %is.first = icmp eq i32 %part, 0
  br i1 %is.first, label %read, label %count

count:
  %head = call { i32, i32, i32, i32 } @relax_cpuid(i32 %leaf, i32 0)
  %last.part = extractvalue { i32, i32, i32, i32 } %head, 0
  %has.part = icmp ule i32 %part, %last.part
  br i1 %has.part, label %read, label %none

read:
  %all = call { i32, i32, i32, i32 } @relax_cpuid(i32 %leaf, i32 %part)
  ret { i32, i32, i32, i32 } %all

none:
  ret { i32, i32, i32, i32 } zeroinitializer
}

define internal void @relax_read_processor(ptr %to) {
entry:
  %one = call { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 1, i32 0)
  %one.ecx = extractvalue { i32, i32, i32, i32 } %one, 2
  store i32 %one.ecx, ptr %to
  %seven = call { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 7, i32 0)
  %seven.ebx = extractvalue { i32, i32, i32, i32 } %seven, 1
  %seven.ecx = extractvalue { i32, i32, i32, i32 } %seven, 2
  %seven.edx = extractvalue { i32, i32, i32, i32 } %seven, 3
  %to.1 = getelementptr inbounds i32, ptr %to, i64 1
  %to.2 = getelementptr inbounds i32, ptr %to, i64 2
  %to.3 = getelementptr inbounds i32, ptr %to, i64 3
  store i32 %seven.ebx, ptr %to.1
  store i32 %seven.ecx, ptr %to.2
  store i32 %seven.edx, ptr %to.3
  %more = call { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 7, i32 1)
  %more.eax = extractvalue { i32, i32, i32, i32 } %more, 0
  %more.edx = extractvalue { i32, i32, i32, i32 } %more, 3
  %to.4 = getelementptr inbounds i32, ptr %to, i64 4
  %to.5 = getelementptr inbounds i32, ptr %to, i64 5
  store i32 %more.eax, ptr %to.4
  store i32 %more.edx, ptr %to.5
  %extended = call { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 -2147483647, i32 0)
  %extended.ecx = extractvalue { i32, i32, i32, i32 } %extended, 2
  %to.6 = getelementptr inbounds i32, ptr %to, i64 6
  store i32 %extended.ecx, ptr %to.6
  %has.avx10 = and i32 %more.edx, 524288
  %no.avx10 = icmp eq i32 %has.avx10, 0
  %avx10 = call { i32, i32, i32, i32 } @relax_cpuid_if_there(i32 36, i32 0)
  %avx10.ebx = extractvalue { i32, i32, i32, i32 } %avx10, 1
  %version = and i32 %avx10.ebx, 15
  %power = shl i32 1, %version
  %versions = sub i32 %power, 1
  %avx10.bits = select i1 %no.avx10, i32 0, i32 %versions
  %to.7 = getelementptr inbounds i32, ptr %to, i64 7
  store i32 %avx10.bits, ptr %to.7
  %to.15 = getelementptr inbounds i32, ptr %to, i64 15
  store i32 0, ptr %to.15
  %osxsave = and i32 %one.ecx, 134217728
  %no.state = icmp eq i32 %osxsave, 0
  br i1 %no.state, label %done, label %state

state:
  %xcr0 = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %xcr0.low = extractvalue { i32, i32 } %xcr0, 0
  store i32 %xcr0.low, ptr %to.15
  br label %done

done:
  ret void
}
