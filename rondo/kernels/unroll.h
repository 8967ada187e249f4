// Loops over what is held in registers must be unrolled whole: registers have no index.
#pragma once

#if defined(__clang__)
#define RONDO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RONDO_UNROLL _Pragma("GCC unroll 16")
#endif
