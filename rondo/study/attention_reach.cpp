// Reduces attention probabilities to a few numbers during the forward pass.
#include "rondo/study/attention_reach.h"

#include <cmath>
#include <utility>

#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/study/attention_distance.h"

namespace rondo::study {
namespace {

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// Sums over the queries that count, per head.
struct Sums {
  Tensor distance, entropy, state_share, state_entropy;  // [H]
  Tensor memory_gate, memory_distance, memory_entropy;   // [H]
  double queries = 0, shared = 0, read = 0, recalled = 0;
};

void add_to(Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; }

// Patches of an image: a square grid, possibly preceded by a class token.
struct PatchGrid {
  explicit PatchGrid(int64_t tokens) {
    side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
    skip = tokens - side * side;
  }
  int64_t side, skip;
};

class ReachObserver : public Observer {
 public:
  explicit ReachObserver(int64_t image_side) : image_side_(image_side) {}

  // The batch of the next forward pass, which says which rows and tokens count.
  void begin(const Batch& batch) {
    batch_ = &batch;
    pieces_.clear();
  }

  bool wants(const std::string& name) override {
    return ends_with(name, ".mixing.probabilities") || ends_with(name, ".mixing.permutation") ||
           ends_with(name, ".mixing.states.probabilities") ||
           ends_with(name, ".mixing.window_heads") || ends_with(name, ".mixing.state_heads") ||
           ends_with(name, ".mixing.memory.probabilities") ||
           ends_with(name, ".mixing.memory.distances") || ends_with(name, ".mixing.memory_gate");
  }

  void activation(const std::string& name, const Tensor& value) override {
    const size_t end = name.find(".mixing.");
    const std::string scope = name.substr(0, end);
    const std::string what = name.substr(end + 8);
    if (what == "permutation") {
      permutations_[scope] = value;
    } else if (what == "probabilities") {
      image_side_ > 0 ? add_patches(scope, value) : add_tokens(scope, value);
    } else if (what == "states.probabilities") {
      const Tensor weights = next_weights(scope, what, value);
      Sums& sums = sums_[scope];
      add_to(sums.state_entropy, weighted(entropy_by_query(value), weights));
      sums.read += weights.sum().item<double>();
    } else if (what == "window_heads") {
      window_norms_[scope] = value.norm(2, -1);  // [B, H, T]
    } else if (what == "state_heads") {
      add_share(scope, value);
    } else if (what == "memory.probabilities") {
      recalled_ = value;
    } else if (what == "memory.distances") {
      add_memory(scope, recalled_, value);
    } else {
      sums_[scope].memory_gate = value.flatten().to(at::kDouble);
    }
  }

  const std::map<std::string, Sums>& sums() const { return sums_; }

 private:
  static Tensor entropy_by_query(const Tensor& p) {  // [B, H, Tq]
    return -at::xlogy(p, p).sum(3).to(at::kDouble);
  }

  // Sum of [B, H, Tq] over queries, weighted [B, Tq]: [H].
  static Tensor weighted(const Tensor& values, const Tensor& weights) {
    return (values * weights.unsqueeze(1)).sum(c10::IntArrayRef{0, 2});
  }

  // p [B, H, Tq, Tk], distances [B or 1, Tq, Tk], weights of queries [B, Tq].
  void add(const std::string& scope, const Tensor& p, const Tensor& distances,
           const Tensor& weights) {
    Sums& sums = sums_[scope];
    const Tensor reach = (p * distances.unsqueeze(1)).sum(3).to(at::kDouble);
    add_to(sums.distance, weighted(reach, weights));
    add_to(sums.entropy, weighted(entropy_by_query(p), weights));
    sums.queries += weights.sum().item<double>();
  }

  // Groups of patches [B · G, H, n, n], permuted if a permutation was observed.
  void add_patches(const std::string& scope, const Tensor& p) {
    const int64_t groups = p.size(0) / batch_->rows;
    const int64_t each = p.size(2);
    const int64_t tokens = groups * each;
    const PatchGrid grid(tokens);
    const double patch = static_cast<double>(image_side_) / static_cast<double>(grid.side);
    Tensor all = at::zeros({tokens, tokens}, at::kDouble);
    all.slice(0, grid.skip).slice(1, grid.skip).copy_(patch_distances(grid.side, grid.side, patch));
    Tensor counts = at::ones({tokens}, at::kDouble);
    counts.slice(0, 0, grid.skip).zero_();
    const auto found = permutations_.find(scope);
    if (found != permutations_.end()) {
      all = all.index_select(0, found->second).index_select(1, found->second);
      counts = counts.index_select(0, found->second);
    }
    const Tensor blocks = all.view({groups, each, groups, each});
    std::vector<Tensor> own;
    for (int64_t g = 0; g < groups; ++g) own.push_back(blocks.select(0, g).select(1, g));
    const Tensor distances = at::stack(own).to(p.scalar_type()).repeat({batch_->rows, 1, 1});
    add(scope, p, distances, counts.view({groups, each}).repeat({batch_->rows, 1}));
  }

