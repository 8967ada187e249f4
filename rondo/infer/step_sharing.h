// How a step of many rows is divided among the members of a team. With few rows, all members work
// on all of them, each on its columns of every matmul, so that weights are read once. With many,
// each member runs its own rows through the whole network: norms, rounding and attention are then
// divided too, and members do not synchronize. Results are bit-identical either way.
#pragma once

#include "rondo/recurrence/compiled_stack.h"

namespace rondo {

class StepParts {
 public:
  // Rows [first, first + rows.size()) of a step, and their activation buffers.
  struct Part {
    int64_t first = 0;
    StepRows rows;
    StepWorkspace stack;

    int64_t count() const { return static_cast<int64_t>(rows.size()); }
    // This part's rows of those of the whole step.
    nn::Rows of(const nn::Rows& all) const { return {all[first], count(), all.stride}; }
  };

  // Divides `rows` and allocates buffers in every part; embed(part, x) fills x [part.count(), D].
  template <class Embed>
  void begin(const CompiledStack& stack, const StepRows& rows, int members, const Embed& embed) {
    share(rows, members);
    for (int64_t p = 0; p < count_; ++p) {
      Part& part = parts_[static_cast<size_t>(p)];
      embed(part, stack.begin(part.rows, count_ > 1 ? 1 : members, part.stack));
    }
  }

  // Calls work(part, member) on every member of the team.
  template <class Work>
  void run(kernels::Team& team, int members, const Work& work) {
    team.run(members, [&](int index) {
      const bool alone = count_ > 1;
      work(parts_[alone ? static_cast<size_t>(index) : 0],
           alone ? kernels::Member() : kernels::Member{&team, index, members});
    });
  }

 private:
  // With this many rows each, members take rows; measured (docs/performance.md).
  static constexpr int64_t kRowsEach = 32;

  void share(const StepRows& rows, int members) {
    const auto all = static_cast<int64_t>(rows.size());
    count_ = all >= kRowsEach * members ? members : 1;
    if (static_cast<int64_t>(parts_.size()) < count_) parts_.resize(static_cast<size_t>(count_));
    for (int64_t p = 0; p < count_; ++p) {
      Part& part = parts_[static_cast<size_t>(p)];
      part.first = all * p / count_;
      part.rows.assign(rows.begin() + part.first, rows.begin() + all * (p + 1) / count_);
    }
  }

  std::vector<Part> parts_;
  int64_t count_ = 0;  // in use
};

}  // namespace rondo
