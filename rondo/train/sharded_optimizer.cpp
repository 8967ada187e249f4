// Sharding the optimizer over processes.
#include "rondo/train/sharded_optimizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

namespace rondo {

ShardedOptimizer::ShardedOptimizer(const OptimizerConfig& config, Network& network,
                                   ProcessGroup* group, bool split)
    : group_(group) {
  if (group == nullptr || !split) {
    optimizer_ = make_optimizer(config, network);
    return;
  }
  for (const auto& item : network.named_parameters()) {
    pieces_.push_back({item.key(), item.value(), 0, item.value().numel(), 0});
  }
  // Adafactor's moments belong to rows and columns of a whole matrix.
  cut(/*between_tensors=*/config.kind == "adafactor");
  std::vector<OptimizedPart> parts;
  for (const Piece& piece : pieces_) {
    if (piece.owner != group->rank()) continue;
    // Shares memory and version counter with the parameter.
    const Tensor view = piece.is_all()
                            ? piece.whole.detach()
                            : piece.whole.detach().view({-1}).narrow(0, piece.begin, piece.count);
    own_.push_back(view);
    parts.push_back({fmt::format("{}@{}", piece.name, piece.begin), view,
                     decays_weight(piece.name, piece.whole)});
  }
  optimizer_ = make_optimizer(config, parts);
}

// Equal shares in parameter order: process r owns elements [r, r + 1) · total / size.
void ShardedOptimizer::cut(bool between_tensors) {
  const int64_t size = group_->size();
  int64_t total = 0;
  for (const Piece& piece : pieces_) total += piece.count;
  const auto bound = [&](int64_t owner) { return owner * total / size; };
  std::vector<Piece> cut;
  int64_t at = 0;
  int64_t owner = 0;
  for (const Piece& piece : pieces_) {
    const int64_t end = at + piece.count;
    while (at < end) {
      const int64_t middle = between_tensors ? at + piece.count / 2 : at;
      while (owner + 1 < size && middle >= bound(owner + 1)) ++owner;
      const bool cuts = !between_tensors && owner + 1 < size && bound(owner + 1) < end;
      const int64_t until = cuts ? bound(owner + 1) : end;
      cut.push_back({piece.name, piece.whole, at - (end - piece.count), until - at, owner});
      at = until;
    }
  }
  pieces_ = std::move(cut);
  counts_.assign(static_cast<size_t>(size), 0);
  for (const Piece& piece : pieces_) counts_[static_cast<size_t>(piece.owner)] += piece.count;
}

void ShardedOptimizer::step(int64_t number, double rate, double scale, const Tensor& scratch) {
  if (pieces_.empty()) return optimizer_->step(number, rate, scale);
  size_t own = 0;
  for (const Piece& piece : pieces_) {
    if (piece.owner != group_->rank()) continue;
    const Tensor gradient = piece.whole.grad();
    Tensor& view = own_[own++];
    view.mutable_grad() = !gradient.defined() || piece.is_all()
                              ? gradient
                              : gradient.reshape({-1}).narrow(0, piece.begin, piece.count);
  }
  optimizer_->step(number, rate, scale);
  exchange_weights(scratch);
}

void ShardedOptimizer::exchange_weights(const Tensor& scratch) {
  const at::NoGradGuard no_grad;
  const auto in_flat = [&](const Piece& piece, int64_t at) {
    return scratch.narrow(0, at, piece.count);
  };
  const auto in_weights = [](const Piece& piece) {
    return piece.whole.detach().view({-1}).narrow(0, piece.begin, piece.count);
  };
  int64_t at = 0;
  for (const Piece& piece : pieces_) {
    if (piece.owner == group_->rank()) in_flat(piece, at).copy_(in_weights(piece));
    at += piece.count;
  }
  group_->all_gather(scratch.data_ptr<float>(), counts_);
  at = 0;
  for (const Piece& piece : pieces_) {
    if (piece.owner != group_->rank()) in_weights(piece).copy_(in_flat(piece, at));
    at += piece.count;
  }
}

NamedTensors ShardedOptimizer::gather() {
  NamedTensors own = optimizer_->moments();  // "mean.<parameter>@<begin>"
  if (pieces_.empty()) return own;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, tensor] : own) list.push_back({name, tensor.sizes().vec()});
  const std::vector<std::string> lists = group_->all_gather(list.dump());
  if (group_->rank() > 0) {
    for (const auto& [name, tensor] : own) {
      group_->send(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), 0);
    }
    return {};
  }
  std::map<std::string, const Piece*> places;
  for (const Piece& piece : pieces_) places[fmt::format("{}@{}", piece.name, piece.begin)] = &piece;
  NamedTensors all;
  const auto put = [&](const std::string& name, const Tensor& part) {
    const size_t dot = name.find('.');
    const Piece& piece = *places.at(name.substr(dot + 1));
    Tensor& whole = all[name.substr(0, dot + 1) + piece.name];
    if (piece.is_all()) {
      whole = part;
      return;
    }
    if (!whole.defined()) whole = at::zeros_like(piece.whole);
    whole.view({-1}).narrow(0, piece.begin, piece.count).copy_(part);
  };
  for (const auto& [name, tensor] : own) put(name, tensor);
  for (int64_t rank = 1; rank < group_->size(); ++rank) {
    for (const auto& entry : nlohmann::json::parse(lists[static_cast<size_t>(rank)])) {
      Tensor part = at::empty(entry.at(1).get<std::vector<int64_t>>(), at::kFloat);
      group_->receive(part.data_ptr(), static_cast<int64_t>(part.nbytes()), rank);
      put(entry.at(0), part);
    }
  }
  return all;
}

NamedTensors ShardedOptimizer::own_part(const NamedTensors& moments) const {
  NamedTensors own;
  for (const auto& [name, tensor] : moments) {
    const std::string parameter = name.substr(name.find('.') + 1);
    for (const Piece& piece : pieces_) {
      if (piece.owner != group_->rank() || piece.name != parameter) continue;
      own[fmt::format("{}@{}", name, piece.begin)] =
          piece.is_all() || tensor.numel() != piece.whole.numel()
              ? tensor
              : tensor.reshape({-1}).narrow(0, piece.begin, piece.count);
    }
  }
  return own;
}

void ShardedOptimizer::load(const NamedTensors& moments) {
  optimizer_->load(pieces_.empty() ? moments : own_part(moments));
}

}  // namespace rondo
