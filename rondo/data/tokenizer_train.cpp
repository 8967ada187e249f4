// Training a SentencePiece model: samples sentences, chooses the alphabet, runs SentencePiece's
// trainer. Choices its trainer would make on its own (which lines to drop as too long, which to
// sample, which characters to leave out) are made here, where they are well defined.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/random.h"
#include "rondo/base/text.h"
#include "rondo/data/piece_library.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

constexpr size_t kMaxSentenceBytes = 4096;  // near SentencePiece's own limit
constexpr int64_t kFixedPieces = 4 + 256;   // special tokens and bytes
constexpr int64_t kMinLearnedPieces = 2;    // its trainer needs a character and one more
constexpr uint32_t kCodeCount = 0x110000;
constexpr uint64_t kSampleSeed = 1;

// SentencePiece's unigram trainer drops pieces with an expected count below one half, and aborts
// the process when none is left, which happens on a few words of text. Repeated 32 times, no text
// is that short: a text of n characters has at most 2n seed pieces of at most 16 characters.
constexpr size_t kShortTextBytes = size_t{1} << 12;
constexpr int64_t kShortTextPasses = 32;

// Where to end a sentence that is too long: after its last space, otherwise between characters.
size_t sentence_cut(std::string_view line) {
  if (line.size() <= kMaxSentenceBytes) {
    return line.size();
  }
  const size_t space = line.find_last_of(' ', kMaxSentenceBytes - 1);
  if (space != std::string_view::npos && space > 0) {
    return space + 1;
  }
  size_t cut = kMaxSentenceBytes;
  while (cut > kMaxSentenceBytes - 3 && (static_cast<uint8_t>(line[cut]) & 0xC0) == 0x80) {
    --cut;
  }
  return cut;
}

// The sentences with the smallest draws, as many as fit: a uniform one-pass sample that depends
// only on the text.
class SentenceSample {
 public:
  SentenceSample(int64_t max_sentences, int64_t max_bytes)
      : max_sentences_(max_sentences), max_bytes_(max_bytes) {}

  void add(std::string_view sentence) {
    const uint64_t index = seen_++;
    const uint64_t draw = counter_draw(kSampleSeed, "tokenizer sentences", 0, 0, index);
    if (draw >= limit_) {
      return;
    }
    bytes_ += static_cast<int64_t>(sentence.size());
    heap_.push_back({draw, index, std::string(sentence)});
    std::push_heap(heap_.begin(), heap_.end(), smaller_draw);
    while (static_cast<int64_t>(heap_.size()) > max_sentences_ || bytes_ > max_bytes_) {
      std::pop_heap(heap_.begin(), heap_.end(), smaller_draw);
      limit_ = heap_.back().draw;
      bytes_ -= static_cast<int64_t>(heap_.back().text.size());
      heap_.pop_back();
    }
  }

  int64_t seen() const { return static_cast<int64_t>(seen_); }

  // In text order. Call once.
  std::vector<std::string> take() {
    std::sort(heap_.begin(), heap_.end(),
              [](const Entry& a, const Entry& b) { return a.index < b.index; });
    std::vector<std::string> sentences;
    sentences.reserve(heap_.size());
    for (Entry& entry : heap_) {
      sentences.push_back(std::move(entry.text));
    }
    heap_.clear();
    return sentences;
  }

 private:
  struct Entry {
    uint64_t draw;
    uint64_t index;
    std::string text;
  };
  static bool smaller_draw(const Entry& a, const Entry& b) { return a.draw < b.draw; }

  int64_t max_sentences_;
  int64_t max_bytes_;
  uint64_t seen_ = 0;
  int64_t bytes_ = 0;
  uint64_t limit_ = UINT64_MAX;  // the smallest draw evicted
  std::vector<Entry> heap_;      // max-heap by draw
};

void add_stretch(std::string_view stretch, SentenceSample& sample) {
  if (!stretch.empty() && stretch.back() == '\n') {
    stretch.remove_suffix(1);
  }
  while (!stretch.empty()) {
    const size_t length = sentence_cut(stretch);
    sample.add(stretch.substr(0, length));
    stretch.remove_prefix(length);
  }
}

