// The documents cache: exact for any bytes, rebuilt exactly when necessary, safe to build
// concurrently, bounded in memory.
#include "rondo/data/documents.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "rondo/base/log.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::gzip;
using testing::made_up_text;
using testing::nasty_texts;
using testing::slurp;
using testing::small_model;
using testing::spill;
using testing::TempDir;
using testing::zstd;

class DocumentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    init_log(-2);
    source_ = folder_.file("source");
    fs::create_directory(source_);
  }
  void TearDown() override { init_log(0); }

  std::string put(const std::string& name, const std::string& contents) {
    const std::string path = source_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    spill(path, contents);
    return path;
  }

  Documents open(const Tokenizer& tokenizer) {
    return Documents::open({source_, folder_.file("cache")}, tokenizer);
  }
  Documents open() { return open(*bytes_); }

  // Whether open() made a new cache file.
  bool opening_rebuilds() {
    const std::string path = open_path_;
    const auto before = fs::exists(path) ? fs::last_write_time(path) : fs::file_time_type::min();
    const Documents documents = open();
    open_path_ = documents.path();
    return path.empty() || fs::last_write_time(open_path_) != before;
  }

  static std::string text_of(const Documents& documents, int64_t i, const Tokenizer& tokenizer) {
    std::vector<int64_t> wide(static_cast<size_t>(documents.document(i).tokens));
    documents.read(i, 0, documents.document(i).tokens, wide.data());
    return tokenizer.decode({wide.begin(), wide.end()});
  }

  // Old enough not to be affected by the clock's resolution.
  static void make_old(const std::string& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }

  TempDir folder_;
  std::string source_;
  std::string open_path_;
  std::shared_ptr<const Tokenizer> bytes_ = make_tokenizer("bytes");
};

TEST_F(DocumentsTest, KeepsEveryByte) {
  std::vector<std::string> texts;
  for (const std::string& text : nasty_texts()) {
    const std::string number = std::to_string(1000 + texts.size());
    const size_t kind = texts.size() % 3;
    put(number + (kind == 0   ? ".txt"
                  : kind == 1 ? ".gz"
                              : ".zst"),
        kind == 0   ? text
        : kind == 1 ? gzip(text)
                    : zstd(text));
    texts.push_back(text);
  }
  ASSERT_EQ(texts[0], "");  // skipped
  for (const auto& tokenizer : {bytes_, small_model("bpe"), small_model("unigram")}) {
    const Documents documents = open(*tokenizer);
    ASSERT_EQ(documents.count(), static_cast<int64_t>(texts.size()) - 1);
    int64_t total = 0;
    for (size_t i = 1; i < texts.size(); ++i) {
      const auto at = static_cast<int64_t>(i) - 1;
      EXPECT_EQ(text_of(documents, at, *tokenizer), texts[i]) << i;
      EXPECT_EQ(documents.document(at).bytes, static_cast<int64_t>(texts[i].size()));
      EXPECT_EQ(documents.document(at).name.substr(0, 4), std::to_string(1000 + i));
      total += documents.document(at).tokens;
    }
    EXPECT_EQ(documents.tokens(), total);
  }
}

TEST_F(DocumentsTest, CountsBytesAndWords) {
  put("a/1.txt", "  one two\tthree\r\nfour\v\ffive  ");
  put("a/2.txt", "\xC2\xA0 \n\n");  // a no-break space is not ASCII whitespace
  put("b.txt", "x");
  put("empty", "");
  const Documents documents = open();
  ASSERT_EQ(documents.count(), 3);
  EXPECT_EQ(documents.document(0).name, "a/1.txt");
  EXPECT_EQ(documents.document(0).words, 5);
  EXPECT_EQ(documents.document(1).words, 1);
  EXPECT_EQ(documents.document(2).name, "b.txt");
  EXPECT_EQ(documents.total_words(), 7);
  EXPECT_EQ(documents.total_bytes(), documents.tokens());
}

