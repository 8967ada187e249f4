// What this CPU has for products of bf16 numbers, beyond what Highway 1.0.3 asks for.
#pragma once

namespace rondo::kernels {

enum class Bf16Products { none, vectors, tiles };

struct CpuBf16 {
  bool vectors = false;  // AVX-512 BF16
  bool tiles = false;    // AMX, and the kernel lets this process use it
  bool intel = false;
};

// Asks the kernel for leave to use AMX, which holds for the whole process from then on.
CpuBf16 cpu_bf16();

}  // namespace rondo::kernels
