// Building a parallel cache: pairs are read in blocks, each block is tokenized by several threads,
// and the results are collected, in line order, in unnamed files from which the cache is written.
// Memory does not grow with the corpus.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/parallel_cache.h"
#include "rondo/data/token_spool.h"

namespace rondo {
namespace {

constexpr size_t kBlockPairs = 8192;                 // upper bound
constexpr size_t kBlockTextBytes = size_t{2} << 20;  // no pair starts beyond this
constexpr size_t kClaimedPairs = 16;                 // claimed at once by a thread

struct RawPair {
  std::string source;
  std::string target;
  int64_t line = 0;
  bool over_long = false;

  enum class Fate { kept, cut, empty, too_long };
  Fate fate = Fate::kept;
  std::vector<int32_t> source_tokens;
  std::vector<int32_t> target_tokens;
};

// Calls work(thread, i) for every i below `count` from `threads` threads, the caller being thread
// 0; all have finished on return. Rethrows an exception thrown by one of them.
template <class Work>
void for_each_index(size_t count, size_t threads, const Work& work) {
  std::atomic<size_t> taken{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto run = [&](size_t thread) {
    try {
      while (true) {
        const size_t begin = taken.fetch_add(kClaimedPairs);
        if (begin >= count) {
          return;
        }
        for (size_t i = begin; i < std::min(begin + kClaimedPairs, count); ++i) {
          work(thread, i);
        }
      }
    } catch (...) {
      taken = count;
      const std::lock_guard<std::mutex> lock(mutex);
      thrown = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(threads);
  try {
    for (size_t i = 1; i < std::min(threads, count / kClaimedPairs); ++i) {
      helpers.emplace_back(run, i);
    }
  } catch (const std::system_error&) {  // no more threads available: the existing ones do the work
  }
  run(0);
  for (std::thread& helper : helpers) {
    helper.join();
  }
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

using SharedTokenizer = std::shared_ptr<const Tokenizer>;

// A separate instance for one thread: a SentencePiece model is several times faster with its word
// cache, which only one thread can use at a time. The given tokenizer if it cannot be loaded again.
SharedTokenizer own_tokenizer(const Tokenizer& tokenizer) {
  try {
    SharedTokenizer own = make_tokenizer(tokenizer.name());
    if (own->fingerprint() == tokenizer.fingerprint()) {
      return own;
    }
  } catch (const Error&) {  // its file is gone
  }
  return {SharedTokenizer(), &tokenizer};
}

class ParallelBuilder {
 public:
  ParallelBuilder(const std::string& path, const ParallelOptions& options, const Tokenizer& source,
                  const Tokenizer& target)
      : path_(path),
        folder_(std::filesystem::path(path).parent_path().string()),
        options_(options),
        source_(source),
        target_(target),
        built_(nanoseconds_now()),
        source_spool_(folder_, token_type_for(source)),
        target_spool_(folder_, token_type_for(target)),
        source_starts_(folder_),
        target_starts_(folder_),
        lines_(folder_) {
    const size_t processors = std::max<size_t>(std::thread::hardware_concurrency(), 1);
    tokenizers_.resize(options.threads > 0 ? static_cast<size_t>(options.threads) : processors);
    tokenizers_[0].source = {SharedTokenizer(), &source};
    tokenizers_[0].target = {SharedTokenizer(), &target};
  }

  void read(const std::vector<std::string>& places) {
    int64_t total = 0;
    for (const std::string& place : places) {
      stamps_.push_back(stamp_of(place));
      total += stamps_.back().size;
    }
    Progress progress("tokenizing", total);
    PairReader reader(options_.files);
    constexpr int64_t kStart = 0;
    source_starts_.write(&kStart, sizeof(kStart));
    target_starts_.write(&kStart, sizeof(kStart));
    while (read_block(reader)) {
      for_each_index(block_.size(), tokenizers_.size(),
                     [&](size_t thread, size_t i) { encode(tokenizers_[thread], block_[i]); });
      add_block();
      progress.update(std::min(reader.consumed(), total));
    }
    counts_.lines = reader.line();
    stamps_[0].content = reader.source_hash();
    if (stamps_.size() > 1) {
      stamps_[1].content = reader.target_hash();
    }
    progress.finish();
  }

  void write() {
    if (counts_.pairs == 0) {
      fail_empty();
    }
    const std::string files = manifest_text(stamps_);
    ParallelArrays arrays;
    arrays.source = {source_spool_.type(), source_spool_.map(), source_spool_.count(),
                     numbers(source_starts_)};
    arrays.target = {target_spool_.type(), target_spool_.map(), target_spool_.count(),
                     numbers(target_starts_)};
    arrays.count = counts_.pairs;
    arrays.lines = numbers(lines_);
    arrays.counts = counts_;
    arrays.files = files;
    write_arrays(arrays);
    report();
  }

 private:
  // Of one thread.
  struct Tokenizers {
    SharedTokenizer source;
    SharedTokenizer target;
  };

  bool read_block(PairReader& reader) {
    block_.clear();
    size_t bytes = 0;
    RawPair pair;
    while (block_.size() < kBlockPairs && bytes < kBlockTextBytes &&
           reader.next(pair.source, pair.target)) {
      if (pair.source.empty() || pair.target.empty()) {  // millions of these cost nothing more
        ++counts_.empty;
        continue;
      }
      bytes += pair.source.size() + pair.target.size();
      pair.line = reader.line();
      pair.over_long = reader.over_long();
      block_.push_back(std::exchange(pair, {}));
    }
    return !block_.empty();
  }

  // Called from several threads at once, each with its own tokenizers and pair.
  void encode(Tokenizers& own, RawPair& pair) const {
    if (own.source == nullptr) {
      own.source = own_tokenizer(source_);
      own.target = &source_ == &target_ ? own.source : own_tokenizer(target_);
    }
    const auto most = static_cast<size_t>(options_.max_tokens);
    if (is_blank(pair.source) || is_blank(pair.target)) {
      pair.fate = RawPair::Fate::empty;
      return;
    }
    bool over = pair.over_long;
    for (const bool is_source : {true, false}) {
      if (over && !options_.cut) {
        break;  // one side is enough to skip it
      }
      std::vector<int32_t>& tokens = is_source ? pair.source_tokens : pair.target_tokens;
      tokens = is_source ? own.source->encode(pair.source) : own.target->encode(pair.target);
      if (tokens.empty()) {  // a third-party tokenizer may drop what it does not know
        pair.fate = RawPair::Fate::empty;
        return;
      }
      over = over || tokens.size() > most;
      tokens.resize(std::min(tokens.size(), most));
    }
    if (over) {
      pair.fate = options_.cut ? RawPair::Fate::cut : RawPair::Fate::too_long;
    }
  }

  void add_block() {
    std::vector<int32_t> tokens[2];
    std::vector<int64_t> starts[2];
    std::vector<int64_t> lines;
    const auto take = [&](int side, const TokenSpool& spool, const std::vector<int32_t>& more) {
      tokens[side].insert(tokens[side].end(), more.begin(), more.end());
      starts[side].push_back(spool.count() + static_cast<int64_t>(tokens[side].size()));
    };
    for (const RawPair& pair : block_) {
      counts_.empty += pair.fate == RawPair::Fate::empty ? 1 : 0;
      counts_.long_skipped += pair.fate == RawPair::Fate::too_long ? 1 : 0;
      counts_.long_cut += pair.fate == RawPair::Fate::cut ? 1 : 0;
      if (pair.fate == RawPair::Fate::kept || pair.fate == RawPair::Fate::cut) {
        take(0, source_spool_, pair.source_tokens);
        take(1, target_spool_, pair.target_tokens);
        lines.push_back(pair.line);
      }
    }
    counts_.pairs += static_cast<int64_t>(lines.size());
    source_spool_.add(tokens[0]);
    target_spool_.add(tokens[1]);
    source_starts_.write(starts[0].data(), starts[0].size() * sizeof(int64_t));
    target_starts_.write(starts[1].data(), starts[1].size() * sizeof(int64_t));
    lines_.write(lines.data(), lines.size() * sizeof(int64_t));
  }

  static const int64_t* numbers(Spool& spool) {
    return reinterpret_cast<const int64_t*>(spool.map());
  }

  void write_arrays(const ParallelArrays& arrays) const {
    const int64_t counts[] = {counts_.lines, counts_.pairs, counts_.empty, counts_.long_skipped,
                              counts_.long_cut};
    TensorRef source{
        "source", arrays.source.type, {arrays.source.token_count}, arrays.source.tokens};
    TensorRef target{
        "target", arrays.target.type, {arrays.target.token_count}, arrays.target.tokens};
    if (dtype_size(source.dtype) < dtype_size(target.dtype)) {
      std::swap(source, target);  // wide types first, so that all are aligned
    }
    const std::string pairs_sum = pairs_checksum(arrays, source_, target_);
    const std::string owner = parallel_owner(options_, source_, target_);
    write_safetensors(
        path_,
        {{"counts", DType::i64, {5}, counts},
         {"lines", DType::i64, {arrays.count}, arrays.lines},
         {"source_starts", DType::i64, {arrays.count + 1}, arrays.source.starts},
         {"target_starts", DType::i64, {arrays.count + 1}, arrays.target.starts},
         source,
         target,
         {"files", DType::u8, {static_cast<int64_t>(arrays.files.size())}, arrays.files.data()}},
        {{kCacheFormatKey, kParallelFormat},
         {kParallelOwnerKey, owner},
         {kCacheBuiltKey, built_},
         {kCacheTextKey, pairs_sum},
         {kCacheWholeKey, parallel_checksum(arrays, pairs_sum, owner, built_)}});
  }

  std::string names() const {
    const std::string source = printable(options_.files.source, PATH_MAX);
    return options_.files.target.empty()
               ? source
               : fmt::format("{} and {}", source, printable(options_.files.target, PATH_MAX));
  }

  // "; skipped: 3 with an empty side, 5 of more than 256 tokens", or "".
  std::string skipped() const {
    std::vector<std::string> parts;
    if (counts_.empty > 0) {
      parts.push_back(fmt::format("{} with an empty side", with_commas(counts_.empty)));
    }
    if (counts_.long_skipped > 0) {
      parts.push_back(fmt::format("{} of more than {} tokens", with_commas(counts_.long_skipped),
                                  options_.max_tokens));
    }
    return parts.empty() ? "" : "; skipped: " + join(parts, ", ");
  }

  void report() const {
    log_info("parallel text: {} of {}, {} and {} tokens{}{}", counted(counts_.pairs, "pair"),
             names(), si_count(static_cast<double>(source_spool_.count())),
             si_count(static_cast<double>(target_spool_.count())), skipped(),
             counts_.long_cut > 0 ? fmt::format("; {} cut to {} tokens",
                                                with_commas(counts_.long_cut), options_.max_tokens)
                                  : "");
  }

  [[noreturn]] void fail_empty() const {
    throw Error(ExitCode::bad_input,
                counts_.lines == 0 ? fmt::format("{}: no pairs: the text has no lines", names())
                                   : fmt::format("{}: no pair left of {}{}", names(),
                                                 counted(counts_.lines, "line"), skipped()),
                counts_.long_skipped > 0 ? "allow more tokens, or cut long sentences" : "");
  }

  std::string path_;
  std::string folder_;
  const ParallelOptions& options_;
  const Tokenizer& source_;
  const Tokenizer& target_;
  std::vector<Tokenizers> tokenizers_;  // per thread; loaded on its first use
  std::string built_;
  std::vector<SourceStamp> stamps_;
  std::vector<RawPair> block_;
  TokenSpool source_spool_;
  TokenSpool target_spool_;
  Spool source_starts_;
  Spool target_starts_;
  Spool lines_;
  ParallelCounts counts_;
};

}  // namespace

void build_parallel(const std::string& path, const std::vector<std::string>& places,
                    const ParallelOptions& options, const Tokenizer& source,
                    const Tokenizer& target) {
  ParallelBuilder builder(path, options, source, target);
  builder.read(places);
  builder.write();
}

}  // namespace rondo
