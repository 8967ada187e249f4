// rondo doctor: it looks at everything and says what to do about what is slow.
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

TEST(Doctor, LooksAtEverything) {
  const std::string text = rondo_ok({"doctor"}).out;
  for (const char* what : {"rondo", "libtorch", "BLAS", "oneDNN", "instruction sets",
                           "ATen kernels", "libraries", "threads", "memory"}) {
    EXPECT_TRUE(contains(text, what)) << text;
  }
  EXPECT_TRUE(contains(text, "to mend")) << text;
}

// As the kernel lists them.
TEST(Doctor, NamesTheInstructionSetsThatMatter) {
  const std::string flags = slurp("/proc/cpuinfo");
  const std::string text = rondo_ok({"doctor"}).out;
  EXPECT_EQ(contains(text, "AVX2"), contains(flags, " avx2 ")) << text;
  EXPECT_EQ(contains(text, "AVX-512-VNNI"), contains(flags, " avx512_vnni ")) << text;
  EXPECT_EQ(contains(text, " AMX\n"), contains(flags, " amx_bf16 ")) << text;
}

// OpenCV and ffmpeg, which Debian's libtorch is linked to but does not call, are not loaded.
TEST(Doctor, LibrariesThatAreNeverCalledAreLeftOut) {
  for (const auto& finding : rondo_ok({"doctor", "--json"}).json()) {
    if (finding.at("what") != "libraries") continue;
    const std::string text = finding.at("value");
    const int loaded = std::stoi(text);
    EXPECT_LT(loaded, 120) << text;  // 288 with all of them
    EXPECT_GT(loaded, 20) << text;
    return;
  }
  FAIL() << "no word about libraries";
}

TEST(Doctor, JsonHoldsTheSame) {
  const nlohmann::json findings = rondo_ok({"doctor", "--json"}).json();
  EXPECT_GE(findings.size(), 8u);
  for (const auto& finding : findings) {
    EXPECT_FALSE(finding.at("what").get<std::string>().empty());
    EXPECT_FALSE(finding.at("value").get<std::string>().empty());
    EXPECT_TRUE(finding.at("mend").is_string());
  }
}

}  // namespace
}  // namespace rondo::testing
