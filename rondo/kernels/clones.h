// Function multiversioning: one function compiled for several CPUs, selected at program start. For
// loops that the compiler vectorizes by itself. (g++ takes "arch=icelake-server" to mean that very
// CPU, not its successors; the x86-64 levels cover all others. "avx2" would leave out fused
// multiply-adds, which every CPU with AVX2 has, and cost a quarter of the speed.)
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RONDO_CLONES                                                                           \
  __attribute__((target_clones("arch=sapphirerapids", "arch=icelake-server", "arch=x86-64-v4", \
                               "arch=x86-64-v3", "default")))
#else
#define RONDO_CLONES
#endif
