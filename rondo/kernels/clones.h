// One function compiled for several CPUs, the right one chosen when the program starts. For loops
// that the compiler turns into vector instructions by itself.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RONDO_CLONES __attribute__((target_clones("arch=icelake-server", "avx2", "default")))
#else
#define RONDO_CLONES
#endif
