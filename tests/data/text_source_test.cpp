// Text sources: what a path refers to, and reading plain, gzip and zstd files: whole, in pieces,
// truncated and damaged.
#include "rondo/data/text_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::gzip;
using testing::made_up_text;
using testing::random_bytes;
using testing::spill;
using testing::TempDir;
using testing::zstd;

class TextSource : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& contents) {
    const std::string path = folder_.file(name);
    fs::create_directories(fs::path(path).parent_path());
    spill(path, contents);
    return path;
  }

  // Paths relative to the folder.
  std::vector<std::string> listed(const std::string& path) {
    std::vector<std::string> names;
    for (const std::string& file : list_sources(path)) {
      names.push_back(file.substr(folder_.path().size() + 1));
    }
    return names;
  }

  TempDir folder_;
};

using Names = std::vector<std::string>;

TEST_F(TextSource, FolderIsReadInOrderWithoutHiddenFiles) {
  put("b.txt", "");
  put("a/z.gz", "");
  put("a/b/c", "");
  put("a.b", "");
  put(".hidden", "");
  put(".git/config", "");
  put("a/.x", "");
  EXPECT_EQ(listed(folder_.path()), (Names{"a.b", "a/b/c", "a/z.gz", "b.txt"}));
  EXPECT_EQ(listed(folder_.path() + "/a"), (Names{"a/b/c", "a/z.gz"}));
  EXPECT_EQ(list_sources(folder_.path() + "/a/").front(), folder_.path() + "/a/b/c");
}

TEST_F(TextSource, FolderFollowsLinksButNotInCircles) {
  put("real/one", "1");
  fs::create_directory(folder_.file("linked"));
  fs::create_symlink(folder_.file("real"), folder_.file("linked/folder"));
  fs::create_symlink(folder_.file("real/one"), folder_.file("linked/file"));
  fs::create_symlink(folder_.file("linked"), folder_.file("linked/circle"));
  fs::create_symlink(folder_.file("nowhere"), folder_.file("linked/broken"));
  ASSERT_EQ(::mkfifo(folder_.file("linked/pipe").c_str(), 0600), 0);
  EXPECT_EQ(listed(folder_.file("linked")), (Names{"linked/file", "linked/folder/one"}));
}

TEST_F(TextSource, SingleFileAndEmptyFolder) {
  put("one.txt", "x");
  fs::create_directory(folder_.file("empty"));
  EXPECT_EQ(listed(folder_.file("one.txt")), Names{"one.txt"});
  EXPECT_TRUE(list_sources(folder_.file("empty")).empty());
}

TEST_F(TextSource, ListKeepsItsOrder) {
  put("lists/b", "");
  put("lists/a", "");
  put("lists/sub/2", "");
  put("lists/sub/1", "");
  const std::string outside = put("outside", "");
  put("lists/all.list", "b\r\na\n\nsub\nb\n" + outside);
  EXPECT_EQ(listed(folder_.file("lists/all.list")),
            (Names{"lists/b", "lists/a", "lists/sub/1", "lists/sub/2", "lists/b", "outside"}));
}

