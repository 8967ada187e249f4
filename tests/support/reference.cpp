// Reference numbers: loading, importing, comparing.
#include "tests/support/reference.h"

#include <unistd.h>

#include <cstdio>

namespace rondo::test {
namespace {

// Gradients below this share of the largest one are sums that cancel (a bias before a batch norm, a
// key's bias): in double they are zero, in fp32 the authors' own values are rounding.
constexpr double kVanishing = 2e-2;

}  // namespace

TemporaryFile::TemporaryFile(const std::string& suffix) {
  static int counter = 0;
  path_ = ::testing::TempDir() + "rondo_" + std::to_string(getpid()) + "_" +
          std::to_string(counter++) + suffix;
}

TemporaryFile::~TemporaryFile() { std::remove(path_.c_str()); }

std::string fixture(const std::string& name) { return std::string(RONDO_FIXTURES) + "/" + name; }

Tensor Reference::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw std::runtime_error("reference has no tensor " + name);
  return found->second;
}

NamedTensors Reference::below(const std::string& prefix) const {
  NamedTensors out;
  for (const auto& [name, tensor] : tensors_) {
    if (name.rfind(prefix, 0) == 0) out[name.substr(prefix.size())] = tensor;
  }
  return out;
}

ReferenceModel::ReferenceModel(const std::string& name, const std::string& program)
    : reference(name),
      config(read_model_config(ConfigTable::from_file(fixture(name + ".toml")))),
      network(build_network(config)),
      layout(make_layout(program, config)) {
  NamedTensors weights = reference.below("p/");
  for (auto& [buffer, tensor] : reference.below("b/")) weights[buffer] = tensor;
  for (auto& [table, tensor] : reference.below("const/")) weights[table] = tensor;
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), weights);
  import_weights(*network, SafetensorsFile::open(file.path()), *layout);
  network->eval();
}

NamedTensors ReferenceModel::expected_gradients(const std::string& prefix) const {
  // Importing the gradients as if they were weights arranges them like our parameters.
  NamedTensors gradients = reference.below(prefix);
  for (auto& [buffer, tensor] : reference.below("b/")) gradients[buffer] = tensor;
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), gradients);
  const auto holder = build_network(config);
  import_weights(*holder, SafetensorsFile::open(file.path()), *layout);
  NamedTensors out;
  for (const auto& item : holder->named_parameters()) out[item.key()] = item.value().detach();
  return out;
}

double max_difference(const Tensor& a, const Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

double relative_difference(const Tensor& a, const Tensor& b) {
  return max_difference(a, b) / std::max(1e-30, b.abs().max().item<double>());
}

void expect_gradients(const Network& network, const NamedTensors& expected, double tolerance) {
  double largest = 0.0;
  for (const auto& [name, g] : expected) largest = std::max(largest, g.abs().max().item<double>());
  int64_t compared = 0;
  for (const auto& item : network.named_parameters()) {
    const Tensor want = expected.at(item.key());
    const Tensor grad = item.value().grad();  // undefined: this parameter was not used
    const Tensor got = grad.defined() ? grad : at::zeros_like(want);
    const double scale = std::max(want.abs().max().item<double>(), kVanishing * largest);
    // A single number is the sum of many terms that mostly cancel: for SReT's coefficients the
    // authors' rounding error is 6e-6 (against our network in double), which leaves too little of
    // 1e-5.
    const double room = want.numel() == 1 ? 2.0 * tolerance : tolerance;
    EXPECT_LE(max_difference(got, want) / scale, room) << item.key();
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<int64_t>(expected.size()));
}

}  // namespace rondo::test
