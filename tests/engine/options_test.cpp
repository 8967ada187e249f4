// Options of verbs as text, and the engine's interface: options arrive unchanged, and what another
// version might pass is rejected with a message.
#include "cli/options.h"

#include <gtest/gtest.h>

#include "cli/engine_interface.h"
#include "cli/study_options.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

using cli::decode_options;
using cli::encode_options;

// Gives every visited option a value other than its default; detects duplicate names.
class Scribble : public cli::OptionVisitor {
 public:
  int visited = 0;

 private:
  void visit(const cli::OptionSpec& spec, cli::OptionRef value) override {
    EXPECT_TRUE(keys_.insert(spec.key()).second) << spec.key() << " is described twice";
    EXPECT_EQ(spec.key().find('='), std::string::npos);
    EXPECT_TRUE(spec.hidden || !spec.help.empty()) << spec.key();
    ++visited;
    std::visit([&](auto* one) { scribble(*one); }, value);
  }
  void scribble(bool& value) { value = !value; }
  void scribble(std::string& value) { value = "a=b\n \xff\"" + std::to_string(visited); }
  void scribble(std::vector<std::string>& value) { value = {"", "x=", "\xc3"}; }
  void scribble(double& value) { value = 0.1 + visited / 3.0; }
  void scribble(int64_t& value) { value = INT64_MIN + visited; }
  void scribble(uint64_t& value) { value = UINT64_MAX - static_cast<uint64_t>(visited); }
  std::set<std::string> keys_;
};

template <class Options>
class EveryVerb : public ::testing::Test {};
using AllOptions =
    ::testing::Types<cli::AverageOptions, cli::BenchOptions, cli::ClassifyOptions,
                     cli::CompareOptions, cli::DoctorOptions, cli::EvalOptions, cli::ForwardOptions,
                     cli::GenerateOptions, cli::ImportOptions, cli::InfoOptions,
                     cli::StateForkOptions, cli::StateInfoOptions, cli::StateReadOptions,
                     cli::StudyOptions, cli::TrainOptions, cli::TranslateOptions>;
TYPED_TEST_SUITE(EveryVerb, AllOptions);

TYPED_TEST(EveryVerb, OptionsCrossAsText) {
  TypeParam options;
  Scribble scribble;
  describe(scribble, options);
  EXPECT_GT(scribble.visited, 0);
  const std::string text = encode_options(options);
  EXPECT_NE(text, encode_options(TypeParam()));
  EXPECT_EQ(encode_options(decode_options<TypeParam>(text)), text);
}

// Options of `study` depend on its kind, which comes first.
TEST(VerbOptions, OfEveryStudyCrossAsText) {
  for (const char* kind : {"cka", "attention-distance", "state", "coefficients", "signals",
                           "activations", "landscape", "cost"}) {
    cli::StudyOptions options;
    options.kind = kind;
    options.runs = {"a", "b"};
    options.points = 7;
    options.tokens = 11;
    options.estimator = "rows";
    options.inputs = {"x", "y"};
    const std::string text = encode_options(options);
    const auto read = decode_options<cli::StudyOptions>(text);
    EXPECT_EQ(encode_options(read), text) << kind;
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ(read.points, std::string(kind) == "landscape" ? 7 : 25);
    EXPECT_EQ(read.tokens, std::string(kind) == "state" ? 11 : 100000);
    EXPECT_EQ(read.inputs.size(), std::string(kind) == "activations" ? 2U : 0U);
  }
}

TEST(VerbOptions, LeftOutKeepTheirDefaults) {
  EXPECT_EQ(decode_options<cli::GenerateOptions>("").tokens, 256);
  const auto options = decode_options<cli::GenerateOptions>(std::string("tokens=7\0run=r\0", 15));
  EXPECT_EQ(options.tokens, 7);
  EXPECT_EQ(options.run, "r");
  EXPECT_EQ(options.temperature, 1.0);
}

TEST(VerbOptions, OfAnotherVersionAreRefused) {
  const auto refuse = [](std::string text, const std::string& part) {
    expect_error(ExitCode::failure, part,
                 [&] { decode_options<cli::GenerateOptions>(text + '\0'); });
  };
  refuse("tokns=7", "unknown option 'tokns'");
  refuse("tokens=seven", "tokens: expected a number, got 'seven'");
  refuse("tokens=7.5", "tokens: expected a number");
  refuse("stream=yes", "stream: expected true or false, got 'yes'");
  refuse("tokens", "expected 'name=value', got 'tokens'");
  expect_error(ExitCode::failure, "expected 'name=value'",
               [] { decode_options<cli::GenerateOptions>("tokens=7"); });  // cut short
}

TEST(EngineInterface, ReportsFailuresAsCodeAndMessage) {
  EXPECT_EQ(rondo_engine_run("sing", "", 0), 1);
  EXPECT_NE(std::string(rondo_engine_error()).find("the engine has no verb 'sing'"),
            std::string::npos);
  const std::string options = encode_options(cli::StateInfoOptions{"/nowhere/state", {}, false});
  EXPECT_EQ(rondo_engine_run("state info", options.data(), options.size()), 4);
  EXPECT_NE(std::string(rondo_engine_error()).find("/nowhere/state"), std::string::npos);
}

}  // namespace
}  // namespace rondo::test