void sample_piece(const TextPiece& piece, SentenceSample& sample) {
  TextReader reader(piece);
  bool begins = true;
  read_stretches(reader, [&](std::string_view text) {
    if (begins && text.substr(0, kUtf8Mark.size()) == kUtf8Mark) {
      text.remove_prefix(kUtf8Mark.size());
    }
    begins = false;
    while (!text.empty()) {
      const size_t length = encode_cut(text, true);
      add_stretch(text.substr(0, length), sample);
      text.remove_prefix(length);
    }
  });
}

std::vector<std::string> sample_sentences(const TokenizerTraining& options) {
  std::vector<TextPiece> files;
  for (const std::string& source : options.sources) {
    for (TextPiece& piece : list_text(source)) {
      files.push_back(std::move(piece));
    }
  }
  SentenceSample sample(options.max_sentences, options.max_bytes);
  {
    Progress progress("reading text", static_cast<int64_t>(files.size()));
    for (size_t i = 0; i < files.size(); ++i) {
      sample_piece(files[i], sample);
      progress.update(static_cast<int64_t>(i) + 1);
    }
    progress.finish();
  }
  const int64_t seen = sample.seen();
  std::vector<std::string> sentences = sample.take();
  log_info("tokenizer: training on {} of {} of {}",
           with_commas(static_cast<int64_t>(sentences.size())), counted(seen, "sentence"),
           counted(static_cast<int64_t>(files.size()), "file"));
  return sentences;
}

// Calls use(code, bytes) for every character SentencePiece can learn, and gap() for everything
// else.
template <class Use, class Gap>
void for_each_character(std::string_view text, Use use, Gap gap) {
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    const bool learnable = head.kind == Utf8Head::Kind::whole && head.code != 0 &&
                           head.code != '\t' && head.code != kPieceSpaceCode &&
                           head.code != kPieceUnknownCode;
    if (learnable) {
      use(head.code, text.substr(0, head.length));
    } else {
      gap();
    }
    text.remove_prefix(head.length);
  }
}

