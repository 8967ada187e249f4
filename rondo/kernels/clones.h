// One function compiled for several CPUs, the right one chosen when the program starts. For loops
// that the compiler turns into vector instructions by itself. (g++ takes "arch=icelake-server" for
// that very CPU, not for its successors: the levels of x86-64 are for all others. "avx2" would
// leave out fused multiply-adds, which every CPU with AVX2 has, and a quarter of the speed.)
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RONDO_CLONES                                                                           \
  __attribute__((target_clones("arch=sapphirerapids", "arch=icelake-server", "arch=x86-64-v4", \
                               "arch=x86-64-v3", "default")))
#else
#define RONDO_CLONES
#endif
