// Block-recurrent networks without state IDs and without normalized queries and keys, from the
// command line: training, forward, generate with our kernels and with plain operations.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

TEST(TimeSwitches, TrainReadAndWrite) {
  const Trainee t;
  t.train("run", {"--set", "model.time.state_ids=false", "--set", "model.time.normalize=false",
                  "--set", "train.steps=4"});
  const std::string model = t.file("run") + "/best.safetensors";
  const Arrays weights = read_arrays(model);
  EXPECT_EQ(weights.count("stack.mixing.1.cell.identity"), 0U);
  EXPECT_EQ(weights.count("stack.mixing.1.initial"), 1U);
  const std::string toml = rondo_ok({"info", model, "--toml"}).out;
  EXPECT_TRUE(contains(toml, "state_ids = false")) << toml;
  EXPECT_TRUE(contains(toml, "normalize = false")) << toml;

  const auto text = [&](const Arguments& more) {
    Arguments words = {"generate", t.file("run"), "--threads",     "1", "--prompt", "round and ",
                       "-n",       "60",          "--temperature", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return rondo_ok(words).out;
  };
  const std::string ours = text({});
  EXPECT_EQ(ours, text({"--kernels", "reference"}));
  EXPECT_FALSE(text({"--precision", "bf16"}).empty());
  rondo_ok({"eval", t.file("run"), "--data", t.file("valid.txt"), "--cache", t.file("cache")});
}

}  // namespace
}  // namespace rondo::testing
