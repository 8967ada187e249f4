// rondo bench: cases are listed, measured next to canaries, and compared with the peers that are
// installed.
#include <unistd.h>

#include <fstream>

#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

TEST(Bench, ListsItsCases) {
  const std::string text = rondo_ok({"bench", "--list"}).out;
  for (const char* name : {"train-lm", "forward-lm", "decode-lm", "recurrence", "growth", "ring",
                           "translate", "image-one", "image-batch", "image-train", "memory"}) {
    EXPECT_TRUE(contains(text, name)) << text;
  }
  const nlohmann::json cases = rondo_ok({"bench", "--list", "--json"}).json();
  EXPECT_GE(cases.size(), 11u);
  for (const auto& c : cases) EXPECT_FALSE(c.at("about").get<std::string>().empty());
}

TEST(Bench, UnknownCasesAreRefusedWithThoseThereAre) {
  const Result result = rondo({"bench", "train-ml"});
  expect_refusal(result, ExitCode::usage, "unknown case 'train-ml'");
  EXPECT_TRUE(contains(result.err, "train-lm")) << result.err;
  EXPECT_TRUE(contains(result.err, "memory")) << result.err;
}

TEST(Bench, WaysExcludeEachOther) {
  expect_refusal(rondo({"bench", "--all", "--list"}), ExitCode::usage, "mutually exclusive");
  expect_refusal(rondo({"bench", "train-lm", "--all"}), ExitCode::usage, "mutually exclusive");
  expect_refusal(rondo({"bench", "--set", "a=1"}), ExitCode::usage, "--data");
  expect_refusal(rondo({"bench", "--rounds", "4"}), ExitCode::usage, "from 5 to 1000");
}

TEST(Bench, JsonHoldsLimitsCanariesAndClaims) {
  const nlohmann::json all = rondo_ok({"bench", "decode-lm", "--no-peers", "--json"}).json();
  EXPECT_FALSE(all.at("machine").at("cpu").get<std::string>().empty());
  EXPECT_GE(all.at("machine").at("cores").get<int>(), 1);
  for (const auto& limit : all.at("limits")) EXPECT_GT(limit.at("per_second").get<double>(), 0);
  ASSERT_EQ(all.at("cases").size(), 1u);
  const nlohmann::json& c = all["cases"][0];
  EXPECT_EQ(c.at("name"), "decode-lm");
  ASSERT_GE(c.at("lines").size(), 1u);
  for (const auto& line : c["lines"]) {
    EXPECT_EQ(line.at("unit"), "tokens");
    const nlohmann::json& rate = line.at("per_second");
    EXPECT_LE(rate.at("low").get<double>(), rate.at("median").get<double>());
    EXPECT_LE(rate.at("median").get<double>(), rate.at("high").get<double>());
  }
  ASSERT_GE(c.at("canaries").size(), 3u);  // products, copying, reading the weights
  EXPECT_GE(c.at("canary_moved").get<double>(), 0);
  if (c.at("conclusive").get<bool>()) {
    EXPECT_LE(c["canary_moved"].get<double>(), 0.1);
  } else {
    EXPECT_TRUE(contains(c.at("verdict").get<std::string>(), "canary varied by"));
  }
  for (const auto& claim : c.at("claims")) {
    EXPECT_GT(claim.at("value").at("median").get<double>(), 0);
    EXPECT_FALSE(claim.at("outcome").get<std::string>().empty());
  }
}

// A stand-in for PyTorch that follows the protocol: by its own clock, a quarter of a second per
// token.
void write_peer(const TempDir& folder, int64_t parameters) {
  std::ofstream(folder.file("lm.py"))
      << "import sys\n"
      << "print('ready {\"parameters\": " << parameters << "}', flush=True)\n"
      << "for line in sys.stdin:\n"
      << "    print(int(line.split()[1]) * 0.25, flush=True)\n";
}

// Parameters of the language model of bench, by formula: attention, feed-forward, relative bias,
// scale and two norms per level; the last norm; the embedding.
constexpr int64_t kParameters =
    6 * (4 * 256 * 256 + 2 * 256 * 1024 + 4 * 32 + 4 + 2 * 256) + 256 + 4096 * 256;

TEST(Bench, PeersTakeTurnsByTheirProtocol) {
  const TempDir folder;
  write_peer(folder, kParameters);
  const nlohmann::json all =
      rondo_ok({"bench", "decode-lm", "--peers", folder.path(), "--json"}).json();
  const nlohmann::json& c = all.at("cases")[0];
  ASSERT_TRUE(c.at("lines").back().at("peer").get<bool>()) << c.dump(2);
  EXPECT_NEAR(c["lines"].back().at("per_second").at("median").get<double>(), 4.0, 1e-9);
  const double ours = c["lines"][c["lines"].size() - 2].at("per_second").at("median");  // int8
  const nlohmann::json& claim = c.at("claims").back();
  EXPECT_TRUE(contains(claim.at("what"), "int8")) << claim.dump();
  EXPECT_TRUE(contains(claim.at("what"), "speed over PyTorch")) << claim.dump();
  EXPECT_NEAR(claim.at("value").at("median").get<double>(), ours / 4.0, 0.05 * ours / 4.0);
}

TEST(Bench, AnotherNetworkIsNoPeer) {
  const TempDir folder;
  write_peer(folder, kParameters + 1);
  const std::string text = rondo_ok({"bench", "decode-lm", "--peers", folder.path()}).out;
  EXPECT_TRUE(contains(text, "is a different network: 5,771,289 parameters instead of 5,771,288"))
      << text;
  EXPECT_FALSE(contains(text, "speed over")) << text;
}

// Nothing fails if Python has no torch, or if there is no Python.
TEST(Bench, WithoutPeersRatiosAreLeftOut) {
  const TempDir folder;
  std::ofstream(folder.file("lm.py")) << "print('python3-torch is not installed')\n";
  const std::string text = rondo_ok({"bench", "decode-lm", "--peers", folder.path()}).out;
  EXPECT_TRUE(contains(text, "python3-torch is not installed: no ratios")) << text;
  EXPECT_FALSE(contains(text, "speed over")) << text;
  EXPECT_TRUE(contains(text, "share of read")) << text;
}

// The peers compute the same networks: with our weights they give the same outputs.
TEST(Bench, PeersAreTheSameNetworks) {
  const std::string python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "";
  if (python.empty()) {
    GTEST_SKIP() << "no Python of the system";
  }
  const Result result =
      run_program(python, {RONDO_SOURCE_DIR "/bench/peers/agree.py", RONDO_BINARY});
  if (result.code == 77) {
    GTEST_SKIP() << result.out;
  }
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_EQ(lines_of(result.out).size(), 4u) << result.out;
}

}  // namespace
}  // namespace rondo::testing