TEST_F(DocumentsTest, ShortenedKeepTheBeginningOfEach) {
  put("a", "0123456789");
  put("b", "abc");
  put("c", "ABCDEFGH");
  Documents documents = open();
  const std::string whole = documents.checksum();
  documents.shorten(100);  // all of it
  EXPECT_EQ(documents.tokens(), 21);
  EXPECT_EQ(documents.checksum(), whole);
  documents.shorten(14);  // 5 + 3 + 5 = 13; 6 each would be 15
  EXPECT_EQ(documents.tokens(), 13);
  EXPECT_EQ(documents.total_bytes(), 13);
  EXPECT_EQ(text_of(documents, 0, *bytes_), "01234");
  EXPECT_EQ(text_of(documents, 1, *bytes_), "abc");
  EXPECT_EQ(text_of(documents, 2, *bytes_), "ABCDE");
  EXPECT_NE(documents.checksum(), whole);
}

TEST_F(DocumentsTest, ReadsAnyPart) {
  const std::string text = made_up_text(20, 1);
  put("before", "zzz");
  put("text", text);
  const Documents documents = open();
  CounterRandom random(1, "parts");
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<int64_t>(random.below(text.size() + 1));
    const auto count =
        static_cast<int64_t>(random.below(text.size() + 1 - static_cast<size_t>(first)));
    std::vector<int64_t> part(static_cast<size_t>(count) + 1, -7);
    documents.read(1, first, count, part.data());
    for (int64_t k = 0; k < count; ++k) {
      ASSERT_EQ(part[static_cast<size_t>(k)],
                static_cast<uint8_t>(text[static_cast<size_t>(first + k)]));
    }
    ASSERT_EQ(part.back(), -7);
  }
  EXPECT_THROW(documents.read(1, 0, documents.document(1).tokens + 1, nullptr), Error);
  EXPECT_THROW(documents.document(2), Error);
}

TEST_F(DocumentsTest, IsBuiltOnceAndMovesFreely) {
  put("a", "first");
  make_old(source_ + "/a");
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_FALSE(opening_rebuilds());
  Documents one = open();
  Documents two = std::move(one);
  EXPECT_EQ(text_of(two, 0, *bytes_), "first");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("cache")), {}), 1);
  // The same cache, however the path of the folder is written.
  const Documents other =
      Documents::open({source_ + "/../source/", folder_.file("cache")}, *bytes_);
  EXPECT_EQ(other.path(), two.path());
}

TEST_F(DocumentsTest, FollowsChangesOfItsSources) {
  const std::string path = put("a", "first");
  make_old(path);
  EXPECT_TRUE(opening_rebuilds());
  put("a", "other");  // the same size
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_EQ(text_of(open(), 0, *bytes_), "other");
  // Changed again at once, with the old time restored: detected by content, because the change is
  // recent.
  const auto time = fs::last_write_time(path);
  put("a", "third");
  fs::last_write_time(path, time);
  EXPECT_TRUE(opening_rebuilds());
  put("b", "new");
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_EQ(open().count(), 2);
  fs::rename(source_ + "/b", source_ + "/c");
  EXPECT_TRUE(opening_rebuilds());
  fs::remove(source_ + "/c");
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_EQ(open().count(), 1);
  make_old(path);  // another time, the same contents
  EXPECT_FALSE(opening_rebuilds());
}

TEST_F(DocumentsTest, EveryDamageIsFound) {
  put("a", made_up_text(3, 1));
  put("b", "b");
  const std::string path = open().path();
  const std::string checksum = open().checksum();
  const std::string whole = slurp(path);
  CounterRandom random(1, "damage");
  for (int i = 0; i < 90; ++i) {
    spill(path, testing::damaged(whole, i, random));
    const Documents documents = open();
    ASSERT_EQ(documents.checksum(), checksum);
    ASSERT_EQ(text_of(documents, 0, *bytes_), made_up_text(3, 1));
    ASSERT_EQ(documents.document(1).name, "b");
  }
}

