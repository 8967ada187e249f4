// Building a documents cache: each file is streamed through the tokenizer, tokens are collected in
// an unnamed file, and the cache is written from there. Memory grows only by a few numbers per
// document.
#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/documents_cache.h"
#include "rondo/data/text_source.h"
#include "rondo/data/token_spool.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// Counts runs of non-whitespace bytes in a text that arrives in blocks.
class WordCounter {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      const bool space = c == ' ' || (c >= '\t' && c <= '\r');
      count_ += space || in_word_ ? 0 : 1;
      in_word_ = !space;
    }
  }
  int64_t count() const { return count_; }
  void restart() {
    count_ = 0;
    in_word_ = false;
  }

 private:
  bool in_word_ = false;
  int64_t count_ = 0;
};

class DocumentsBuilder {
 public:
  DocumentsBuilder(const std::string& path, const DocumentsOptions& options,
                   const Tokenizer& tokenizer)
      : path_(path),
        source_(parse_part(options.source).path),
        divide_(options.divide > 0 ? options.divide : INT64_MAX),
        tokenizer_(tokenizer),
        spool_(std::filesystem::path(path).parent_path().string(), token_type_for(tokenizer)),
        built_(nanoseconds_now()) {}

  void read(const std::vector<TextPiece>& pieces) {
    int64_t total = 0;
    for (const TextPiece& piece : pieces) {
      stamps_.push_back(stamp_of(piece.path));
      total += stamps_.back().size;
    }
    Progress progress("tokenizing", total);
    int64_t before = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      read_piece(pieces[i], stamps_[i], before, progress);
      before += stamps_[i].size;
      progress.update(before);
    }
    progress.finish();
  }

  void write() {
    if (bytes_.empty()) {
      throw Error(
          ExitCode::bad_input,
          fmt::format("{}: no text: {}", printable(source_, PATH_MAX),
                      stamps_.empty() ? std::string("no files found")
                                      : fmt::format("all {} files are empty", stamps_.size())),
          "give a file, a folder with text files, or a .list of them; names that start "
          "with a dot are skipped");
    }
    const std::string files = manifest_text(stamps_);
    CacheArrays arrays;
    arrays.token_type = token_type_for(tokenizer_);
    arrays.tokens = spool_.map();
    arrays.token_count = spool_.count();
    arrays.starts = starts_.data();
    arrays.bytes = bytes_.data();
    arrays.words = words_.data();
    arrays.count = static_cast<int64_t>(bytes_.size());
    arrays.names = names_;
    arrays.files = files;
    const std::string text_sum = text_checksum(arrays, tokenizer_.fingerprint());
    const auto characters = [](std::string_view text) {
      return std::vector<int64_t>{static_cast<int64_t>(text.size())};
    };
    write_safetensors(path_,
                      {{"starts", DType::i64, {arrays.count + 1}, arrays.starts},
                       {"bytes", DType::i64, {arrays.count}, arrays.bytes},
                       {"words", DType::i64, {arrays.count}, arrays.words},
                       {"tokens", arrays.token_type, {arrays.token_count}, arrays.tokens},
                       {"names", DType::u8, characters(arrays.names), arrays.names.data()},
                       {"files", DType::u8, characters(arrays.files), arrays.files.data()}},
                      {{kCacheFormatKey, kCacheFormat},
                       {kCacheTokenizerKey, tokenizer_.fingerprint()},
                       {kCacheBuiltKey, built_},
                       {kCacheTextKey, text_sum},
                       {kCacheWholeKey, whole_checksum(arrays, text_sum, built_)}});
    report();
  }

 private:
  void read_piece(const TextPiece& piece, SourceStamp& stamp, int64_t before, Progress& progress) {
    TextReader reader(piece);
    TextHash hash;
    piece_bytes_ = 0;
    const size_t documents = bytes_.size();
    read_stretches(reader, [&](std::string_view text) {
      hash.add(text.data(), text.size());
      while (!text.empty()) {
        const size_t length = document_cut(text);
        words_seen_.add(text.substr(0, length));
        piece_bytes_ += static_cast<int64_t>(length);
        spool_.add(tokenizer_.encode(text.substr(0, length)));
        text.remove_prefix(length);
        if (piece_bytes_ >= divide_) end_document(stamp.path);
      }
      progress.update(before + std::min(reader.consumed(), stamp.size));
    });
    stamp.content = hash.value();
    end_document(stamp.path);
    if (bytes_.size() == documents) ++empty_;
  }

  // How much of `text`, which consists of complete stretches, still belongs to the document.
  size_t document_cut(std::string_view text) const {
    const int64_t room = divide_ - piece_bytes_;
    if (room >= static_cast<int64_t>(text.size())) return text.size();
    size_t cut = 0;
    while (cut < static_cast<size_t>(room)) cut += encode_cut(text.substr(cut), true);
    return cut;
  }

  void end_document(const std::string& path) {
    const int64_t bytes = std::exchange(piece_bytes_, 0);
    const int64_t words = words_seen_.count();
    words_seen_.restart();
    if (spool_.count() == starts_.back()) return;
    starts_.push_back(spool_.count());
    bytes_.push_back(bytes);
    words_.push_back(words);
    names_ += name_of(path);
    names_.push_back('\0');
  }

  // The path relative to the source folder, if it is in there.
  std::string name_of(const std::string& path) const {
    std::string prefix = source_;
    if (prefix.empty() || prefix.back() != '/') {
      prefix.push_back('/');
    }
    return path.compare(0, prefix.size(), prefix) == 0 ? path.substr(prefix.size()) : path;
  }

  void report() const {
    int64_t text_bytes = 0;
    for (const int64_t bytes : bytes_) {
      text_bytes += bytes;
    }
    log_info("documents: {} of {}, {} tokens, {} of text{}",
             counted(static_cast<int64_t>(bytes_.size()), "document"), printable(source_),
             si_count(static_cast<double>(spool_.count())), human_bytes(text_bytes),
             empty_ > 0 ? fmt::format("; {} skipped", counted(empty_, "empty file")) : "");
  }

  std::string path_;
  std::string source_;
  int64_t divide_;
  const Tokenizer& tokenizer_;
  TokenSpool spool_;
  std::string built_;
  std::vector<SourceStamp> stamps_;
  int64_t piece_bytes_ = 0;  // of the current document
  WordCounter words_seen_;
  std::vector<int64_t> starts_ = {0};
  std::vector<int64_t> bytes_;
  std::vector<int64_t> words_;
  std::string names_;
  int64_t empty_ = 0;
};

}  // namespace

void build_documents(const std::string& path, const DocumentsOptions& options,
                     const std::vector<TextPiece>& pieces, const Tokenizer& tokenizer) {
  DocumentsBuilder builder(path, options, tokenizer);
  builder.read(pieces);
  builder.write();
}

}  // namespace rondo
