// Text to token ids and back, without loss: decode(encode(x)) == x for every sequence of bytes,
// be it UTF-8 or not.
//
// Two kinds: bytes (an id is a byte), and SentencePiece models with byte fallback. A model's own
// normalization, dummy prefix and whitespace folding are switched off when it is loaded, since
// they would lose text; what SentencePiece cannot carry through (stray bytes that are not UTF-8,
// NUL, and U+2581, its own sign for a space) goes through the model's byte pieces.
//
// Text is encoded in stretches (encode_cut below), so that a long text can be fed piece by piece
// and gives the same ids as in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// The byte vocabulary: ids 0..255 are the bytes, then the special tokens.
constexpr int32_t kBytePadding = 256;
constexpr int32_t kByteBegin = 257;
constexpr int32_t kByteEnd = 258;
constexpr int32_t kByteUnknown = 259;
constexpr int64_t kByteVocabulary = 260;

// Ids that stand for no text. encode() never makes them.
struct SpecialTokens {
  int32_t padding = -1;  // always a valid id: a model without one lends its unknown token
  int32_t begin = -1;    // -1: the model has none
  int32_t end = -1;      // -1: the model has none
  int32_t unknown = -1;
};

// Immutable; safe from any number of threads.
class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  virtual int64_t vocabulary() const = 0;     // ids are 0 .. vocabulary() - 1
  virtual int64_t largest_token() const = 0;  // the largest id encode() can give
  virtual SpecialTokens special_tokens() const = 0;

  virtual std::vector<int32_t> encode(std::string_view text) const = 0;  // any bytes

  // The bytes of the tokens, one after the other. Special tokens, and ids outside the vocabulary (a
  // model's table may be padded beyond it), give nothing. Piecewise: decode(a ++ b) == decode(a) +
  // decode(b), so a result may end within a UTF-8 character; see StreamDecoder.
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

  virtual std::string name() const = 0;         // as given to make_tokenizer()
  virtual std::string fingerprint() const = 0;  // equal exactly if ids mean the same; 16 hex digits
};

// "bytes", or the path of a SentencePiece model. Error{io} if the file cannot be read,
// Error{bad_input} if it is no SentencePiece model or has no byte pieces.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& spec);

// The longest stretch encoded in one go, in bytes. (SentencePiece takes some 300 bytes for each.)
constexpr size_t kMaxEncodeStretch = size_t{1} << 18;

// The length of the first stretch of `text` that is encoded by itself: to the end of the first
// line; of a longer line, kMaxEncodeStretch bytes, or up to 3 fewer so as not to cut a UTF-8
// character. 0 if `text` holds no whole stretch and is not the `last` of its document. Hence
// encode(a + b) == encode(a) ++ encode(b) whenever a is made of stretches.
size_t encode_cut(std::string_view text, bool last);

// What to print as tokens arrive: whole UTF-8 characters only, the beginning of one held back
// until its rest comes. Bytes that are no UTF-8 pass as they are. Nothing is lost: all results
// together, with that of finish(), equal decode() of all tokens.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);
  std::string push(int32_t token);
  std::string finish();  // what is still held back; then ready for another stream

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string held_;  // at most 3 bytes
};

// ---- learning a SentencePiece model from text

constexpr int64_t kMinTrainedVocabulary = 256;
constexpr int64_t kMaxTrainedVocabulary = 65536;

struct TokenizerTraining {
  std::vector<std::string> sources;  // each as for list_text()
  std::string output;                // the .model file

  // Ids in all: 4 special tokens, the 256 bytes, the characters covered, and what is learned. Less
  // than 262 leaves no room to learn and is raised to that, with a warning; of a text too short or
  // uniform to fill it, the model comes out smaller, with a warning.
  int64_t vocabulary = 4096;  // kMinTrainedVocabulary .. kMaxTrainedVocabulary

  std::string type = "bpe";  // or "unigram"

  // The share of the text's characters that become pieces of their own; the rarest rest is spelled
  // in bytes. Lowered where the characters would take more than half the room.
  double coverage = 0.9995;  // (0, 1]

  // At most so many sentences, and so many bytes of them, are learned from; of a longer text a
  // sample that depends on nothing but the text.
  int64_t max_sentences = 1'000'000;
  int64_t max_bytes = int64_t{64} << 20;
};

// Learns a model with byte fallback and writes it in one step. The same text and options give the
// same file, byte for byte. A sentence is a line; one longer than 4 KiB is cut at its last space
// before that, or else between characters. Lines are also parted at tabs, NUL, U+2581 and bytes
// that are not UTF-8, which SentencePiece cannot learn from (all of them are spelled in bytes).
// Error{bad_input} for options out of range or text with nothing to learn from; Error{io}.
void train_tokenizer(const TokenizerTraining& options);

// A tokenizer that is still to be learned: "bpe:4096" or "unigram:8000".
struct TokenizerRequest {
  std::string type;
  int64_t vocabulary = 0;
};
// Nothing if `spec` is of another form. Error{bad_input} for a size out of range.
std::optional<TokenizerRequest> parse_tokenizer_request(const std::string& spec);

// The model file for `spec`: `spec` itself, or one learned from `sources` and kept in
// `cache_folder` for the next time (by the names, sizes and times of the files).
std::string tokenizer_file(const std::string& spec, const std::vector<std::string>& sources,
                           const std::string& cache_folder);

}  // namespace rondo
