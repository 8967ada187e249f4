// Parts of texts: cut between lines, no gaps, no overlaps, compressed or not.
#include <algorithm>

#include "rondo/data/documents.h"
#include "rondo/data/parallel_text.h"
#include "rondo/data/text_check.h"
#include "rondo/data/text_source.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::made_up_text;
using testing::slurp;
using testing::spill;
using testing::TempDir;

std::string read_all(const TextPiece& piece) {
  TextReader reader(piece);
  std::string text;
  char block[97];  // odd, so that cuts fall anywhere in it
  while (const size_t got = reader.read(block, sizeof(block))) text.append(block, got);
  return text;
}

std::string read_spec(const std::string& spec) {
  std::string text;
  for (const TextPiece& piece : list_text(spec)) text += read_all(piece);
  return text;
}

void compress(const std::string& path, const std::string& text) {
  gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(out);
}

TEST(TextPiece, PartsTileAtLines) {
  const TempDir folder;
  const std::string text = made_up_text(200, 1);
  spill(folder.file("a.txt"), text);
  compress(folder.file("a.txt.gz"), text);
  for (const char* name : {"a.txt", "a.txt.gz"}) {
    for (const char* cut : {"-5%", "50%", "1B", "-1B", "100B", "-777B", "99.9%"}) {
      const std::string path = folder.file(name);
      std::string front;
      std::string back;
      try {
        front = read_spec(path + "#:" + cut);
      } catch (const Error&) {  // nothing is left
      }
      try {
        back = read_spec(path + "#" + cut + ":");
      } catch (const Error&) {
      }
      EXPECT_EQ(front + back, text) << name << " " << cut;
      if (!front.empty() && !back.empty()) {
        EXPECT_EQ(front.back(), '\n') << name << " " << cut;
      }
    }
  }
}

// A text without newlines is cut between characters.
TEST(TextPiece, LongLinesAreCutBetweenCharacters) {
  const TempDir folder;
  std::string text;
  while (text.size() < 3 * kMaxCutLine) text += "日本語";
  spill(folder.file("a.txt"), text);
  for (const char* cut : {"100000B", "100001B", "100002B", "50%"}) {
    const std::string front = read_spec(folder.file("a.txt#:") + cut);
    const std::string back = read_spec(folder.file("a.txt#") + cut + ":");
    EXPECT_EQ(front + back, text) << cut;
    EXPECT_EQ(front.size() % 3, 0U) << cut;
    EXPECT_LT(front.size(), 100010U);
  }
}

TEST(TextPiece, ManyPiecesTile) {
  const TempDir folder;
  const std::string text = made_up_text(60, 3);
  spill(folder.file("a.txt"), text);
  const auto size = static_cast<int64_t>(text.size());
  for (const int64_t step : {int64_t{1}, int64_t{7}, int64_t{50}, size}) {
    std::string joined;
    for (int64_t at = 0; at < size; at += step) {
      joined += read_all({folder.file("a.txt"), at, at + step >= size ? INT64_MAX : at + step});
    }
    EXPECT_EQ(joined, text) << step;
  }
}

TEST(TextPiece, NumbersCountDocumentsAndSharesSpanThem) {
  const TempDir folder;
  std::filesystem::create_directories(folder.file("books"));
  for (const char* name : {"a", "b", "c", "d"}) {
    spill(folder.file(std::string("books/") + name), std::string(100, name[0]) + "\n");
  }
  EXPECT_EQ(list_text(folder.file("books#:-1")).size(), 3U);
  EXPECT_EQ(read_spec(folder.file("books#-1:")), std::string(100, 'd') + "\n");
  EXPECT_EQ(list_text(folder.file("books#:75%")).size(), 3U);
  EXPECT_EQ(read_spec(folder.file("books#:60%")) + read_spec(folder.file("books#60%:")),
            read_spec(folder.file("books")));
  EXPECT_EQ(error_of([&] { list_text(folder.file("books#4:")); }).code(), ExitCode::bad_input);
  EXPECT_EQ(error_of([&] { list_text(folder.file("books#:1/class")); }).code(),
            ExitCode::bad_input);
}

TEST(TextPiece, DocumentsOfPartsAndDividedOnes) {
  const TempDir folder;
  const std::string text = made_up_text(400, 5);
  spill(folder.file("a.txt"), text);
  const auto bytes = make_tokenizer("bytes");
  const std::string cache = folder.file("cache");
  const Documents whole = Documents::open({folder.file("a.txt"), cache}, *bytes);
  const Documents front = Documents::open({folder.file("a.txt#:-5%"), cache}, *bytes);
  const Documents back = Documents::open({folder.file("a.txt#-5%:"), cache}, *bytes);
  EXPECT_EQ(front.tokens() + back.tokens(), whole.tokens());
  EXPECT_NE(front.path(), back.path());
  EXPECT_EQ(front.total_words() + back.total_words(), whole.total_words());
  const Documents parts = Documents::open({folder.file("a.txt"), cache, 500}, *bytes);
  EXPECT_GT(parts.count(), static_cast<int64_t>(text.size()) / 700);
  EXPECT_EQ(parts.tokens(), whole.tokens());
  EXPECT_EQ(parts.total_bytes(), whole.total_bytes());
  std::string joined;
  for (int64_t i = 0; i < parts.count(); ++i) {
    std::vector<int64_t> tokens(static_cast<size_t>(parts.document(i).tokens));
    parts.read(i, 0, parts.document(i).tokens, tokens.data());
    if (i + 1 < parts.count()) {
      EXPECT_GE(parts.document(i).bytes, 500);
    }
    for (const int64_t token : tokens) joined.push_back(static_cast<char>(token));
  }
  EXPECT_EQ(joined, text);
}