TEST_F(DocumentsTest, TokenizersHaveTheirOwnCaches) {
  put("a", made_up_text(20, 1));
  const auto model = small_model("bpe");
  const Documents bytes = open();
  const Documents pieces = open(*model);
  EXPECT_NE(bytes.path(), pieces.path());
  EXPECT_NE(bytes.checksum(), pieces.checksum());
  EXPECT_LT(pieces.tokens(), bytes.tokens());
  EXPECT_EQ(pieces.total_bytes(), bytes.total_bytes());
  EXPECT_EQ(pieces.total_words(), bytes.total_words());
  // A cache file copied over another's is rejected.
  fs::copy_file(bytes.path(), pieces.path(), fs::copy_options::overwrite_existing);
  EXPECT_EQ(open(*model).checksum(), pieces.checksum());
}

TEST_F(DocumentsTest, ChecksumIsOfTheTextAlone) {
  put("a", "same text");
  const std::string checksum = open().checksum();
  fs::rename(source_, folder_.file("elsewhere"));
  fs::rename(folder_.file("elsewhere/a"), folder_.file("elsewhere/z"));
  const auto elsewhere = [&] {
    return Documents::open({folder_.file("elsewhere"), folder_.file("cache")}, *bytes_);
  };
  EXPECT_EQ(elsewhere().checksum(), checksum);
  spill(folder_.file("elsewhere/z"), "same texu");
  EXPECT_NE(elsewhere().checksum(), checksum);
}

TEST_F(DocumentsTest, NothingToReadIsAnError) {
  Error error = error_of([&] { open(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_FALSE(error.advice().empty());
  put("empty", "");
  put("empty.gz", gzip(""));
  error = error_of([&] { open(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("all 2 files are empty"), std::string::npos) << error.what();
  put("broken.gz", gzip(made_up_text(10, 1)).substr(0, 40));
  error = error_of([&] { open(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("broken.gz"), std::string::npos) << error.what();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("cache")), {}), 0) << "leftovers";
  source_ = folder_.file("none");
  EXPECT_EQ(error_of([&] { open(); }).code(), ExitCode::io);
}

TEST_F(DocumentsTest, ProcessesMayBuildAtOnce) {
  for (int i = 0; i < 20; ++i) {
    put(std::to_string(i), made_up_text(50, static_cast<uint64_t>(i)));
  }
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool good = false;
      try {
        good = open().count() == 20 && text_of(open(), 0, *bytes_) == made_up_text(50, 0);
      } catch (const std::exception&) {
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("cache")), {}), 1);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Limits this process to so much more memory than it uses now.
void limit_memory(int64_t more) {
  std::ifstream statm("/proc/self/statm");
  int64_t fields[6] = {};
  for (int64_t& field : fields) {
    statm >> field;
  }
  const auto limit = static_cast<rlim_t>(fields[5] * ::sysconf(_SC_PAGESIZE) + more);
  const struct rlimit limits { limit, limit };
  ::setrlimit(RLIMIT_DATA, &limits);
}

// A single line without end, in a process whose memory cannot hold the text or its tokens.
TEST_F(DocumentsTest, LongLinesNeedLittleMemory) {
  constexpr int64_t kBytes = int64_t{20} << 20;
  {
    std::ofstream out(source_ + "/line", std::ios::binary);
    const std::string block((1 << 20) - 1, 'x');
    for (int64_t i = 0; i < 20; ++i) {
      out << block << '\x80';  // no UTF-8 boundary there
    }
  }
  if (!kSanitized) {  // a sanitizer keeps freed memory
    const pid_t pid = ::fork();
    if (pid == 0) {
      limit_memory(int64_t{16} << 20);
      try {
        ::_exit(open().tokens() == kBytes ? 0 : 1);
      } catch (const std::bad_alloc&) {
        ::_exit(2);
      }
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const Documents documents = open();
  EXPECT_EQ(documents.tokens(), kBytes);
  EXPECT_EQ(documents.document(0).words, 1);
  int64_t last = 0;
  documents.read(0, kBytes - 1, 1, &last);
  EXPECT_EQ(last, 0x80);
}

}  // namespace
}  // namespace rondo
