// Kill -9 at random moments, then the same command again: the final weights equal those of an
// undisturbed run bit for bit. 30 kills for every optimizer, during start-up, steps and the writing
// of checkpoints, split up so that no single test takes long.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

constexpr int kKillsOfAPart = 10;

using OptimizerPart = std::tuple<const char*, int>;

class KilledTraining : public ::testing::TestWithParam<OptimizerPart> {};

// Waits until the child has ended or `seconds` have passed; whether it has ended.
bool ends_within(Child& child, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  while (!child.ended()) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() >= seconds) return false;
    pause_for(0.002);
  }
  return true;
}

// The log has every step exactly once.
void expect_every_step(const Trainee& t, const std::string& run, int64_t steps) {
  const auto lines = t.metrics(run);
  ASSERT_EQ(static_cast<int64_t>(lines.size()), steps);
  for (int64_t i = 0; i < steps; ++i) EXPECT_EQ(lines[static_cast<size_t>(i)].at("step"), i + 1);
}

TEST_P(KilledTraining, EndsWithTheBitsOfAnUndisturbedRun) {
  const auto [optimizer, part] = GetParam();
  const Trainee t(optimizer);
  const double life = t.train("undisturbed").seconds;
  CounterRandom random(static_cast<uint64_t>(part), std::string("kill ") + optimizer);
  int kills = 0;
  int finished = 0;
  for (int attempt = 0; kills < kKillsOfAPart || finished == 0; ++attempt) {
    ASSERT_LT(attempt, 20 * kKillsOfAPart) << "the run never ends";
    Child child(t.command("killed"));
    // After the last kill the run is not disturbed any more.
    const double moment = kills < kKillsOfAPart ? random.uniform() * life : kPatience;
    if (!ends_within(child, moment)) {
      child.send(SIGKILL);
      child.wait();
      kills += child.died_of(SIGKILL) ? 1 : 0;
      continue;
    }
    ASSERT_EQ(child.code(), 0) << child.err();
    expect_same_run(t, "killed", "undisturbed");
    expect_every_step(t, "killed", 60);
    ++finished;
    t.remove("killed");
  }
  EXPECT_EQ(kills, kKillsOfAPart);
}

INSTANTIATE_TEST_SUITE_P(Thirty, KilledTraining,
                         ::testing::Combine(::testing::Values("adam", "adamw", "adafactor"),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param)) + "_part_" +
                                  std::to_string(std::get<1>(given.param));
                         });

// Files left half written by a kill are removed by the time the run ends.
TEST(KilledTrainingFolder, HoldsOnlyWhatARunKeeps) {
  const Trainee t;
  {
    Child child(t.command("run"));
    wait_until([&] { return !t.checkpoints("run").empty(); }, "a checkpoint");
    child.send(SIGKILL);
    child.wait();
  }
  spill(t.file("run/checkpoints/.00000060.safetensors.1-1.tmp"), "half");
  t.train("run");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(t.file("run"))) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  EXPECT_EQ(t.checkpoints("run").size(), 2u);
}

}  // namespace
}  // namespace rondo::testing
