// CPU features. Header-only: queried before the program loads anything. No torch dependency.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rondo::kernels {

struct Cpu {
  bool avx2 = false;
  bool fma = false;
  bool avx512 = false;       // F, BW, DQ and VL, which all but the oldest have together
  bool avx512_vnni = false;  // int8 dot products
  bool avx512_bf16 = false;  // bf16 dot products
  bool amx_bf16 = false;     // with tile registers; Linux must grant them too: amx.h
  bool intel = false;
};

inline Cpu look_at_cpu() {
  Cpu cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  cpu.avx2 = __builtin_cpu_supports("avx2") != 0;
  cpu.fma = __builtin_cpu_supports("fma") != 0;
  cpu.avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
               __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  cpu.avx512_vnni = cpu.avx512 && __builtin_cpu_supports("avx512vnni") != 0;
  cpu.avx512_bf16 = cpu.avx512 && __builtin_cpu_supports("avx512bf16") != 0;
  // Compilers of 2022 cannot query AMX by name.
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kBf16Tiles = 1U << 22U;
  constexpr unsigned kTiles = 1U << 24U;
  cpu.amx_bf16 = cpu.avx512_bf16 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
                 (d & kBf16Tiles) != 0 && (d & kTiles) != 0;
  cpu.intel = __builtin_cpu_is("intel") != 0;
#endif
  return cpu;
}

inline const Cpu& cpu() {
  static const Cpu here = look_at_cpu();
  return here;
}

}  // namespace rondo::kernels