  // Key j is (keys - queries) + i - j before query i; in bidirectional attention, |i - j|. Windows
  // are tiles [B · n, H, W, 2W].
  void add_tokens(const std::string& scope, const Tensor& p) {
    const int64_t queries = p.size(2);
    const Tensor i = at::arange(queries, at::kLong) + (p.size(3) - queries);
    const Tensor distances = (i.unsqueeze(1) - at::arange(p.size(3), at::kLong)).abs();
    add(scope, p, distances.to(p.scalar_type()).unsqueeze(0), query_weights(scope, p));
  }

  Tensor query_weights(const std::string& scope, const Tensor& p) const {
    const auto found = batch_->real.find(scope.substr(0, scope.find(".level.")));
    const int64_t rows = p.size(0);
    const int64_t queries = p.size(2);
    if (found == batch_->real.end()) return at::ones({rows, queries}, at::kDouble);
    const Tensor real = found->second.to(at::kDouble);  // [B, T]
    if (rows == real.size(0)) return real.narrow(1, real.size(1) - queries, queries);
    const int64_t tiles = rows / real.size(0);
    return real.narrow(1, 0, tiles * queries).reshape({rows, queries});
  }

  // Weights [B, n] of the queries of [B, H, n, …]: a level offers its tokens in consecutive pieces.
  Tensor next_weights(const std::string& scope, const std::string& what, const Tensor& piece) {
    int64_t& from = pieces_[scope + what];
    const int64_t first = std::exchange(from, from + piece.size(2));
    const auto found = batch_->real.find(scope.substr(0, scope.find(".level.")));
    if (found == batch_->real.end()) return at::ones({piece.size(0), piece.size(2)}, at::kDouble);
    return found->second.narrow(1, first, piece.size(2)).to(at::kDouble);
  }

  void add_share(const std::string& scope, const Tensor& state_heads) {
    const Tensor weights = next_weights(scope, "state_heads", state_heads);
    const Tensor from_states = state_heads.norm(2, -1);  // [B, H, T]
    const Tensor both = from_states + window_norms_.at(scope);
    Sums& sums = sums_[scope];
    add_to(sums.state_share,
           weighted((from_states / both.clamp_min(1e-12)).to(at::kDouble), weights));
    sums.shared += weights.sum().item<double>();
  }

  // p and distances [B, H, T, k]; p is 0 where there is no entry.
  void add_memory(const std::string& scope, const Tensor& p, const Tensor& distances) {
    const Tensor weights = next_weights(scope, "memory", p);
    Sums& sums = sums_[scope];
    add_to(sums.memory_distance, weighted((p * distances).sum(3).to(at::kDouble), weights));
    add_to(sums.memory_entropy, weighted(entropy_by_query(p), weights));
    sums.recalled += (p.select(1, 0).sum(2).to(at::kDouble) * weights).sum().item<double>();
  }

  int64_t image_side_;
  const Batch* batch_ = nullptr;
  std::map<std::string, Sums> sums_;
  std::map<std::string, Tensor> permutations_;
  std::map<std::string, Tensor> window_norms_;
  std::map<std::string, int64_t> pieces_;  // tokens offered so far in this forward pass
  Tensor recalled_;                        // memory probabilities whose distances come next
};

}  // namespace

AttentionReach attention_reach(Network& network, Batches& batches, int64_t image_side) {
  AttentionReach reach;
  reach.pixels = image_side > 0;
  ReachObserver observer(image_side);
  Reader reader(network);
  Batch batch;
  Progress progress("attention", 0);
  while (batches.next(batch)) {
    observer.begin(batch);
    reader.forward(batch, Scope(&observer));
    reach.items += batch.rows;
    progress.update(reach.items);
  }
  progress.finish();
  require(reach.items > 0, "attention distance: expected data, got none");
  for (const LevelGroup& group : level_groups(network)) {
    for (size_t i = 0; i < group.scopes.size(); ++i) {
      const auto found = observer.sums().find(group.scopes[i]);
      if (found == observer.sums().end() || found->second.queries == 0) continue;
      const Sums& s = found->second;
      LevelReach level;
      level.group = group.name;
      level.label = group.labels[i];
      level.distance = s.distance / s.queries;
      level.entropy = s.entropy / s.queries;
      if (s.shared > 0) level.state_share = s.state_share / s.shared;
      if (s.read > 0) level.state_entropy = s.state_entropy / s.read;
      if (s.memory_gate.defined()) level.memory_share = s.memory_gate * (s.recalled / s.queries);
      if (s.recalled > 0) {
        level.memory_distance = s.memory_distance / s.recalled;
        level.memory_entropy = s.memory_entropy / s.recalled;
      }
      reach.levels.push_back(level);
    }
  }
  require(!reach.levels.empty(), "attention distance: no level of the network has attention");
  return reach;
}

}  // namespace rondo::study
