// The type-independent parts of the bootstrap.
#include "rondo/metrics/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rondo/base/require.h"

namespace rondo {

BootstrapDraws::BootstrapDraws(size_t sentences, uint64_t seed)
    : random_(seed), draws_(std::min<size_t>(sentences, UINT32_MAX)) {
  require(sentences > 0 && sentences <= UINT32_MAX,
          "bootstrap: expected samples of 1 to {} sentences, got {}", UINT32_MAX, sentences);
}

const std::vector<uint32_t>& BootstrapDraws::next() {
  const auto count = static_cast<uint32_t>(draws_.size());
  for (uint32_t& draw : draws_) draw = random_.below(count);
  return draws_;
}

Interval interval_of(std::vector<double> scores) {
  require(!scores.empty(), "bootstrap: no scores given");
  std::sort(scores.begin(), scores.end());
  const size_t outside = scores.size() / 40;
  Interval interval;
  interval.mean =
      std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  interval.low = scores[outside];
  interval.high = scores[scores.size() - outside - 1];
  return interval;
}

double paired_p_value(const std::vector<double>& system, const std::vector<double>& baseline,
                      double observed) {
  require(!system.empty() && system.size() == baseline.size(),
          "bootstrap: expected the same number of scores for both systems, got {} and {}",
          system.size(), baseline.size());
  std::vector<double> distances(system.size());
  for (size_t s = 0; s < system.size(); ++s) distances[s] = std::abs(system[s] - baseline[s]);
  const auto samples = static_cast<double>(distances.size());
  const double mean = std::accumulate(distances.begin(), distances.end(), 0.0) / samples;
  if (mean == 0) return 1;
  const auto farther = std::count_if(distances.begin(), distances.end(), [&](double distance) {
    return distance - mean > std::abs(observed);
  });
  return (static_cast<double>(farther) + 1) / (samples + 1);
}

std::string bootstrap_signature(const BootstrapOptions& options) {
  return fmt::format("bs:{}|seed:{}", options.samples, options.seed);
}

}  // namespace rondo
