// An image network for inference, one image at a time: convolutions, stacks and head with weights
// packed once, reusable buffers, and no torch operations. Created by Vision::compile and
// Pyramid::compile.
//
// Immutable and shared by any number of threads, each with its own ImageWorkspace.
#pragma once

#include "rondo/nn/compiled_convolution.h"
#include "rondo/recurrence/compiled_sequence.h"

namespace rondo {

// A stack of levels; `pool` leads to the next stage.
struct CompiledImageStage {
  int64_t side = 0;  // of the feature map, in tokens
  CompiledSequenceStack stack;
  size_t first_order = 0;         // index of the stack's first order among those of all stages
  nn::CompiledConvolution pool;   // out = 0: this is the last stage
  nn::CompiledLinear pool_class;  // of the class token
};

// Input of the head.
enum class ImagePooling { class_token, mean_of_norms, norm_of_mean };

class CompiledImageNetwork {
 public:
  class Workspace;

  CompiledImageNetwork() = default;
  CompiledImageNetwork(const CompiledImageNetwork&) = delete;
  CompiledImageNetwork& operator=(const CompiledImageNetwork&) = delete;

  int64_t side() const { return side_; }
  int64_t classes() const { return head_.w.out; }
  // Size of the packed weights.
  size_t bytes() const { return packer_.bytes(); }

  // images [rows, 3, side, side] → logits [rows, classes]. Each member of the team processes its
  // own images; the remainder is processed jointly. An image's logits do not depend on the others.
  void forward(const float* images, int64_t rows, float* logits, kernels::Team& team,
               Workspace& workspace) const;

 private:
  friend class Vision;
  friend class Pyramid;
  struct Room;
  using Orders = std::vector<TokenOrder>;

  void prepare(int members, Room& room) const;
  Orders draw_orders(Permutations::Draw draw) const;
  // All members call this.
  void classify(const float* image, const Orders& orders, float* logits, Room& room,
                const kernels::Member& member) const;
  void embed(const float* image, Room& room, const kernels::Member& member) const;
  void pool(size_t stage, const nn::Rows& rows, Room& room, const kernels::Member& member) const;
  void answer(const nn::Rows& rows, float* logits, Room& room) const;
  SequenceShape shape_of(const CompiledImageStage& stage) const;
  int64_t class_rows() const { return class_token_ != nullptr ? 1 : 0; }
  // The feature map in a stage's rows.
  kernels::ImageView map_of(const CompiledImageStage& stage, const nn::Rows& rows) const;
  void close(bool random_orders);

  nn::WeightPacker packer_ = nn::WeightPacker(kernels::PackedFormat::fp32);
  int64_t side_ = 0;
  std::vector<nn::CompiledConvolution> stem_;
  const float* class_token_ = nullptr;  // [D]; null: there is none
  const float* positions_ = nullptr;    // [tokens, D], the class token's first; null: none
  std::vector<CompiledImageStage> stages_;
  ImagePooling pooling_ = ImagePooling::class_token;
  nn::CompiledNorm norm_;
  nn::CompiledLinear head_;
  bool random_orders_ = false;  // drawn for every call
  Orders orders_;               // used otherwise
};

// Activation buffers of one image, reused between calls.
struct CompiledImageNetwork::Room {
  std::vector<nn::RowBuffer> maps;                  // by convolution of the stem
  std::vector<std::vector<nn::RowBuffer>> patches;  // by member and convolution
  std::vector<SequenceWorkspace> stages;
  nn::RowBuffer pooled, logits;
};
class CompiledImageNetwork::Workspace {
 private:
  friend class CompiledImageNetwork;
  std::vector<Room> rooms_;  // by member; the first also for images processed jointly
};
using ImageWorkspace = CompiledImageNetwork::Workspace;

}  // namespace rondo
