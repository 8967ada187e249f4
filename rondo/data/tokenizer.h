// Text to token ids and back, losslessly: decode(encode(x)) == x for every byte sequence, valid
// UTF-8 or not.
//
// Two kinds: bytes (an id is a byte) and SentencePiece models with byte fallback. A model's own
// normalization, dummy prefix and whitespace folding are disabled on loading, since they would lose
// text. What SentencePiece cannot represent (invalid UTF-8, NUL, and U+2581, its own space marker)
// is encoded with the model's byte pieces.
//
// Text is encoded in stretches (see encode_cut), so that a long text fed piece by piece gives the
// same ids as in one go.
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

// Ids that stand for no text. encode() never produces them.
struct SpecialTokens {
  int32_t padding = -1;  // always a valid id: the unknown token if the model has no padding
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
  virtual int64_t largest_token() const = 0;  // the largest id encode() can return
  virtual SpecialTokens special_tokens() const = 0;

  virtual std::vector<int32_t> encode(std::string_view text) const = 0;  // any bytes

  // The concatenated bytes of the tokens. Special tokens, and ids outside the vocabulary (a model's
  // embedding may be padded beyond it), produce nothing. Piecewise: decode(a ++ b) == decode(a) +
  // decode(b), so a result may end inside a UTF-8 character; see StreamDecoder.
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

  virtual std::string name() const = 0;         // as given to make_tokenizer()
  virtual std::string fingerprint() const = 0;  // equal iff ids mean the same; 16 hex digits
};

// "bytes", or the path of a SentencePiece model. Error{io} if the file cannot be read,
// Error{bad_input} if it is not a SentencePiece model or has no byte pieces.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& spec);

// The longest stretch encoded in one go, in bytes. (SentencePiece uses about 300 bytes of memory
// for each.)
constexpr size_t kMaxEncodeStretch = size_t{1} << 18;

// The length of the first stretch of `text` that is encoded on its own: up to the end of the first
// line; in a longer line, kMaxEncodeStretch bytes, or up to 3 fewer to avoid splitting a UTF-8
// character. 0 if `text` holds no complete stretch and is not the `last` of its document. Hence
// encode(a + b) == encode(a) ++ encode(b) whenever a consists of stretches.
size_t encode_cut(std::string_view text, bool last);

// Text to print as tokens arrive: complete UTF-8 characters only; an incomplete one is held back
// until the rest arrives. Invalid bytes pass through unchanged. Nothing is lost: all results
// together, including that of finish(), equal decode() of all tokens.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);
  std::string push(int32_t token);
  std::string finish();  // what is still held back; resets the decoder for another stream

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string held_;  // at most 3 bytes
};

// ---- training a SentencePiece model

constexpr int64_t kMinTrainedVocabulary = 256;
constexpr int64_t kMaxTrainedVocabulary = 65536;

struct TokenizerTraining {
  std::vector<std::string> sources;  // each as for list_text()
  std::string output;                // the .model file

  // Total ids: 4 special tokens, the 256 bytes, the characters covered, and the learned pieces.
  // Less than 262 leaves no room for learned pieces and is raised to that, with a warning. If the
  // text is too short or uniform to fill the vocabulary, the model is smaller, with a warning.
  int64_t vocabulary = 4096;  // kMinTrainedVocabulary .. kMaxTrainedVocabulary

  std::string type = "bpe";  // or "unigram"

  // The fraction of the text's characters that get pieces of their own; the rarest are spelled in
  // bytes. Lowered if the characters would take more than half of the room left.
  double coverage = 0.9995;  // (0, 1]

  // Train on up to this many sentences and this many bytes of them; a longer text is sampled,
  // depending only on the text.
  int64_t max_sentences = 1'000'000;
  int64_t max_bytes = int64_t{64} << 20;
};

// Trains a model with byte fallback and writes it atomically. The same text and options give the
// same file, byte for byte. A sentence is a line; one longer than 4 KiB is cut at the last space
// before that, or otherwise between characters. Lines are also split at tabs, NUL, U+2581 and
// invalid UTF-8, which SentencePiece cannot train on (all of them are spelled in bytes).
// Error{bad_input} for options out of range or text with nothing to train on; Error{io}.
void train_tokenizer(const TokenizerTraining& options);

// A tokenizer yet to be trained: "bpe:4096" or "unigram:8000".
struct TokenizerRequest {
  std::string type;
  int64_t vocabulary = 0;
};
// Nullopt if `spec` is not of this form. Error{bad_input} for a size out of range.
std::optional<TokenizerRequest> parse_tokenizer_request(const std::string& spec);

// The model file for `spec`: `spec` itself, or one trained on `sources` and kept in `cache_folder`
// for reuse (keyed by the names, sizes and times of the files).
std::string tokenizer_file(const std::string& spec, const std::vector<std::string>& sources,
                           const std::string& cache_folder);

}  // namespace rondo
