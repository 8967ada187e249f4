// SentencePiece models as lossless tokenizers.
#include <fmt/core.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/exported_model.h"
#include "rondo/data/piece_library.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{64} << 20;  // models with 256k pieces have 5 MB

// Changes when the same model would produce other ids: part of the fingerprint.
constexpr uint64_t kEncodingVersion = 1;

// A serialized ModelProto { normalizer_spec { name: "identity", precompiled_charsmap: "",
// add_dummy_prefix: false, remove_extra_whitespaces: false, escape_whitespaces: true } }. In
// protobuf's wire format a message that follows another is merged into it and its values win, so
// appending these bytes to any model disables its normalization.
constexpr std::string_view kIdentityNormalizer(
    "\x1A\x12"  // field 3, 18 bytes
    "\x0A\x08"
    "identity"   // field 1
    "\x12\x00"   // field 2, empty
    "\x18\x00"   // field 3
    "\x20\x00"   // field 4
    "\x28\x01",  // field 5
    20);

// Limits of the word cache: about 10 MB, and no words that are unlikely to recur.
constexpr size_t kMaxKnownWords = size_t{1} << 16;
constexpr size_t kMaxKnownBytes = 32;

[[noreturn]] void fail_model(const std::string& path, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", path, what),
              "use 'bytes' or a model trained with 'rondo tokenizer train'");
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) : path_(path) {
    std::string model = read_tokenizer_model(path, kMaxModelBytes);
    fingerprint_ = hex_fingerprint(
        XXH3_64bits_withSeed(model.data(), model.size(), XXH64_hash_t{kEncodingVersion}));
    model += kIdentityNormalizer;
    std::string error;
    pieces_ = piece_library().load(model, error);
    if (pieces_ == nullptr) {
      fail_model(path, fmt::format("expected a SentencePiece model, got something else ({})",
                                   printable(error)));
    }
    read_pieces();
  }

  int64_t vocabulary() const override { return static_cast<int64_t>(texts_.size()); }
  int64_t largest_token() const override { return vocabulary() - 1; }
  SpecialTokens special_tokens() const override { return special_tokens_; }
  std::string name() const override { return path_; }
  std::string fingerprint() const override { return fingerprint_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size() / 4 + 8);
    const std::unique_lock<std::mutex> lock(known_mutex_, std::try_to_lock);
    KnownWords own;  // used if another thread holds the shared one
    KnownWords& known = lock ? known_ : own;
    while (!text.empty()) {
      const size_t length = encode_cut(text, true);
      encode_stretch(text.substr(0, length), known, tokens);
      text.remove_prefix(length);
    }
    return tokens;
  }

  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token >= 0 && token < vocabulary()) {
        text += texts_[static_cast<size_t>(token)];
      }
    }
    return text;
  }

 private:
  using KnownWords = std::unordered_map<std::string, std::vector<int32_t>>;

  // Collects the text of each piece, the byte pieces and the special tokens.
  void read_pieces() {
    byte_pieces_.fill(-1);
    const int count = pieces_->count();
    texts_.resize(static_cast<size_t>(count));
    for (int id = 0; id < count; ++id) {
      std::string& text = texts_[static_cast<size_t>(id)];
      if (pieces_->is_byte(id)) {
        const int byte = byte_of(pieces_->piece(id));
        byte_pieces_[static_cast<size_t>(byte)] = id;
        text.assign(1, static_cast<char>(byte));
      } else if (!pieces_->is_special(id)) {
        text = piece_text(pieces_->piece(id));
        splits_at_spaces_ = splits_at_spaces_ && word_length(text) == text.size();
      }
    }
    if (std::find(byte_pieces_.begin(), byte_pieces_.end(), -1) != byte_pieces_.end()) {
      fail_model(path_,
                 "the SentencePiece model has no byte pieces, so it cannot represent every text");
    }
    special_tokens_ = {pieces_->padding(), pieces_->begin(), pieces_->end(), pieces_->unknown()};
    if (special_tokens_.padding < 0) {
      special_tokens_.padding = std::max(special_tokens_.unknown, 0);
    }
  }

  int byte_of(const std::string& piece) const {  // "<0x0A>"
    const auto digit = [&](char c) {
      const size_t value = std::string_view("0123456789ABCDEF").find(c);
      if (value == std::string_view::npos) {
        fail_model(path_, fmt::format("'{}' is not a byte piece", printable(piece)));
      }
      return static_cast<int>(value);
    };
    if (piece.size() != 6) {
      fail_model(path_, fmt::format("'{}' is not a byte piece", printable(piece)));
    }
    return digit(piece[3]) * 16 + digit(piece[4]);
  }

  static std::string piece_text(const std::string& piece) {
    std::string text;
    size_t begin = 0;
    while (begin < piece.size()) {
      const size_t found = std::min(piece.find(kPieceSpace, begin), piece.size());
      text.append(piece, begin, found - begin);
      if (found < piece.size()) {
        text.push_back(' ');
      }
      begin = found + kPieceSpace.size();
    }
    return text;
  }

  // Runs that SentencePiece can represent go to it, everything else to the byte pieces.
  void encode_stretch(std::string_view text, KnownWords& known,
                      std::vector<int32_t>& tokens) const {
    size_t run = 0;  // where the current run starts
    size_t at = 0;
    while (at < text.size()) {
      const Utf8Head head = utf8_head(text.substr(at));
      const bool carried =
          head.kind == Utf8Head::Kind::whole && head.code != 0 && head.code != kPieceSpaceCode;
      if (!carried) {
        encode_run(text.substr(run, at - run), known, tokens);
        for (const char c : text.substr(at, head.length)) {
          tokens.push_back(byte_pieces_[static_cast<uint8_t>(c)]);
        }
        run = at + head.length;
      }
      at += head.length;
    }
    encode_run(text.substr(run), known, tokens);
  }

  // The length of the first word: up to where a space follows a non-space.
  static size_t word_length(std::string_view text) {
    const size_t begin = text.find_first_not_of(' ');
    return begin == std::string_view::npos ? text.size()
                                           : std::min(text.find(' ', begin), text.size());
  }

  // Encodes word by word if no piece spans two words: words are then independent of each other and
  // most have been seen before, which is several times faster.
  void encode_run(std::string_view text, KnownWords& known, std::vector<int32_t>& tokens) const {
    while (!text.empty()) {
      const size_t length = splits_at_spaces_ ? word_length(text) : text.size();
      const std::string_view word = text.substr(0, length);
      text.remove_prefix(length);
      const auto found = length > kMaxKnownBytes ? known.end() : known.find(std::string(word));
      if (found != known.end()) {
        tokens.insert(tokens.end(), found->second.begin(), found->second.end());
        continue;
      }
      std::vector<int32_t> ids = encode_word(word);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      if (length <= kMaxKnownBytes && known.size() < kMaxKnownWords) {
        known.emplace(word, std::move(ids));
      }
    }
  }

  std::vector<int32_t> encode_word(std::string_view text) const {
    std::vector<int> ids;
    if (!pieces_->encode(text, ids)) {
      fail_model(path_,
                 fmt::format("the SentencePiece model cannot encode '{}'", printable(text, 40)));
    }
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (is_spelled_space(ids, i)) {
        tokens.push_back(byte_pieces_[static_cast<uint8_t>(' ')]);
        i += kPieceSpace.size() - 1;
      } else {
        tokens.push_back(ids[i]);
      }
    }
    return tokens;
  }

  // A model without a piece for the space spells SentencePiece's space marker in bytes. (A marker
  // in the text itself never gets here, and UTF-8 has these three bytes nowhere else.)
  bool is_spelled_space(const std::vector<int>& ids, size_t at) const {
    if (ids.size() - at < kPieceSpace.size()) {
      return false;
    }
    for (size_t i = 0; i < kPieceSpace.size(); ++i) {
      if (ids[at + i] != byte_pieces_[static_cast<uint8_t>(kPieceSpace[i])]) {
        return false;
      }
    }
    return true;
  }

  std::string path_;
  std::string fingerprint_;
  std::unique_ptr<PieceModel> pieces_;
  std::vector<std::string> texts_;  // per piece; "" for special tokens
  std::array<int32_t, 256> byte_pieces_{};
  bool splits_at_spaces_ = true;  // no piece has a space after a non-space
  SpecialTokens special_tokens_;
  mutable std::mutex known_mutex_;
  mutable KnownWords known_;  // results of encode_word(); does not affect the output
};

}  // namespace

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path) {
  if (!exists(path) && path.find(".safetensors#") == std::string::npos) {
    throw Error(ExitCode::io, fmt::format("{}: the tokenizer does not exist", printable(path)),
                "use 'bytes' or the path of a SentencePiece model");
  }
  return std::make_shared<SentencePieceTokenizer>(path);
}

}  // namespace rondo
