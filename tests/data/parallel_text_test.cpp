// Finding the two sides of a parallel text, and reading pairs: against a naive reader that holds
// all of it, at the edges of blocks and limits, and with every kind of error.
#include "rondo/data/parallel_text.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using testing::error_of;
using testing::gzip;
using testing::random_bytes;
using testing::spill;
using testing::TempDir;
using testing::zstd;

using Pair = std::pair<std::string, std::string>;

// Writes `text`, compressed as the name's ending says.
std::string put(const std::string& path, const std::string& text) {
  const std::string ending = fs::path(path).extension();
  spill(path, ending == ".gz" ? gzip(text) : ending == ".zst" ? zstd(text) : text);
  return path;
}

std::vector<Pair> read_all(const ParallelFiles& files) {
  PairReader reader(files);
  std::vector<Pair> pairs;
  std::string source = "stale";
  std::string target = "stale";
  while (reader.next(source, target)) {
    pairs.emplace_back(source, target);
    EXPECT_EQ(reader.line(), static_cast<int64_t>(pairs.size()));
    EXPECT_FALSE(reader.over_long());
  }
  EXPECT_EQ(reader.line(), static_cast<int64_t>(pairs.size()));
  EXPECT_FALSE(reader.next(source, target)) << "the end is the end";
  EXPECT_EQ(source + target, "");
  return pairs;
}

// A second implementation of the rules: lines by std::getline, without one final '\r'.
std::vector<std::string> naive_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    lines.push_back(line);
  }
  return lines;
}

