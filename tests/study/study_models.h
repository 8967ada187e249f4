// Small networks and batches in memory, for tests of studies.
#pragma once

#include "rondo/recurrence/stack.h"
#include "rondo/study/subject.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"

namespace rondo::test {

inline TinyModel tiny(const std::string& name, uint64_t seed = 1) {
  return TinyModel(shrink(find_model(name).config()), seed);
}

// Batches held in memory.
class GivenBatches : public study::Batches {
 public:
  explicit GivenBatches(std::vector<study::Batch> all) : all_(std::move(all)) {}
  bool next(study::Batch& out) override {
    if (given_ == all_.size()) return false;
    out = all_[given_++];
    return true;
  }

 private:
  std::vector<study::Batch> all_;
  size_t given_ = 0;
};

// Keeps everything a forward pass offers.
class Everything : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return true; }
  void activation(const std::string& name, const Tensor& value) override {
    all[name].push_back(value.clone());
  }
  const Tensor& one(const std::string& name) const { return all.at(name).front(); }
  std::map<std::string, std::vector<Tensor>> all;
};

// Random examples; sentences end in padding at places.
inline study::Batch tiny_batch(const ModelConfig& config, int64_t rows, uint64_t seed,
                               int64_t length = 11) {
  study::Batch batch;
  batch.rows = rows;
  batch.inputs = tiny_inputs(config, rows, seed, length);
  batch.labels = at::zeros({rows}, at::kLong);
  if (std::string(config.task()) == "translation") {
    const int64_t padding = std::get<EncoderDecoderConfig>(config.network).padding;
    batch.real["encoder"] = batch.inputs.at("source").ne(padding);
    batch.real["decoder"] = batch.inputs.at("target").ne(padding);
  }
  return batch;
}

}  // namespace rondo::test
