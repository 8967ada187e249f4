// Asking the CPU, and the kernel, for bf16 products.
#include "rondo/kernels/cpu_bf16.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rondo::kernels {

CpuBf16 cpu_bf16() {
  CpuBf16 cpu;
#if defined(__x86_64__) && defined(__linux__)
  cpu.intel = __builtin_cpu_is("intel") != 0;
  cpu.vectors = __builtin_cpu_supports("avx512bf16") != 0;
  // Compilers of 2022 have no names for AMX to ask by.
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned bf16_tiles = 1U << 22;
  constexpr unsigned any_tiles = 1U << 24;
  const bool there =
      __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bf16_tiles) != 0 && (d & any_tiles) != 0;
  // Their 8 KiB of registers are saved only for processes that asked.
  constexpr int request = 0x1023;     // ARCH_REQ_XCOMP_PERM
  constexpr int tile_registers = 18;  // XFEATURE_XTILEDATA
  cpu.tiles = there && cpu.vectors && syscall(SYS_arch_prctl, request, tile_registers) == 0;
#endif
  return cpu;
}

}  // namespace rondo::kernels
