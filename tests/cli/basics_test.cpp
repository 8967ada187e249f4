// The command as a whole: help, version, errors in the command line, start-up.
#include "rondo/base/version.h"
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

// The names listed under "Subcommands:" in the help of `arguments`.
Arguments verbs_of(Arguments arguments) {
  arguments.emplace_back("--help");
  Arguments verbs;
  bool listed = false;
  for (const std::string& line : lines_of(rondo_ok(arguments).out)) {
    if (listed && line.empty()) break;
    if (listed) verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line == "Subcommands:";
  }
  return verbs;
}

TEST(Command, PrintsItsVersion) {
  EXPECT_EQ(rondo_ok({"--version"}).out, std::string("rondo ") + kVersion + "\n");
}

TEST(Command, AnswersVersionAndHelpAtOnce) {
#ifdef NDEBUG
  const double limit = 0.05;
#else
  const double limit = 0.5;
#endif
  EXPECT_LT(median_seconds(9, {"--version"}), limit);
  EXPECT_LT(median_seconds(9, {"--help"}), limit);
  EXPECT_LT(median_seconds(9, {"forward", "--help"}), limit);
}

TEST(Command, HelpNamesVerbsAndExitCodes) {
  const Arguments verbs = verbs_of({});
  for (const char* verb : {"models", "info", "forward", "import", "doctor", "config"}) {
    EXPECT_NE(std::find(verbs.begin(), verbs.end(), verb), verbs.end()) << verb;
  }
  EXPECT_TRUE(contains(rondo_ok({"--help"}).out, "Exit codes: 0 ok, 1 failure, 2 usage"));
}

TEST(Command, EveryVerbExplainsItself) {
  for (const std::string& verb : verbs_of({})) {
    const Result result = rondo_ok({verb, "--help"});
    EXPECT_TRUE(contains(result.out, "Usage: rondo " + verb)) << result.out;
    EXPECT_EQ(result.err, "");
    for (const std::string& inner : verbs_of({verb})) {
      const Result nested = rondo_ok({verb, inner, "--help"});
      EXPECT_TRUE(contains(nested.out, inner)) << nested.out;
    }
  }
}

TEST(Command, HelpShowsDefaultsAndAnExample) {
  const std::string help = rondo_ok({"generate", "--help"}).out;
  // CLI11 writes defaults as =1 or, in later versions, as [1].
  const auto shows = [&](const std::string& option, const std::string& value) {
    return contains(help, option + "=" + value) || contains(help, option + " [" + value + "]");
  };
  EXPECT_TRUE(shows("--temperature FLOAT:FLOAT in [0 - 100]", "1")) << help;
  EXPECT_TRUE(shows("-n,--tokens INT", "256")) << help;
  EXPECT_TRUE(shows("--precision TEXT:{fp32,bf16,int8}", "fp32")) << help;
  EXPECT_TRUE(contains(help, "Example: rondo generate ")) << help;
  // A value below the range means "not given": it is not shown as a default.
  EXPECT_TRUE(contains(rondo_ok({"info", "--help"}).out, "--image INT  "));
  for (const std::string& verb : verbs_of({})) {
    const Arguments inner = verbs_of({verb});
    if (inner.empty()) {
      EXPECT_TRUE(contains(rondo_ok({verb, "--help"}).out, "Example: rondo " + verb)) << verb;
    }
    for (const std::string& name : inner) {
      const std::string text = rondo_ok({verb, name, "--help"}).out;
      EXPECT_TRUE(contains(text, "Example: rondo " + verb + " " + name)) << text;
    }
  }
}

TEST(Command, NeedsAVerb) {
  expect_refusal(rondo({}), ExitCode::usage, "the verbs are train, new, runs");
}

TEST(Command, SuggestsTheNearestVerb) {
  expect_refusal(rondo({"inof", "sret/t"}), ExitCode::usage,
                 "unknown verb 'inof'\n  did you mean 'info'?");
  expect_refusal(rondo({"xylophone"}), ExitCode::usage, "the verbs are train, new, runs");
}

