// The documents are up to date: shown output is what the program prints, and links and paths exist.
#include <regex>

#include "rondo/base/text.h"
#include "rondo/config/zoo.h"
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = RONDO_SOURCE_DIR;

std::vector<std::string> documents() {
  std::vector<std::string> paths;
  for (const std::string folder : {"", "/docs", "/docs/papers"}) {
    for (const auto& entry : fs::directory_iterator(kRoot + folder)) {
      if (entry.path().extension() == ".md") paths.push_back(entry.path().string());
    }
  }
  return paths;
}

// All first groups of `pattern` in `text`.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

// A document without its code blocks, in which [](...) is not a link.
std::string prose(const std::string& document) {
  std::string text;
  bool code = false;
  for (const std::string& line : split(slurp(document), '\n')) {
    if (line.rfind("```", 0) == 0) {
      code = !code;
    } else if (!code) {
      text += line + "\n";
    }
  }
  return text;
}

TEST(Documents, LinksLeadSomewhere) {
  int64_t links = 0;
  for (const std::string& document : documents()) {
    for (const std::string& link : matches(prose(document), R"(\]\(([^)#:]+)\))")) {
      EXPECT_TRUE(fs::exists(fs::path(document).parent_path() / link)) << document << ": " << link;
      ++links;
    }
  }
  EXPECT_GE(links, 10);
}

TEST(Documents, PathsOfSourcesExist) {
  int64_t paths = 0;
  for (const std::string& document : documents()) {
    const std::string pattern =
        R"(`((?:rondo|cli|tests|tools|examples|docs|cmake)/[\w/.]+\.(?:h|cpp|md|py|sh|txt|toml))`)";
    for (const std::string& path : matches(slurp(document), pattern)) {
      if (contains(path, "scheme_sandwich")) continue;  // a suggested name for a new scheme
      EXPECT_TRUE(fs::exists(kRoot + "/" + path)) << document << ": " << path;
      ++paths;
    }
  }
  EXPECT_GE(paths, 30);
}

// The code quoted in adding_a_variant.md is compiled and tested.
TEST(Documents, CodeOfVariantsIsThatOfTheExamples) {
  std::string sources;
  for (const char* path : {"/examples/variants/sandwich.h", "/examples/variants/running_mean.h",
                           "/tests/infer/adding_a_variant_test.cpp"}) {
    sources += slurp(kRoot + path);
  }
  const std::string document = slurp(kRoot + "/docs/adding_a_variant.md");
  const std::string open = "```cpp\n";
  int64_t blocks = 0;
  for (size_t at = document.find(open); at != std::string::npos; at = document.find(open, at)) {
    at += open.size();
    const std::string block = document.substr(at, document.find("\n```", at) - at);
    EXPECT_TRUE(contains(sources, block)) << "quoted, but not in the examples:\n" << block;
    ++blocks;
  }
  EXPECT_GE(blocks, 12);
}

TEST(Documents, NamedModelsExist) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) names.push_back(entry.name);
  for (const std::string& document : documents()) {
    for (const std::string& name :
         matches(slurp(document), R"(`((?:ringformer|brt|sret)/[\w-]+)`)")) {
      EXPECT_NE(std::find(names.begin(), names.end(), name), names.end())
          << document << ": " << name;
    }
  }
}

// tests/documents/run compares all shown output; this test covers what needs no training.
TEST(Documents, NetworksShowsRealOutput) {
  const std::string document = slurp(kRoot + "/docs/networks.md");
  const std::string info = rondo_ok({"info", "ringformer/mt-base"}).out;
  EXPECT_TRUE(contains(document, "$ rondo info ringformer/mt-base\n" + info)) << info;
  EXPECT_TRUE(contains(document, std::to_string(zoo().size()) + " models"));
  const Result refused = rondo({"info", "sret/t", "--image", "200"});
  EXPECT_TRUE(contains(document, "$ rondo info sret/t --image 200\n" + refused.err)) << refused.err;
}

TEST(Documents, ReadmeNamesVerbsAndExitCodes) {
  const std::string document = slurp(kRoot + "/README.md");
  for (const char* verb : {"models", "info", "forward", "import", "doctor", "config"}) {
    EXPECT_TRUE(contains(document, std::string("rondo ") + verb)) << verb;
  }
  EXPECT_TRUE(contains(document, "Exit codes: 0 ok, 1 failure, 2 usage, 3 bad model"));
}

// Names of machines and addresses of package registries do not belong in documents.
TEST(Documents, NameNoMachine) {
  for (const std::string& document : documents()) {
    // A reverse proxy reaches the server through a URL of a socket.
    const std::string text =
        std::regex_replace(slurp(document), std::regex("http://unix:/run/"), "");
    for (const char* word : {"/work/", "/tmp/", "/home/", "/root/", "http://", "https://"}) {
      EXPECT_FALSE(contains(text, word)) << document << ": " << word;
    }
  }
}

}  // namespace
}  // namespace rondo::testing
