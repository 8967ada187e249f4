// Declares parameters and draws them by name.
#include "rondo/nn/module.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "rondo/base/error.h"

namespace rondo::nn {
namespace {

thread_local bool shapes_only = false;

// Standard deviation of a unit normal cut at ±2: the parent must be wider by its inverse.
constexpr double kCutNormalDeviation = 0.87962566103423978;

// FNV-1a plus a final mix: names that differ in one letter give unrelated seeds.
uint64_t hash_name(uint64_t seed, const std::string& name, uint64_t index) {
  uint64_t h = 1469598103934665603ULL ^ seed;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  h ^= index * 0x9E3779B97F4A7C15ULL;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

void draw_truncated(Tensor& value, double deviation, const at::Generator& generator) {
  // Inverse of the normal distribution function on (Φ(-2), Φ(2)).
  const double edge = std::erf(2.0 / std::sqrt(2.0));
  value.uniform_(-edge, edge, generator).erfinv_();
  value.mul_(std::sqrt(2.0) * deviation / kCutNormalDeviation);
}

void draw(Tensor& value, const Initializer& initializer, const at::Generator& generator) {
  switch (initializer.kind) {
    case Initializer::Kind::constant:
      value.fill_(initializer.scale);
      break;
    case Initializer::Kind::normal:
      value.normal_(0.0, initializer.scale, generator);
      break;
    case Initializer::Kind::uniform:
      value.uniform_(-initializer.scale, initializer.scale, generator);
      break;
    case Initializer::Kind::truncated_normal:
      draw_truncated(value, initializer.scale, generator);
      break;
  }
  if (initializer.zero_row >= 0) value.select(0, initializer.zero_row).zero_();
}

// Draws the parameters that `module` itself declares; their names in the model begin with `prefix`.
void draw_own(torch::nn::Module& module, const std::string& prefix, uint64_t seed) {
  const auto* ours = dynamic_cast<const Module*>(&module);
  if (ours == nullptr) return;
  auto parameters = module.named_parameters(/*recurse=*/false);
  for (const auto& [name, initializer] : ours->initializers()) {
    draw(parameters[name], initializer, counter_generator(seed, prefix + name));
  }
}

}  // namespace

Initializer constant(double value) { return {Initializer::Kind::constant, value}; }
Initializer normal(double deviation) { return {Initializer::Kind::normal, deviation}; }
Initializer uniform(double bound) { return {Initializer::Kind::uniform, bound}; }
Initializer truncated_normal(double deviation) {
  return {Initializer::Kind::truncated_normal, deviation};
}

Initializer xavier_uniform(int64_t fan_in, int64_t fan_out, double gain) {
  return uniform(gain * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out)));
}

Initializer torch_default(int64_t fan_in) {
  return uniform(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

Tensor Module::parameter(const std::string& name, const Shape& shape, Initializer initializer) {
  initializers_[name] = initializer;
  const auto device = ShapesOnly::active() ? at::kMeta : at::kCPU;
  return register_parameter(name, at::empty(shape, at::TensorOptions(at::kFloat).device(device)));
}

Tensor Module::buffer(const std::string& name, Tensor value) {
  if (ShapesOnly::active()) value = at::empty_like(value, value.options().device(at::kMeta));
  return register_buffer(name, std::move(value));
}

ShapesOnly::ShapesOnly() : before_(shapes_only) { shapes_only = true; }
ShapesOnly::~ShapesOnly() { shapes_only = before_; }
bool ShapesOnly::active() { return shapes_only; }

at::Generator counter_generator(uint64_t seed, const std::string& purpose, uint64_t index) {
  return at::detail::createCPUGenerator(hash_name(seed, purpose, index));
}

void initialize(torch::nn::Module& root, uint64_t seed) {
  const at::NoGradGuard no_grad;
  draw_own(root, "", seed);
  // Excludes the root itself, which need not be held by a shared_ptr.
  for (const auto& entry : root.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    draw_own(*entry.value(), entry.key() + ".", seed);
  }
}

}  // namespace rondo::nn
