// Dividing a global batch among processes.
#include "rondo/config/global_batch.h"

#include <gtest/gtest.h>

#include "rondo/base/error.h"

namespace rondo {
namespace {

RunConfig experiment(int64_t global_batch, int64_t batch) {
  RunConfig config;
  config.model = ModelConfig{LanguageModelConfig{}};
  config.train.global_batch = global_batch;
  config.train.batch = batch;
  return config;
}

TEST(GlobalBatch, IsSharedOutByRowsFirst) {
  const auto shared = [](int64_t processes) {
    const TrainConfig train = share_of_batch(experiment(32, 8), processes).train;
    EXPECT_EQ(train.batch * train.accumulate * processes, 32);
    return std::make_pair(train.batch, train.accumulate);
  };
  EXPECT_EQ(shared(1), std::make_pair(int64_t{8}, int64_t{4}));
  EXPECT_EQ(shared(2), std::make_pair(int64_t{8}, int64_t{2}));
  EXPECT_EQ(shared(4), std::make_pair(int64_t{8}, int64_t{1}));
  EXPECT_EQ(shared(16), std::make_pair(int64_t{2}, int64_t{1}));
}

TEST(GlobalBatch, ZeroLeavesTheRecipeAsItIs) {
  RunConfig config = experiment(0, 8);
  config.train.accumulate = 3;
  EXPECT_EQ(share_of_batch(config, 5).train.batch, 8);
  EXPECT_EQ(share_of_batch(config, 5).train.accumulate, 3);
}

TEST(GlobalBatch, SentencePairsKeepTheirBatches) {
  RunConfig config = experiment(32, 8);
  config.model = ModelConfig{EncoderDecoderConfig{}};
  EXPECT_EQ(share_of_batch(config, 4).train.batch, 8);
  EXPECT_THROW(share_of_batch(config, 8), Error);
}

TEST(GlobalBatch, WhatCannotBeDividedIsRefused) {
  EXPECT_THROW(share_of_batch(experiment(32, 8), 5), Error);
  EXPECT_THROW(share_of_batch(experiment(24, 16), 1), Error);
  RunConfig config = experiment(32, 8);
  config.train.accumulate = 2;
  EXPECT_THROW(share_of_batch(config, 2), Error);
}

}  // namespace
}  // namespace rondo
