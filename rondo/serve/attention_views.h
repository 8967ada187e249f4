// What a network attends to: parts of an image, level by level, and source tokens for each target
// token. Collected by an observer in the network's own forward pass.
#pragma once

#include "rondo/data/pair_tokenizers.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/model/network.h"

namespace rondo::serve {

struct HeatMap {
  std::string name;  // "level 3", or "stage 1, level 2"
  std::string png;   // the image in gray, colored by attention
};

// Attention rollout up to each level (study/rollout.h), through all earlier levels and stages; none
// for networks without attention. pixels: [3, side, side].
std::vector<HeatMap> attention_rollout(Network& network, const std::vector<float>& pixels,
                                       int64_t side);

struct CrossAttentionView {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::vector<std::vector<double>> weights;  // [target][source]
};

// For the decoder's last level, averaged over heads. `target`: ids without special tokens.
CrossAttentionView cross_attention(EncoderDecoder& model, const PairTokenizers& tokenizers,
                                   const std::string& source, const std::vector<int32_t>& target);

std::string base64(std::string_view bytes);

}  // namespace rondo::serve
