// Generic multi-head attention: projections, which callers may modify with hooks, and attention
// over already projected queries, keys and values. The caller's mask decides visibility.
#pragma once

#include "rondo/nn/layers.h"

namespace rondo::nn {

struct AttentionShape {
  int64_t width = 0;       // D of the stream
  int64_t heads = 1;       // H
  int64_t head_width = 0;  // of one head; H · head_width need not equal D
  bool bias = true;
  LinearInit input;   // of query, key, value
  LinearInit output;  // of the output projection
};

// [B, T, H·d] → [B, H, T, d] and back.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor merge_heads(const Tensor& x);

struct AttendOptions {
  double factor = 1.0;  // fixed factor on the scores
  Tensor scale;         // learned scale per head [H], applied after the bias; may be undefined
  Tensor bias;          // added to the scores [H, Tq, Tk]; may be undefined
  Tensor scaled_bias;   // replaces `bias`: precomputed bias · scale
  Tensor mask;          // bool, broadcastable to [B, H, Tq, Tk]; undefined = everything
  double dropout = 0.0;
};

// softmax(((q·kᵀ)·factor + bias)·scale, masked) · v. q [B, H, Tq, d], k and v [B, H, Tk, d].
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
              bool training, const Scope& scope);

// Lets a caller replace a linear map of u, given that map, u and the raw stream x: how users of
// shared weights make them differ.
class LinearHook {
 public:
  virtual ~LinearHook() = default;
  virtual Tensor forward(const Linear& map, const Tensor& u, const Tensor& x,
                         const Scope& scope) const = 0;
  // The same as one linear map of u; without a weight if it is not one.
  virtual LinearMap as_map(const Linear& map, const Tensor& u, const Tensor& x,
                           const Scope& scope) const = 0;
};

// Null: the map itself.
struct ProjectionHooks {
  const LinearHook* query = nullptr;
  const LinearHook* key = nullptr;
  const LinearHook* value = nullptr;
};

struct CompiledProjections {
  CompiledLinear query, key, value, output;
  int64_t heads = 0;
  int64_t head_width = 0;
};

// The four linear maps of attention. `u` is the input of the projections (usually normalized), `x`
// the raw stream, which hooks may read too.
class Projections : public Module {
 public:
  static constexpr int64_t kNoOutput = -1;
  // `read`: input width of the output projection; 0 = heads · head_width; kNoOutput = none.
  explicit Projections(const AttentionShape& shape, int64_t read = 0);

  Tensor query(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
               const Scope& scope) const;  // [B, H, T, d]
  Tensor key(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
             const Scope& scope) const;  // [B, H, T, d]
  Tensor value(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
               const Scope& scope) const;  // [B, H, T, d]
  // Queries, keys and values of the same tokens, and the heads of `more` (may be null) applied to
  // u: fused into one operation where they share the input rows.
  struct Heads {
    Tensor q, k, v, more;  // [B, H, T, d]
  };
  Heads heads_of(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks, const Scope& scope,
                 const Linear* more = nullptr) const;
  // Keys and values of `memory`.
  Heads keys_and_values(const Tensor& memory, const Scope& scope) const;
  Tensor output(const Tensor& merged, const Scope& scope) const;
  CompiledProjections compile(WeightPacker& packer) const;

  const Linear& query_map() const { return *query_; }
  const Linear& key_map() const { return *key_; }
  const Linear& value_map() const { return *value_; }

  int64_t heads() const { return shape_.heads; }
  int64_t head_width() const { return shape_.head_width; }

 private:
  AttentionShape shape_;
  std::shared_ptr<Linear> query_, key_, value_, output_;
};

}  // namespace rondo::nn
