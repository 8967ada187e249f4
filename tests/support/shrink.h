// Any model at a size suitable for tests: the structure of the original (scheme, levels, blocks and
// loops, groups, recurrent layers, placement, style, dropout), with small widths, windows and
// images.
#pragma once

#include <gtest/gtest.h>

#include "rondo/config/zoo.h"
#include "rondo/model/network.h"

namespace rondo::test {

ModelConfig shrink(ModelConfig config);

// Random inputs of `rows` examples that fit `config`; some sentences end in padding. `length`:
// tokens of a language model or sentence.
NamedTensors tiny_inputs(const ModelConfig& config, int64_t rows, uint64_t seed,
                         int64_t length = 11);

// A shrunk model, ready to run: weights drawn, then moved slightly so that none is zero or one by
// construction; in evaluation mode.
struct TinyModel {
  explicit TinyModel(ModelConfig shrunk, uint64_t seed = 1);
  // The logits of `inputs` from an empty state.
  Tensor logits(const NamedTensors& inputs) const;

  ModelConfig config;
  std::shared_ptr<Network> network;
};

// Names of all models of the zoo for which `task` (all if empty) holds.
std::vector<std::string> zoo_names(const std::string& task = {});

// "ringformer/mt-base" → "ringformer_mt_base", as googletest requires.
std::string test_name(std::string model);

// Names the cases of INSTANTIATE_TEST_SUITE_P whose parameter is the name of a model.
struct NameOfModel {
  template <class Param>
  std::string operator()(const ::testing::TestParamInfo<Param>& given) const {
    return test_name(given.param);
  }
};

}  // namespace rondo::test
