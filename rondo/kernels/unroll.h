// Loops over values held in registers must be fully unrolled: registers cannot be indexed.
#pragma once

#if defined(__clang__)
#define RONDO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RONDO_UNROLL _Pragma("GCC unroll 16")
#endif
