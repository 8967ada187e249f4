// The attention kernels, compiled for each target, and the choice between them.
#include <atomic>

#include "rondo/kernels/attention_plan.h"
#include "rondo/kernels/cpu.h"

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot be array elements.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/attention_simd.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/highway.h>

#include "rondo/kernels/attention_backward-inl.h"
#include "rondo/kernels/attention_forward-inl.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

// Kernels for `element`. Without bf16 products, the data are first widened to fp32.
const AttentionKernels* target_kernels(Element element, [[maybe_unused]] Bf16Products products) {
  static constexpr AttentionKernels fp32 = {forward<Fp32Math, float>, backward<Fp32Math, float>};
  static constexpr AttentionKernels widened = {forward<Fp32Math, Bf16>, backward<Fp32Math, Bf16>};
  if (element == Element::fp32) return &fp32;
#if RONDO_HAVE_BF16
  static constexpr AttentionKernels paired = {forward<Bf16Math, Bf16>, backward<Bf16Math, Bf16>};
  static constexpr AttentionKernels tiled = {forward<AmxMath, Bf16>, backward<AmxMath, Bf16>};
  if (products == Bf16Products::vectors) return &paired;
  if (products == Bf16Products::tiles) return &tiled;
#endif
  return &widened;
}

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {
namespace {

HWY_EXPORT(target_kernels);

// Ways to multiply bf16 other than widening, best first, with the target name suffixes.
struct Bf16Way {
  Bf16Products products;
  const char* suffix;
};
constexpr Bf16Way kBf16Ways[] = {{Bf16Products::tiles, "_AMX"}, {Bf16Products::vectors, "_BF16"}};

bool cpu_has(Bf16Products products) {
  return products == Bf16Products::tiles ? cpu_has_tiles() : cpu().avx512_bf16;
}

Bf16Products best_products() {
  if (cpu_has(Bf16Products::tiles)) return Bf16Products::tiles;
  // Intel's multiply twice as much per instruction as fp32, but at half the rate or less.
  return cpu().avx512_bf16 && !cpu().intel ? Bf16Products::vectors : Bf16Products::none;
}

std::atomic<Bf16Products>& chosen_products() {
  static std::atomic<Bf16Products> chosen{best_products()};
  return chosen;
}

}  // namespace

const AttentionKernels& attention_kernels(Element element) {
  return *HWY_DYNAMIC_DISPATCH(target_kernels)(element, chosen_products());
}

std::vector<std::string> attention_targets() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = hwy::TargetName(target);
    for (const Bf16Way& way : kBf16Ways) {
      if (target == HWY_AVX3 && cpu_has(way.products)) names.push_back(name + way.suffix);
    }
    names.push_back(name);
  }
  return names;
}

void use_attention_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  chosen_products() = name.empty() ? best_products() : Bf16Products::none;
  for (const Bf16Way& way : kBf16Ways) {
    const bool named = name.find(way.suffix) != std::string::npos;
    if (named && cpu_has(way.products)) chosen_products() = way.products;
  }
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name.substr(0, name.find('_')) == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
    }
  }
}

}  // namespace rondo::kernels
#endif  // HWY_ONCE
