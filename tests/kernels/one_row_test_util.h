// Shared by tests of reading one token at a time: numbers, rounding, every CPU target.
#pragma once

#include <hwy/targets.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rondo/kernels/vector_math.h"

namespace rondo::test {

using Numbers = std::vector<float>;

inline Numbers random_numbers(int64_t count, uint32_t seed, float size = 1.0F) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-size, size);
  Numbers numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = draw(random);
  return numbers;
}

// x rounded to bf16.
inline float rounded(float x) {
  kernels::Bf16 half;
  kernels::narrow(x, half);
  return kernels::widen(half);
}

// Runs `check` for every CPU target.
template <class Check>
void on_every_target(const Check& check) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace rondo::test