// Chooses the characters that become pieces: the most frequent ones, until `coverage` of the text
// or `room` is reached. Ties go to the smaller code.
std::vector<bool> choose_alphabet(const std::vector<std::string>& sentences, double coverage,
                                  int64_t room) {
  std::vector<int64_t> counts(kCodeCount);
  int64_t total = 0;
  for (const std::string& sentence : sentences) {
    for_each_character(
        sentence,
        [&](uint32_t code, std::string_view) {
          ++counts[code];
          ++total;
        },
        [] {});
  }
  std::vector<uint32_t> codes;
  for (uint32_t code = 0; code < kCodeCount; ++code) {
    if (counts[code] > 0) {
      codes.push_back(code);
    }
  }
  std::stable_sort(codes.begin(), codes.end(),
                   [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  std::vector<bool> alphabet(kCodeCount);
  int64_t covered = 0;
  int64_t taken = 0;
  for (const uint32_t code : codes) {
    const bool enough = static_cast<double>(covered) >= coverage * static_cast<double>(total);
    if (taken == room || enough) {
      break;
    }
    alphabet[code] = true;
    covered += counts[code];
    ++taken;
  }
  const double share = total > 0 ? static_cast<double>(covered) / static_cast<double>(total) : 0.0;
  log_info("tokenizer: {} of {} characters have their own piece, covering {:.4f} % of the text",
           taken, codes.size(), 100 * share);
  return alphabet;
}

// Sentences cut into runs of the alphabet, all of them `passes` times, on demand. Each is freed in
// the last pass.
class RunIterator : public SentenceStream {
 public:
  RunIterator(std::vector<std::string> sentences, const std::vector<bool>& alphabet, int64_t passes)
      : sentences_(std::move(sentences)), alphabet_(alphabet), passes_(passes) {
    find();
  }
  bool done() const override { return next_run_ >= runs_.size(); }
  void next() override {
    ++next_run_;
    find();
  }
  const std::string& value() const override { return runs_[next_run_]; }

 private:
  // Moves on to the next sentence with runs when those of the current one are used up.
  void find() {
    while (next_run_ >= runs_.size() && passes_ > 0) {
      if (next_sentence_ == sentences_.size()) {
        next_sentence_ = 0;
        --passes_;
        continue;
      }
      cut(sentences_[next_sentence_]);
      if (passes_ == 1) {
        std::string().swap(sentences_[next_sentence_]);
      }
      ++next_sentence_;
    }
  }

  void cut(const std::string& sentence) {
    runs_.clear();
    next_run_ = 0;
    std::string run;
    const auto end_run = [&] {
      if (!run.empty()) {
        runs_.push_back(std::exchange(run, {}));
      }
    };
    for_each_character(
        sentence,
        [&](uint32_t code, std::string_view bytes) {
          if (alphabet_[code]) {
            run += bytes;
          } else {
            end_run();
          }
        },
        end_run);
    end_run();
  }

  std::vector<std::string> sentences_;
  const std::vector<bool>& alphabet_;
  int64_t passes_;
  size_t next_sentence_ = 0;
  std::vector<std::string> runs_;
  size_t next_run_ = 0;
};

int64_t passes_over(const std::vector<std::string>& sentences, const std::string& type) {
  size_t bytes = 0;
  for (const std::string& sentence : sentences) {
    bytes += sentence.size();
  }
  return type == "unigram" && bytes < kShortTextBytes ? kShortTextPasses : 1;
}

std::unordered_map<std::string, std::string> trainer_flags(const TokenizerTraining& options,
                                                           int64_t vocabulary) {
  return {
      {"model_type", options.type},
      {"vocab_size", std::to_string(vocabulary)},
      {"hard_vocab_limit", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "1.0"},  // choose_alphabet() handles it
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"max_sentence_length", std::to_string(kMaxSentenceBytes)},
      {"pad_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"unk_id", "3"},
      {"num_threads", "4"},  // fixed: floating-point sums depend on it
      {"minloglevel", "3"},
  };
}

void check_options(const TokenizerTraining& options) {
  const auto refuse = [](const std::string& what) { throw Error(ExitCode::bad_input, what); };
  if (options.vocabulary < kMinTrainedVocabulary || options.vocabulary > kMaxTrainedVocabulary) {
    refuse(fmt::format("tokenizer: expected a vocabulary of {} to {}, got {}",
                       kMinTrainedVocabulary, kMaxTrainedVocabulary, options.vocabulary));
  }
  if (options.type != "bpe" && options.type != "unigram") {
    refuse(fmt::format("tokenizer: expected type 'bpe' or 'unigram', got '{}'",
                       printable(options.type)));
  }
  if (!(options.coverage > 0 && options.coverage <= 1)) {
    refuse(fmt::format("tokenizer: expected a coverage in (0, 1], got {}", options.coverage));
  }
  if (options.max_sentences < 1 || options.max_bytes < static_cast<int64_t>(kMaxSentenceBytes)) {
    refuse(
        fmt::format("tokenizer: expected at least 1 sentence and {} bytes to train on, got {} "
                    "and {}",
                    kMaxSentenceBytes, options.max_sentences, options.max_bytes));
  }
}

}  // namespace

void train_tokenizer(const TokenizerTraining& options) {
  check_options(options);
  AtomicFile output(options.output);  // opened first, so that a bad path fails early
  int64_t vocabulary = options.vocabulary;
  if (vocabulary < kFixedPieces + kMinLearnedPieces) {
    vocabulary = kFixedPieces + kMinLearnedPieces;
    log_warn(
        "tokenizer: a vocabulary of {} leaves no room beyond 4 special tokens and 256 bytes; "
        "raised "
        "to {}",
        options.vocabulary, vocabulary);
  }
  std::vector<std::string> sentences = sample_sentences(options);
  const std::vector<bool> alphabet =
      choose_alphabet(sentences, options.coverage, (vocabulary - kFixedPieces) / 2);
  const int64_t passes = passes_over(sentences, options.type);
  RunIterator runs(std::move(sentences), alphabet, passes);
  if (runs.done()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: no text to train a tokenizer on", printable(join(options.sources, ", "))),
        "use files, folders or .list files with UTF-8 text in them");
  }
  std::string model;
  std::string error;
  if (!piece_library().train(trainer_flags(options, vocabulary), runs, model, error)) {
    throw Error(ExitCode::bad_input,
                fmt::format("SentencePiece cannot train on this text: {}", printable(error, 400)),
                "try more text or a smaller vocabulary");
  }
  const auto check = piece_library().load(model, error);
  RONDO_ASSERT(check != nullptr);
  if (check->count() < vocabulary) {
    log_warn("tokenizer: the text yields only {} of {} pieces", check->count(), vocabulary);
  }
  output.write(model);
  output.commit();
}

}  // namespace rondo
