// Shared by the tests of the parallel corpus: two files to write and open, and a tokenizer with
// large ids.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/log.h"
#include "rondo/data/parallel_text.h"
#include "tests/data/data_test_util.h"

namespace rondo::testing {

// A tokenizer that make_tokenizer() does not know, with ids beyond 16 bits.
class WideTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 256 * kStep; }
  int64_t largest_token() const override { return 255 * kStep; }
  SpecialTokens special_tokens() const override { return {}; }
  std::vector<int32_t> encode(std::string_view text) const override {
    if (text.find("refuse me") != std::string_view::npos) {
      throw Error(ExitCode::failure, "refused");
    }
    std::vector<int32_t> tokens;
    for (const char c : text) {
      tokens.push_back(static_cast<uint8_t>(c) * kStep);
    }
    return tokens;
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      text.push_back(static_cast<char>(token / kStep));
    }
    return text;
  }
  std::string name() const override { return "/no/such/tokenizer"; }
  std::string fingerprint() const override { return "0123456789abcdef"; }

 private:
  static constexpr int32_t kStep = 1000;
};

class ParallelFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    init_log(-2);
    options_.files = {folder_.file("text.de"), folder_.file("text.en")};
    options_.cache_folder = folder_.file("cache");
  }
  void TearDown() override { init_log(0); }

  void put(const std::string& source, const std::string& target) {
    spill(options_.files.source, source);
    spill(options_.files.target, target);
  }
  // Old enough not to be affected by the clock's resolution.
  void make_old() {
    for (const std::string& file : {options_.files.source, options_.files.target}) {
      std::filesystem::last_write_time(
          file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  ParallelCorpus open() { return ParallelCorpus::open(options_, *bytes_, *bytes_); }

  // Whether open() made a new cache file.
  bool opening_rebuilds() {
    const auto time = [](const std::string& path) {
      return std::filesystem::exists(path) ? std::filesystem::last_write_time(path)
                                           : std::filesystem::file_time_type::min();
    };
    const auto before = time(open_path_);
    const std::string path_before = open_path_;
    open_path_ = open().path();
    return open_path_ != path_before || time(open_path_) != before;
  }

  static std::string text(const TokenSpan& tokens, const Tokenizer& tokenizer) {
    return tokenizer.decode(tokens.to_vector());
  }
  std::string source_text(const ParallelCorpus& corpus, int64_t i) {
    return text(corpus.source(i), *bytes_);
  }

  TempDir folder_;
  ParallelOptions options_;
  std::string open_path_;
  std::shared_ptr<const Tokenizer> bytes_ = make_tokenizer("bytes");
  WideTokenizer wide_;
};

}  // namespace rondo::testing