bool mentions(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

class FindParallelTest : public ::testing::Test {
 protected:
  std::string touch(const std::string& name) { return put(folder_.file(name), "x\n"); }
  ParallelFiles find(const std::string& name) {
    return find_parallel(folder_.file(name), "de", "en");
  }
  void expect_found(const std::string& spec, const std::string& source, const std::string& target) {
    const ParallelFiles files = find(spec);
    EXPECT_EQ(files.source, folder_.file(source));
    EXPECT_EQ(files.target, target.empty() ? "" : folder_.file(target));
  }
  TempDir folder_;
};

TEST_F(FindParallelTest, ByPrefix) {
  touch("a.de.zst");
  touch("a.en.gz");
  expect_found("a", "a.de.zst", "a.en.gz");
  touch("a.de.gz");
  expect_found("a", "a.de.gz", "a.en.gz");
  touch("a.de");
  expect_found("a", "a.de", "a.en.gz");
  EXPECT_EQ(find_parallel(folder_.file("a"), "en", "de").source, folder_.file("a.en.gz"));
}

TEST_F(FindParallelTest, Tables) {
  for (const char* name : {"t.tsv", "t.tsv.gz", "t.tsv.zst", "with,comma.tsv"}) {
    touch(name);
    expect_found(name, name, "");
  }
}

TEST_F(FindParallelTest, TwoPaths) {
  touch("left.gz");
  touch("right");
  const std::string both = folder_.file("left.gz") + "," + folder_.file("right");
  const ParallelFiles files = find_parallel(both, "de", "en");
  EXPECT_EQ(files.source, folder_.file("left.gz"));
  EXPECT_EQ(files.target, folder_.file("right"));
  // Commas in file names and in a prefix.
  touch("a,b");
  touch("c,d.tsv");
  const ParallelFiles odd =
      find_parallel(folder_.file("a,b") + "," + folder_.file("c,d.tsv"), "de", "en");
  EXPECT_EQ(odd.source, folder_.file("a,b"));
  EXPECT_EQ(odd.target, folder_.file("c,d.tsv"));
  touch("e,f.de");
  touch("e,f.en");
  expect_found("e,f", "e,f.de", "e,f.en");
}

TEST_F(FindParallelTest, SaysWhatItTried) {
  Error error = error_of([&] { find("a"); });
  EXPECT_EQ(error.code(), ExitCode::io);
  for (const char* ending : {".de,", ".de.gz,", ".de.zst,", ".en,", ".en.gz,", ".en.zst"}) {
    EXPECT_TRUE(mentions(error, folder_.file("a") + ending)) << error.what();
  }
  touch("a.de.gz");  // then only the other side is missing
  error = error_of([&] { find("a"); });
  EXPECT_FALSE(mentions(error, "a.de")) << error.what();
  EXPECT_TRUE(mentions(error, "a.en.zst")) << error.what();
  error = error_of([&] { find("a.de.gz"); });  // the file instead of the prefix
  EXPECT_TRUE(mentions(error, "without the language")) << error.what();
  error = error_of([&] { find("none.tsv"); });
  EXPECT_TRUE(mentions(error, "none.tsv")) << error.what();
  const std::string half = folder_.file("a.de.gz") + "," + folder_.file("b.en.gz");
  error = error_of([&] { find_parallel(half, "de", "en"); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_TRUE(mentions(error, "tried " + folder_.file("b.en.gz"))) << error.what();
  EXPECT_EQ(error_of([&] { find_parallel("", "de", "en"); }).code(), ExitCode::io);
  EXPECT_EQ(error_of([&] { find_parallel("\0,\0"s, "\0"s, "e"); }).code(), ExitCode::io);
}

TEST_F(FindParallelTest, TakesOnlyFiles) {
  fs::create_directory(folder_.file("a.de"));
  touch("a.en");
  Error error = error_of([&] { find("a"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_TRUE(mentions(error, "a.de: expected a file, got a folder")) << error.what();
  ASSERT_EQ(::mkfifo(folder_.file("pipe.tsv").c_str(), 0600), 0);
  error = error_of([&] { find("pipe.tsv"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
}

class PairReaderTest : public ::testing::Test {
 protected:
  ParallelFiles both(const std::string& source, const std::string& target) {
    return {put(folder_.file("source"), source), put(folder_.file("target"), target)};
  }
  ParallelFiles table(const std::string& text) { return {put(folder_.file("t.tsv"), text), ""}; }
  TempDir folder_;
};

TEST_F(PairReaderTest, LinesAreKeptAsTheyAre) {
  using Pairs = std::vector<Pair>;
  EXPECT_EQ(read_all(both("", "")), Pairs());
  EXPECT_EQ(read_all(both("\n", "\r\n")), (Pairs{{"", ""}}));
  EXPECT_EQ(read_all(both("a\n\nb", "1\r\n \r\n2\r")), (Pairs{{"a", "1"}, {"", " "}, {"b", "2"}}));
  EXPECT_EQ(read_all(both(" a\t\n\r\r\n", "\rb\0c\n\xFF\xC3"s)),
            (Pairs{{" a\t", "\rb\0c"s}, {"\r", "\xFF\xC3"}}));
  EXPECT_EQ(read_all(table("")), Pairs());
  EXPECT_EQ(read_all(table("a\tb\n\t\r\nc\r\td \te\t\r\nx\ty\r\tz\r\n \t q")),
            (Pairs{{"a", "b"}, {"", ""}, {"c\r", "d "}, {"x", "y\r"}, {" ", " q"}}));
}

TEST_F(PairReaderTest, AByteOrderMarkIsNoText) {
  using Pairs = std::vector<Pair>;
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(read_all(both(mark + "a\n" + mark + "b\n", "1\n2\n")),
            (Pairs{{"a", "1"}, {mark + "b", "2"}}));
  EXPECT_EQ(read_all(both("a\n", mark + "1\r\n")), (Pairs{{"a", "1"}}));
  EXPECT_EQ(read_all(both(mark, mark)), (Pairs{{"", ""}}));
  EXPECT_EQ(read_all(both("\xEF\xBB", "1")), (Pairs{{"\xEF\xBB", "1"}}));
  EXPECT_EQ(read_all(table(mark + "a\t" + mark + "1\n")), (Pairs{{"a", mark + "1"}}));
}

TEST_F(PairReaderTest, EqualsTheNaiveReader) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string ending = seed % 3 == 0 ? "" : seed % 3 == 1 ? ".gz" : ".zst";
    const std::string choices = seed % 2 == 0 ? "" : "ab \t\n\r\n\xC3\x00"s;
    const std::string text = random_bytes(1 + 40 * seed, seed, choices);
    const std::vector<std::string> lines = naive_lines(text);
    std::string other;
    std::string tsv;
    std::vector<Pair> expected;
    std::vector<Pair> columns;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string number = std::to_string(i);
      other += number + (i % 2 == 0 ? "\r\n" : i + 1 < lines.size() ? "\n" : "");
      expected.emplace_back(lines[i], number);
      tsv += number + "\t" + lines[i] + "\r\n";
      columns.emplace_back(number, lines[i].substr(0, lines[i].find('\t')));
    }
    ParallelFiles files{put(folder_.file("s" + ending), text), put(folder_.file("t"), other)};
    EXPECT_EQ(read_all(files), expected) << seed;
    std::swap(files.source, files.target);
    for (Pair& pair : expected) {
      std::swap(pair.first, pair.second);
    }
    EXPECT_EQ(read_all(files), expected) << seed;
    EXPECT_EQ(read_all({put(folder_.file("x.tsv" + ending), tsv), ""}), columns) << seed;
  }
}

// Lines that end on, before and after the ends of blocks of any plausible size.
TEST_F(PairReaderTest, LinesAcrossBlocks) {
  for (const size_t block : {size_t{1} << 16, size_t{1} << 17, size_t{1} << 18}) {
    for (size_t length = block - 3; length <= block + 1; ++length) {
      const std::string line(length, 'x');
      const std::vector<Pair> pairs = {{line, "1"}, {"y", "2"}, {line, "3"}};
      EXPECT_EQ(read_all(both(line + "\r\ny\r\n" + line + "\r", "1\n2\n3\n")), pairs);
      EXPECT_EQ(read_all(table(line + "\t1\r\ny\t2\n" + line + "\t3\t" + line)), pairs);
    }
  }
}

TEST_F(PairReaderTest, UnequalCountsAreAnError) {
  for (const bool source_longer : {true, false}) {
    const std::string longer = "1\n2\n3\n4\n\n6";
    const ParallelFiles files = source_longer ? both(longer, "1\n2\n") : both("1\n2\n", longer);
    PairReader reader(files);
    std::string source;
    std::string target;
    ASSERT_TRUE(reader.next(source, target) && reader.next(source, target));
    const Error error = error_of([&] { reader.next(source, target); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_TRUE(mentions(error, files.source + " has " + (source_longer ? "6" : "2") + " lines"))
        << error.what();
    EXPECT_TRUE(mentions(error, files.target + " has " + (source_longer ? "2" : "6")))
        << error.what();
  }
  EXPECT_TRUE(mentions(error_of([&] { read_all(both("", "\n")); }), "has 0 lines"));
}

TEST_F(PairReaderTest, TablesNeedTabs) {
  const ParallelFiles files = table("a\tb\nc\td\nno tab\ne\tf\n");
  const Error error = error_of([&] { read_all(files); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_TRUE(mentions(error, files.source + ":3:")) << error.what();
  EXPECT_TRUE(mentions(error_of([&] { read_all(table("a\tb\n\nc\td")); }), ":2:"));
}

TEST_F(PairReaderTest, DamageAndAbsenceAreErrors) {
  const std::string broken = folder_.file("broken.gz");
  spill(broken, gzip(std::string(100000, 'x')).substr(0, 60));
  const Error error = error_of([&] { read_all({broken, put(folder_.file("t"), "x\n")}); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_TRUE(mentions(error, broken)) << error.what();
  EXPECT_EQ(error_of([&] { PairReader({folder_.file("none"), broken}); }).code(), ExitCode::io);
  EXPECT_EQ(error_of([&] { PairReader({broken, folder_.file("none")}); }).code(), ExitCode::io);
}

TEST_F(PairReaderTest, LongLinesAreCut) {
  const std::string limit(kMaxLineBytes, 'x');
  struct Case {
    std::string line;
    bool over_long;
  };
  const std::vector<Case> cases = {
      {limit, false},         {limit + "\r", false},
      {limit + "x", true},    {limit + "\rx", true},
      {limit + "xx", true},   {limit + "x\r", true},
      {limit + "\r\r", true}, {limit + limit + limit + "\r", true},
  };
  for (const Case& one : cases) {
    for (const bool as_table : {false, true}) {
      const std::string ending = one.line + "\n";
      PairReader reader(as_table ? table("1\t" + ending + one.line + "\t2\nlast\tone")
                                 : both("1\n" + ending + "last", ending + "2\none\n"));
      std::string source;
      std::string target;
      ASSERT_TRUE(reader.next(source, target));
      EXPECT_EQ(source, "1");
      EXPECT_EQ(target.size(), kMaxLineBytes);
      EXPECT_EQ(reader.over_long(), one.over_long);
      ASSERT_TRUE(reader.next(source, target));
      EXPECT_EQ(source.size(), kMaxLineBytes);
      EXPECT_EQ(target, "2");
      // A column that ends at a tab keeps its '\r'.
      EXPECT_EQ(reader.over_long(), one.over_long || (as_table && one.line.size() > limit.size()));
      ASSERT_TRUE(reader.next(source, target));
      EXPECT_EQ(source + target, "lastone");
      EXPECT_FALSE(reader.over_long());
      EXPECT_FALSE(reader.next(source, target));
    }
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;  // a sanitizer keeps freed memory
#elif defined(__has_feature)
constexpr bool kLimitsMemory = !__has_feature(address_sanitizer);
#else
constexpr bool kLimitsMemory = true;
#endif

// Two lines of 40 MB in a process that may use 10 MB more.
TEST_F(PairReaderTest, LongLinesNeedLittleMemory) {
  const std::string block(size_t{1} << 20, 'x');
  for (const char* name : {"source", "target"}) {
    std::ofstream out(folder_.file(name), std::ios::binary);
    for (int i = 0; i < 40; ++i) {
      out << block;
    }
    out << "\nend\n";
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::ifstream statm("/proc/self/statm");
    int64_t fields[6] = {};
    for (int64_t& field : fields) {
      statm >> field;
    }
    const auto room = static_cast<rlim_t>(fields[5] * ::sysconf(_SC_PAGESIZE) + (10 << 20));
    const struct rlimit limits { room, room };
    if (kLimitsMemory) {
      ::setrlimit(RLIMIT_DATA, &limits);
    }
    bool good = false;
    try {
      PairReader reader({folder_.file("source"), folder_.file("target")});
      std::string source;
      std::string target;
      good = reader.next(source, target) && reader.over_long() && source.size() == kMaxLineBytes &&
             reader.next(source, target) && !reader.over_long() && source + target == "endend" &&
             !reader.next(source, target);
    } catch (const std::exception&) {
    }
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(PairReaderTest, HashesAreOfTheText) {
  std::string source;
  std::string target;
  const auto hashes = [&](const ParallelFiles& files) {
    PairReader reader(files);
    while (reader.next(source, target)) {
    }
    return std::make_pair(reader.source_hash(), reader.target_hash());
  };
  const std::string text = testing::made_up_text(50, 1);
  const std::string packed = put(folder_.file("s.gz"), text);
  const auto plain = hashes(both(text, text));
  EXPECT_EQ(plain.first, plain.second);
  EXPECT_EQ(hashes({packed, packed}), plain);
  EXPECT_EQ(hashes(table("a\tb")).second, 0U);
}

}  // namespace
}  // namespace rondo
