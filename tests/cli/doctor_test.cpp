// rondo doctor: all checks run, and each problem comes with a remedy.
#include <sys/stat.h>

#include <fstream>

#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

TEST(Doctor, LooksAtEverything) {
  const std::string text = rondo_ok({"doctor"}).out;
  for (const char* what : {"rondo", "libtorch", "BLAS", "oneDNN", "instruction sets",
                           "ATen kernels", "libraries", "threads", "memory"}) {
    EXPECT_TRUE(contains(text, what)) << text;
  }
  EXPECT_TRUE(contains(text, "to fix")) << text;
}

// In the kernel's order and spelling.
TEST(Doctor, NamesTheInstructionSetsThatMatter) {
  const std::string flags = slurp("/proc/cpuinfo");
  const std::string text = rondo_ok({"doctor"}).out;
  EXPECT_EQ(contains(text, "AVX2"), contains(flags, " avx2 ")) << text;
  EXPECT_EQ(contains(text, "AVX-512-VNNI"), contains(flags, " avx512_vnni ")) << text;
  EXPECT_EQ(contains(text, " AMX\n"), contains(flags, " amx_bf16 ")) << text;
}

// The entry for libraries, as "value" and "fix".
nlohmann::json library_finding(const Result& doctor) {
  for (const auto& finding : doctor.json()) {
    if (finding.at("what") == "libraries") return finding;
  }
  throw std::runtime_error("no word about libraries");
}

// Builds with RONDO_FAST_START do not load OpenCV and ffmpeg, which Debian's libtorch links but
// does not call.
TEST(Doctor, LibrariesThatAreNeverCalledAreLeftOut) {
  const std::string text = library_finding(rondo_ok({"doctor", "--json"})).at("value");
  const int loaded = std::stoi(text);
  EXPECT_GT(loaded, 20) << text;
  if (contains(text, "RONDO_FAST_START")) return;
  EXPECT_TRUE(contains(text, "left out")) << text;
  EXPECT_LT(loaded, 120) << text;  // 288 with all of them
}

TEST(Doctor, StandInsForAnotherTorchAreIgnored) {
  namespace fs = std::filesystem;
  const TempDir folder;  // the program looks in its own folder
  fs::copy_file(RONDO_BINARY, folder.file("rondo"));
  fs::create_symlink(fs::path(RONDO_BINARY).parent_path() / "librondo_engine.so",
                     folder.file("librondo_engine.so"));
  fs::create_directory(folder.file("stand_ins"));
  const std::string torch = folder.file("torch");  // any file can be what they were made for
  std::ofstream(torch) << "12345";
  struct stat now = {};
  ASSERT_EQ(stat(torch.c_str(), &now), 0);
  const auto doctor = [&](int64_t bytes, int64_t changed) {
    std::ofstream(folder.file("stand_ins/made_for")) << bytes << ' ' << changed << ' ' << torch;
    return run_program(folder.file("rondo"), {"-v", "doctor", "--json"});
  };
  for (const Result& other : {doctor(6, now.st_mtime), doctor(5, now.st_mtime - 1)}) {
    ASSERT_EQ(other.code, 0) << other.err;
    EXPECT_TRUE(contains(other.err, "made for another libtorch, ignored")) << other.err;
    EXPECT_TRUE(contains(library_finding(other).at("fix"), "rebuild")) << other.out;
  }
  const Result same = doctor(5, now.st_mtime);
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_FALSE(contains(same.err, "another libtorch")) << same.err;
}

TEST(Doctor, JsonHoldsTheSame) {
  const nlohmann::json findings = rondo_ok({"doctor", "--json"}).json();
  EXPECT_GE(findings.size(), 8u);
  for (const auto& finding : findings) {
    EXPECT_FALSE(finding.at("what").get<std::string>().empty());
    EXPECT_FALSE(finding.at("value").get<std::string>().empty());
    EXPECT_TRUE(finding.at("fix").is_string());
  }
}

}  // namespace
}  // namespace rondo::testing