// A percentage shifts when the text grows, even if the files of the part did not change.
TEST(TextPiece, GrownTextIsReadAnew) {
  const TempDir folder;
  spill(folder.file("a.txt"), made_up_text(100, 1));
  const auto bytes = make_tokenizer("bytes");
  const auto open = [&] {
    return Documents::open({folder.file("a.txt#:50%"), folder.file("cache")}, *bytes).tokens();
  };
  const int64_t before = open();
  EXPECT_EQ(open(), before);
  spill(folder.file("a.txt"), made_up_text(200, 1));
  EXPECT_GT(open(), before + before / 2);
}

TEST(TextPiece, PartsOfSentencePairs) {
  const TempDir folder;
  std::string source;
  std::string target;
  for (int i = 0; i < 50; ++i) {
    source += "s" + std::to_string(i) + "\n";
    target += "t" + std::to_string(i) + "\n";
  }
  spill(folder.file("c.de"), source);
  spill(folder.file("c.en"), target);
  const auto lines = [&](const std::string& part) {
    PairReader reader(find_parallel(folder.file("c") + part, "de", "en"));
    std::vector<std::string> all;
    std::string a;
    std::string b;
    while (reader.next(a, b)) {
      EXPECT_EQ("t" + a.substr(1), b);
      all.push_back(a);
    }
    EXPECT_EQ(reader.line(), static_cast<int64_t>(all.size()));
    return all;
  };
  EXPECT_EQ(lines("").size(), 50U);
  EXPECT_EQ(lines("#:-10%").size(), 45U);
  EXPECT_EQ(lines("#-10%:").front(), "s45");
  EXPECT_EQ(lines("#3:5"), (std::vector<std::string>{"s3", "s4"}));
  EXPECT_EQ(error_of([&] { lines("#50:"); }).code(), ExitCode::bad_input);
  EXPECT_EQ(error_of([&] { lines("#:10B"); }).code(), ExitCode::bad_input);
  const auto bytes = make_tokenizer("bytes");
  const ParallelOptions front = {find_parallel(folder.file("c#:40"), "de", "en"),
                                 folder.file("cache")};
  const ParallelOptions back = {find_parallel(folder.file("c#40:"), "de", "en"),
                                folder.file("cache")};
  EXPECT_EQ(ParallelCorpus::open(front, *bytes, *bytes).count(), 40);
  EXPECT_EQ(ParallelCorpus::open(back, *bytes, *bytes).count(), 10);
}

TEST(TextCheck, FindsWhatIsWrong) {
  const TempDir folder;
  std::filesystem::create_directories(folder.file("t"));
  spill(folder.file("t/a.txt"), "one\ntwo\n\ntwo\n");
  spill(folder.file("t/b.txt"), "one\ntwo\n\ntwo\n");
  spill(folder.file("t/c.txt"), "fine\nbad \xFF\xFE line\n");
  spill(folder.file("t/d.txt"), "");
  spill(folder.file("t/e.txt"), "\x89PNG\r\n\x1A\n....");
  const TextCheck check = check_text(folder.file("t"));
  EXPECT_EQ(check.files, 5);
  EXPECT_EQ(check.empty_files, 1);
  EXPECT_EQ(check.lines, 10);
  EXPECT_EQ(check.blank_lines, 2);
  EXPECT_EQ(check.duplicate_lines, 4);
  EXPECT_EQ(check.words, 3 + 3 + 4);
  ASSERT_EQ(check.duplicates.size(), 1U);
  EXPECT_EQ(check.duplicates[0].file, folder.file("t/b.txt"));
  ASSERT_EQ(check.not_utf8.size(), 1U);
  EXPECT_EQ(check.not_utf8[0].line, 2);
  ASSERT_EQ(check.binary.size(), 1U);
  EXPECT_EQ(check.binary[0].what, "a PNG image");
}

TEST(TextCheck, Pairs) {
  const TempDir folder;
  spill(folder.file("c.de"),
        "ein Satz\n\ngleich\nein Satz\nkurz\nschl\xFF"
        "echt\n");
  spill(folder.file("c.en"),
        "a sentence\nx\ngleich\na sentence\na translation that is far too long for it\nbad\n");
  const PairCheck check = check_pairs(find_parallel(folder.file("c"), "de", "en"));
  EXPECT_EQ(check.pairs, 6);
  EXPECT_EQ(check.empty, 1);
  EXPECT_EQ(check.identical, 1);
  EXPECT_EQ(check.duplicates, 1);
  EXPECT_EQ(check.unequal, 1);
  EXPECT_EQ(check.not_utf8_lines, 1);
  EXPECT_EQ(check.not_utf8[0].line, 6);
}

}  // namespace
}  // namespace rondo