TEST_F(TextSource, SaysWhatIsMissing) {
  EXPECT_EQ(error_of([&] { list_sources(folder_.file("none")); }).code(), ExitCode::io);
  put("x.list", "there\nnot there\n");
  put("there", "");
  const Error error = error_of([&] { list_sources(folder_.file("x.list")); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("x.list:2:"), std::string::npos) << error.what();
  EXPECT_NE(error.message().find("not there"), std::string::npos) << error.what();
  EXPECT_EQ(error_of([] { list_sources("/dev/null"); }).code(), ExitCode::bad_input);
}

TEST_F(TextSource, ReadsEveryKindInAnyPieces) {
  const std::string text = made_up_text(2000, 1) + random_bytes(300'000, 2);
  const Names paths = {put("plain.txt", text), put("text.gz", gzip(text)),
                       put("text.zst", zstd(text))};
  for (const std::string& path : paths) {
    EXPECT_TRUE(read_source(path) == text) << path;
    for (const size_t piece : {size_t{1021}, size_t{1} << 20}) {
      TextReader reader(path);
      std::string got;
      std::vector<char> buffer(piece);
      while (const size_t count = reader.read(buffer.data(), buffer.size())) {
        got.append(buffer.data(), count);
      }
      EXPECT_EQ(reader.read(buffer.data(), buffer.size()), 0U);
      EXPECT_EQ(reader.consumed(), static_cast<int64_t>(fs::file_size(path)));
      EXPECT_TRUE(got == text) << path;
    }
  }
}

TEST_F(TextSource, ReadingShowsProgress) {
  const std::string path = put("big.gz", gzip(random_bytes(400'000, 4)));
  std::string output;
  read_source(path, kMaxSourceBytes, testing::slow_loading(output));
  EXPECT_EQ(output.find("reading big.gz"), 1U) << output;  // after a carriage return
  EXPECT_NE(output.find(" left"), std::string::npos) << output;
  EXPECT_EQ(output.substr(output.size() - 4), "\r\x1b[K") << output;  // erased
}

TEST_F(TextSource, JoinsMembersAndFrames) {
  const std::string a = made_up_text(50, 1);
  const std::string b = random_bytes(200'000, 2);
  EXPECT_TRUE(read_source(put("many.gz", gzip(a) + gzip("") + gzip(b))) == a + b);
  EXPECT_TRUE(read_source(put("many.zst", zstd(a) + zstd("") + zstd(b))) == a + b);
  EXPECT_EQ(read_source(put("nothing.gz", gzip(""))), "");
  EXPECT_EQ(read_source(put("nothing.zst", zstd(""))), "");
  EXPECT_EQ(read_source(put("padded.gz", gzip(a) + std::string(1000, '\0'))), a);
}

TEST_F(TextSource, EveryTruncationIsRefused) {
  const std::string text = made_up_text(40, 3);
  for (const std::string name : {"cut.gz", "cut.zst"}) {
    const std::string whole = name == "cut.gz" ? gzip(text) : zstd(text);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string path = put(name, whole.substr(0, size));
      const Error error = error_of([&] { read_source(path); });
      ASSERT_EQ(error.code(), ExitCode::bad_input) << name << " " << size;
      ASSERT_NE(error.message().find(path), std::string::npos) << error.what();
    }
  }
}

TEST_F(TextSource, DamageIsRefused) {
  const std::string text = made_up_text(100, 3);
  CounterRandom random(1, "flips");
  for (const std::string name : {"bad.gz", "bad.zst"}) {
    const std::string whole = name == "bad.gz" ? gzip(text) : zstd(text);
    for (int i = 0; i < 200; ++i) {
      std::string flipped = whole;
      flipped[random.below(flipped.size())] ^= static_cast<char>(1 << random.below(8));
      const std::string path = put(name, flipped);
      try {
        // gzip's header has fields that do not affect the text (time, system).
        EXPECT_TRUE(read_source(path) == text) << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
      }
    }
  }
  for (const std::string& path :
       {put("text.gz", "plain text"), put("text.zst", "plain text"),
        put("tail.gz", gzip(text) + "tail"), put("tail.zst", zstd(text) + "tail"),
        put("padded.gz", gzip(text) + std::string(9, '\0') + gzip(text))}) {
    EXPECT_EQ(error_of([&] { read_source(path); }).code(), ExitCode::bad_input) << path;
  }
}

// A frame that would make the decoder allocate 256 MiB.
TEST_F(TextSource, LongWindowsAreRefused) {
  const std::string text = made_up_text(10, 1);
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(::ZSTD_createCCtx(),
                                                                   &::ZSTD_freeCCtx);
  const auto compress = [&](int window_log) {
    ::ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
    ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, window_log);
    std::string out(10'000, '\0');
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    ZSTD_outBuffer buffer{out.data(), out.size(), 0};
    // In two calls, so that the frame cannot state its size and the window stays large.
    EXPECT_EQ(::ZSTD_compressStream2(context.get(), &buffer, &in, ZSTD_e_flush), 0U);
    EXPECT_EQ(::ZSTD_compressStream2(context.get(), &buffer, &in, ZSTD_e_end), 0U);
    return out.substr(0, buffer.pos);
  };
  EXPECT_EQ(read_source(put("fits.zst", compress(kMaxZstdWindowLog))), text);
  const std::string path = put("long.zst", compress(kMaxZstdWindowLog + 1));
  const Error error = error_of([&] { read_source(path); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("128 MiB"), std::string::npos) << error.what();
}

TEST_F(TextSource, BoundsWhatItHolds) {
  const std::string path = put("bomb.gz", gzip(std::string(5'000'000, 'x')));
  EXPECT_LT(fs::file_size(path), 10'000U);
  EXPECT_EQ(read_source(path, 5'000'000).size(), 5'000'000U);
  EXPECT_EQ(error_of([&] { read_source(path, 4'999'999); }).code(), ExitCode::bad_input);
}

// Small files that expand without limit are rejected after 32 MiB; merely repetitive or small ones
// are read.
TEST_F(TextSource, BombsAreRefused) {
  constexpr size_t kMiB = size_t{1} << 20;
  const std::string spaces(40 * kMiB, ' ');
  for (const std::string& path : {put("a.gz", gzip(spaces)), put("b.zst", zstd(spaces))}) {
    const Error error = error_of([&] { read_source(path); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_NE(error.message().find("expands to more than 200 times its size"), std::string::npos)
        << error.what();
    EXPECT_NE(error.advice().find("decompress it"), std::string::npos) << error.what();
  }
  const std::string short_of_it = spaces.substr(0, 32 * kMiB);
  EXPECT_EQ(read_source(put("c.gz", gzip(short_of_it))), short_of_it);
  // Each 4 KiB block of text occurs eight times: compressed, it is about 25 times smaller.
  std::string text;
  for (uint64_t i = 0; text.size() < 40 * kMiB; ++i) {
    const std::string block = random_bytes(4096, i, "etaoin shrdlu");
    for (int times = 0; times < 8; ++times) text += block;
  }
  EXPECT_EQ(read_source(put("d.zst", zstd(text))), text);
}

TEST_F(TextSource, SystemErrorsAreIo) {
  EXPECT_EQ(error_of([&] { TextReader reader(folder_.file("none")); }).code(), ExitCode::io);
  EXPECT_EQ(error_of([&] { read_source(folder_.path()); }).code(), ExitCode::io);
}

}  // namespace
}  // namespace rondo
