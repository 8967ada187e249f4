// Running an image through stem, stages and head.
#include "rondo/model/compiled_image.h"

#include <algorithm>

namespace rondo {
namespace {

void meet_others(const kernels::Member& member) {
  if (member.count > 1) member.barrier();
}

}  // namespace

SequenceShape CompiledImageNetwork::shape_of(const CompiledImageStage& stage) const {
  SequenceShape shape;
  shape.tokens = stage.side * stage.side + class_rows();
  return shape;
}

kernels::ImageView CompiledImageNetwork::map_of(const CompiledImageStage& stage,
                                                const nn::Rows& rows) const {
  kernels::ImageView view;
  view.data = rows[class_rows()];
  view.channels = stage.stack.width();
  view.height = view.width = stage.side;
  view.column = rows.stride;
  return view;
}

// Called once all parts are set.
void CompiledImageNetwork::close(bool random_orders) {
  random_orders_ = random_orders;
  orders_ = draw_orders(Permutations::Draw::fixed);
  size_t first = 0;
  for (CompiledImageStage& stage : stages_) {
    stage.first_order = first;
    Permutations unused(Permutations::Draw::fixed);
    Orders own;
    stage.stack.draw_orders(unused, shape_of(stage).tokens, own);
    first += own.size();
  }
}

CompiledImageNetwork::Orders CompiledImageNetwork::draw_orders(Permutations::Draw draw) const {
  Orders orders;
  Permutations permutations(draw);
  for (const CompiledImageStage& stage : stages_) {
    stage.stack.draw_orders(permutations, shape_of(stage).tokens, orders);
  }
  return orders;
}

void CompiledImageNetwork::prepare(int members, Room& room) const {
  int64_t side = side_;
  room.maps.resize(stem_.size());
  for (size_t i = 0; i < stem_.size(); ++i) {
    side = stem_[i].shape.side(side);
    room.maps[i].resize(side * side, stem_[i].out);
  }
  if (room.patches.size() < static_cast<size_t>(members)) {
    room.patches.resize(static_cast<size_t>(members));
  }
  for (auto& buffers : room.patches) buffers.resize(stem_.size());
  room.stages.resize(stages_.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    stages_[s].stack.begin(shape_of(stages_[s]), members, room.stages[s]);
  }
  room.pooled.resize(2, norm_.width);
  room.logits.resize(1, classes());
}

void CompiledImageNetwork::forward(const float* images, int64_t rows, float* logits,
                                   kernels::Team& team, Workspace& workspace) const {
  const int members = team.size();
  workspace.rooms_.resize(std::max(workspace.rooms_.size(), static_cast<size_t>(members)));
  const Orders drawn = random_orders_ ? draw_orders(Permutations::Draw::random) : Orders();
  const Orders& orders = random_orders_ ? drawn : orders_;
  const int64_t numbers = 3 * side_ * side_;
  const int64_t alone = rows / members;  // images that each member processes alone
  prepare(members, workspace.rooms_[0]);
  for (int m = 1; m < members && alone > 0; ++m)
    prepare(1, workspace.rooms_[static_cast<size_t>(m)]);
  team.run(members, [&](int index) {
    for (int64_t i = index * alone; i < (index + 1) * alone; ++i) {
      classify(images + i * numbers, orders, logits + i * classes(),
               workspace.rooms_[static_cast<size_t>(index)], kernels::Member());
    }
    const kernels::Member member = {&team, index, members};
    if (alone > 0) meet_others(member);
    for (int64_t i = alone * members; i < rows; ++i) {
      classify(images + i * numbers, orders, logits + i * classes(), workspace.rooms_[0], member);
    }
  });
}

void CompiledImageNetwork::classify(const float* image, const Orders& orders, float* logits,
                                    Room& room, const kernels::Member& member) const {
  embed(image, room, member);
  for (size_t s = 0; s < stages_.size(); ++s) {
    const CompiledImageStage& stage = stages_[s];
    const nn::Rows rows = stage.stack.forward(shape_of(stage), orders.data() + stage.first_order,
                                              room.stages[s], member);
    if (s + 1 < stages_.size()) {
      pool(s, rows, room, member);
    } else if (member.index == 0) {
      answer(rows, logits, room);
    }
  }
  meet_others(member);
}

// Stem, class token and positions.
void CompiledImageNetwork::embed(const float* image, Room& room,
                                 const kernels::Member& member) const {
  std::vector<nn::RowBuffer>& patches = room.patches[static_cast<size_t>(member.index)];
  kernels::ImageView view;
  view.data = image;
  view.channels = 3;
  view.height = view.width = side_;
  view.planar = true;
  for (size_t i = 0; i < stem_.size(); ++i) {
    const int64_t side = stem_[i].shape.side(view.width);
    const nn::Rows to = room.maps[i].rows(side * side);
    stem_[i].forward(view, to, patches[i], member);
    meet_others(member);
    view = {to.data, stem_[i].out, side, side, /*planar=*/false, to.stride};
  }
  const CompiledImageStage& stage = stages_.front();
  const int64_t width = stage.stack.width();
  const nn::Rows map = room.maps.back().rows(view.width * view.height);
  const nn::Rows x = stage.stack.rows(shape_of(stage), room.stages.front());
  const auto [first, last] = member.share(x.count);
  for (int64_t r = first; r < last; ++r) {
    const float* from = r < class_rows() ? class_token_ : map[r - class_rows()];
    if (positions_ != nullptr) {
      kernels::sum_one(from, 1.0F, positions_ + r * width, 1.0F, width, x[r]);
    } else {
      std::copy_n(from, width, x[r]);
    }
  }
  meet_others(member);
}

void CompiledImageNetwork::pool(size_t stage, const nn::Rows& rows, Room& room,
                                const kernels::Member& member) const {
  const CompiledImageStage& from = stages_[stage];
  const CompiledImageStage& to = stages_[stage + 1];
  const nn::Rows x = to.stack.rows(shape_of(to), room.stages[stage + 1]);
  from.pool.forward(map_of(from, rows), x.part(class_rows(), x.count - class_rows()),
                    room.patches[static_cast<size_t>(member.index)].front(), member);
  if (class_rows() > 0 && member.index == 0) {
    from.pool_class.forward(rows.part(0, 1), x.part(0, 1), kernels::Member());
  }
  meet_others(member);
}

void CompiledImageNetwork::answer(const nn::Rows& rows, float* logits, Room& room) const {
  const nn::Rows pooled = room.pooled.rows(2).part(0, 1);
  const nn::Rows normed = room.pooled.rows(2).part(1, 1);
  const int64_t width = norm_.width;
  if (pooling_ == ImagePooling::class_token) {
    norm_.forward(rows.part(0, 1), pooled);
  } else {
    const bool norms = pooling_ == ImagePooling::mean_of_norms;
    const float share = 1.0F / static_cast<float>(rows.count);
    std::fill_n(pooled.data, width, 0.0F);
    for (int64_t r = 0; r < rows.count; ++r) {
      if (norms) norm_.forward(rows.part(r, 1), normed);
      kernels::sum_one(pooled.data, 1.0F, norms ? normed.data : rows[r], share, width, pooled.data);
    }
    if (!norms) norm_.forward(pooled, pooled);
  }
  const nn::Rows answers = room.logits.rows(1);
  head_.forward(pooled, answers, kernels::Member());
  std::copy_n(answers.data, classes(), logits);
}

}  // namespace rondo
