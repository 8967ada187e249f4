// The parts of the plain networks.
#include "tests/support/plain_networks.h"

#include <cmath>
#include <stdexcept>

namespace rondo::test {

std::string numbered(const std::string& bank, int64_t index) {
  return bank + "." + std::to_string(index);
}

Tensor universal_code(int64_t tokens, int64_t level, int64_t width) {
  const Tensor table = at::zeros({tokens, width}, at::kDouble);
  for (int64_t p = 1; p <= tokens; ++p) {
    for (int64_t k = 1; k <= width; ++k) {
      const double rate =
          std::pow(10000.0, 2.0 * static_cast<double>(k) / static_cast<double>(width));
      const double a = static_cast<double>(p) / rate;
      const double b = static_cast<double>(level) / rate;
      table[p - 1][k - 1] = k % 2 == 0 ? std::sin(a) + std::sin(b) : std::cos(a) + std::cos(b);
    }
  }
  return table;
}

Tensor sinusoids(int64_t tokens, int64_t width) {
  const Tensor table = at::zeros({tokens, width}, at::kDouble);
  for (int64_t p = 0; p < tokens; ++p) {
    for (int64_t k = 0; k < width; ++k) {
      const auto even = static_cast<double>(k - k % 2);
      const double angle =
          static_cast<double>(p) / std::pow(10000.0, even / static_cast<double>(width));
      table[p][k] = k % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table;
}

PlainParts::PlainParts(const torch::nn::Module& network, double epsilon) : epsilon_(epsilon) {
  for (const auto& item : network.named_parameters()) {
    weights_[item.key()] = item.value().detach();
  }
}

Tensor PlainParts::weight(const std::string& name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw std::runtime_error("no parameter " + name);
  return found->second;
}

Tensor PlainParts::map(const std::string& name, const Tensor& x) const {
  const Tensor y = at::matmul(x, weight(name + ".weight").t());
  return has(name + ".bias") ? y + weight(name + ".bias") : y;
}

Tensor PlainParts::norm(const std::string& name, const Tensor& x) const {
  const Tensor centered = x - x.mean(-1, true);
  const Tensor variance = centered.square().mean(-1, true);
  return centered / (variance + epsilon_).sqrt() * weight(name + ".weight") +
         weight(name + ".bias");
}

Tensor PlainParts::signal(const std::string& name, const Tensor& x) const {
  return at::matmul(x, at::matmul(weight(name + ".down").t(), weight(name + ".up")));
}

Tensor PlainParts::attention(const std::string& name, const Tensor& q, const Tensor& k,
                             const Tensor& v, int64_t heads, const Tensor& mask) const {
  const int64_t d = q.size(1) / heads;
  std::vector<Tensor> results;
  for (int64_t h = 0; h < heads; ++h) {
    const auto head = [&](const Tensor& t) { return t.narrow(1, h * d, d); };
    Tensor p = (at::matmul(head(q), head(k).t()) / std::sqrt(static_cast<double>(d))).exp();
    if (mask.defined()) p = p * mask;
    results.push_back(at::matmul(p / p.sum(1, true), head(v)));
  }
  return map(name + ".projections.output", at::cat(results, 1));
}

Tensor PlainParts::attention(const std::string& name, const Tensor& u, const Tensor& memory,
                             int64_t heads, const Tensor& mask) const {
  return attention(name, map(name + ".projections.query", u),
                   map(name + ".projections.key", memory), map(name + ".projections.value", memory),
                   heads, mask);
}

Tensor plain_gelu(const Tensor& x) { return x * 0.5 * (1.0 + at::erf(x / std::sqrt(2.0))); }

}  // namespace rondo::test
