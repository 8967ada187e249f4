// Decisions of the training loop that all processes of a group must take alike.
#include <cmath>

#include "rondo/train/trainer.h"
#include "tests/train/group_test_util.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// What `steps` steps of two ranks leave behind; rank 1's loss at call `bad` is `loss`.
struct TwoRanks {
  TwoRanks(int64_t steps, int64_t bad, double loss) {
    RunConfig config = scripted_run();
    config.train.steps = steps;
    testing::expect_well(testing::in_group(2, [&](ProcessGroup& group) {
      const auto rank = static_cast<size_t>(group.rank());
      const std::unique_ptr<ScriptedTask> task = scripted_language(config, 4);
      if (rank == 1) task->factor = [=](int64_t call) { return call == bad ? loss : 1.0; };
      std::unique_ptr<RunFolder> run;
      if (rank == 0) run = std::make_unique<RunFolder>(folder.file("run"), config);
      codes[rank] = train_in_group(*task, config, run.get(), group);
      for (const auto& [name, tensor] : named_tensors(task->network())) {
        weights[rank][name] = tensor.detach().clone();
      }
      forgotten[rank] = task->forgotten;
    }));
  }

  testing::TempDir folder;
  QuietLog quiet;
  int codes[2] = {-1, -1};
  NamedTensors weights[2];
  std::vector<int64_t> forgotten[2];
};

void expect_equal_weights(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(at::equal(tensor, b.at(name))) << name;
}

TEST(GroupNonFiniteLoss, OfOneRankIsSkippedByAll) {
  const TwoRanks calm(2, 0, 1.0);
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const TwoRanks run(3, 3, bad);  // the last step is the bad one: the weights of step 2 remain
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(run.codes[rank], 0);
      expect_equal_weights(run.weights[rank], calm.weights[0]);
    }
    EXPECT_TRUE(run.forgotten[0].empty()) << "its own batch was good";
    EXPECT_EQ(run.forgotten[1], (std::vector<int64_t>{3}));
    const auto lines = metrics_of(run.folder.file("run"));
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_TRUE(lines[2].at("loss").is_null());
    EXPECT_EQ(lines[2].at("skipped"), 1);
  }
}

TEST(GroupNonFiniteLoss, AllGoOnAlikeAfterIt) {
  const TwoRanks run(5, 3, NAN);
  expect_equal_weights(run.weights[0], run.weights[1]);
  const auto lines = metrics_of(run.folder.file("run"));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(std::isfinite(lines[4].at("loss").get<double>()));
  EXPECT_EQ(lines[4].at("skipped"), 1);
}

}  // namespace
}  // namespace rondo::test