TEST(Command, SuggestsTheNearestOption) {
  expect_refusal(rondo({"--versoin"}), ExitCode::usage, "did you mean '--version'?");
  expect_refusal(rondo({"info", "sret/t", "--jsno"}), ExitCode::usage,
                 "info: unknown option '--jsno'\n  did you mean '--json'?");
  expect_refusal(rondo({"info", "sret/t", "--wibble"}), ExitCode::usage, "see 'rondo info --help'");
}

TEST(Command, RefusesArgumentsTooFewAndTooMany) {
  expect_refusal(rondo({"info"}), ExitCode::usage, "info: model is required");
  expect_refusal(rondo({"info", "sret/t", "sret/s"}), ExitCode::usage,
                 "unexpected argument 'sret/s'");
  expect_refusal(rondo({"forward", "sret/t"}), ExitCode::usage, "--input is required");
  expect_refusal(rondo({"import", "x.safetensors"}), ExitCode::usage, "is required");
}

TEST(Command, NamesTheRangeOfANumber) {
  for (const char* wrong : {"0", "-3", "abc", "1.5", "99999999999999999999"}) {
    expect_refusal(rondo({"info", "sret/t", "--image", wrong}), ExitCode::usage,
                   "--image: expected a whole number from 1 to 65536");
  }
}

// libtorch costs 0.4 s and several hundred MB: only verbs that need it may load it.
TEST(Command, DoesNotLinkTorch) {
  const Result libraries = run_program("/usr/bin/ldd", {RONDO_BINARY});
  ASSERT_EQ(libraries.code, 0) << libraries.err;
  EXPECT_TRUE(contains(libraries.out, "libc.so")) << libraries.out;
  // Whole names: addresses are printed too, and one may contain "c10" by chance.
  for (const char* heavy : {"libtorch", "libc10", "blas", "rondo_engine"}) {
    EXPECT_FALSE(contains(libraries.out, heavy)) << libraries.out;
  }
}

// A copy of the program in `folder`, without its engine.
std::string lonely_program(const TempDir& folder) {
  const std::string lonely = folder.file("rondo");
  std::filesystem::copy_file(RONDO_BINARY, lonely);
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RONDO_BINARY).parent_path())) {
    const std::string name = entry.path().filename();
    if (name.rfind("librondo_base.so", 0) == 0) {
      std::filesystem::copy_file(entry.path(), folder.file(name));
    }
  }
  return lonely;
}

TEST(Command, WorksWithoutItsEngineAsFarAsItGoes) {
  const TempDir folder;
  const std::string lonely = lonely_program(folder);
  EXPECT_EQ(run_program(lonely, {"models"}).code, 0);
  EXPECT_EQ(run_program(lonely, {"info", "sret/t", "--toml"}).code, 0);
  expect_refusal(run_program(lonely, {"info", "sret/t"}), ExitCode::failure,
                 "cannot load the engine");
}

TEST(Command, RefusesAnEngineOfAnotherVersion) {
  const TempDir folder;
  const std::string lonely = lonely_program(folder);
  std::filesystem::copy_file(RONDO_OTHER_ENGINE, folder.file("librondo_engine.so"));
  expect_refusal(run_program(lonely, {"info", "sret/t"}), ExitCode::failure,
                 std::string("librondo_engine.so: expected engine version ") + kVersion +
                     ", interface 1, got 0.0.1, interface 0\n  build or install rondo");
  std::filesystem::remove(folder.file("librondo_engine.so"));
  std::filesystem::copy_file(RONDO_FAULTS_PRELOAD, folder.file("librondo_engine.so"));
  expect_refusal(run_program(lonely, {"info", "sret/t"}), ExitCode::failure,
                 "librondo_engine.so: has no function rondo_engine_version");
}

TEST(Command, SaysWhenItsOutputCannotBeWritten) {
  for (const char* words :
       {"models", "models --json", "info sret/t --toml", "info sret/t --json"}) {
    const std::string line = std::string(RONDO_BINARY) + " " + words + " > /dev/full";
    expect_refusal(run_program("/bin/sh", {"-c", line}), ExitCode::io, "No space left on device");
  }
}

}  // namespace
}  // namespace rondo::testing
