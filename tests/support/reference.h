// Numbers computed by the papers' authors' own programs (tests/fixtures/*.safetensors), and the
// model built from their weights.
#pragma once

#include <gtest/gtest.h>

#include "rondo/model/import.h"

namespace rondo::test {

// A file removed at the end of its scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string fixture(const std::string& name);

// All tensors of a reference file.
class Reference {
 public:
  explicit Reference(const std::string& name)
      : tensors_(load_tensors(fixture(name + ".safetensors"))) {}
  Tensor operator[](const std::string& name) const;
  // Those below `prefix`, with it removed.
  NamedTensors below(const std::string& prefix) const;

 private:
  NamedTensors tensors_;
};

// The network of fixtures/<name>.toml with the reference file's weights, imported from `program`.
struct ReferenceModel {
  ReferenceModel(const std::string& name, const std::string& program);
  Reference reference;
  ModelConfig config;
  std::shared_ptr<Network> network;
  std::unique_ptr<Layout> layout;

  // The authors' gradient tensors below `prefix`, arranged like our parameters.
  NamedTensors expected_gradients(const std::string& prefix) const;
};

double max_difference(const Tensor& a, const Tensor& b);
// max |a - b| relative to max |b|.
double relative_difference(const Tensor& a, const Tensor& b);

// Every parameter's gradient is within `tolerance`, relative to its largest expected entry;
// gradients that are tiny compared with the largest of all are compared relative to a share of that
// one.
void expect_gradients(const Network& network, const NamedTensors& expected, double tolerance);

}  // namespace rondo::test
