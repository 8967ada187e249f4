// Tokenizer files that are invalid, truncated, or make SentencePiece fail: exit code 3 and the
// file's name, never an abort.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

class TokenizerFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    rondo_ok(
        {"tokenizer", "train", t_.file("texts"), "-o", good_, "--vocab", "280", "--type", "bpe"});
  }
  void expect_refused(const std::string& model, const std::string& part) const {
    spill(bad_, model);
    const Result result = rondo(
        t_.command("run", {"--set", "model.vocabulary=300", "--set", "data.tokenizer=" + bad_}));
    expect_refusal(result, ExitCode::bad_input, bad_ + ": " + part);
    EXPECT_FALSE(std::filesystem::exists(t_.file("run")));
  }
  // The model with one more piece. Concatenated protobuf messages are merged into one; type 3 is a
  // control token, 6 a byte.
  std::string with_piece(const std::string& text, char type) const {
    const auto size = [](const std::string& s) { return std::string(1, char(s.size())); };
    const std::string piece = "\x0A" + size(text) + text + "\x18" + type;
    return slurp(good_) + "\x0A" + size(piece) + piece;
  }

  Trainee t_;
  std::string good_ = t_.file("good.model");
  std::string bad_ = t_.file("bad.model");
};

TEST_F(TokenizerFaults, WhatIsNoModelIsRefused) {
  const std::string none = "expected a SentencePiece model, got something else";
  expect_refused("", none);
  expect_refused(slurp(good_).substr(0, 2000), none);
  expect_refused(with_piece("<0xZZ>", 6), none + " (byte piece <0xZZ> is invalid.)");
}

// A control token spelled like a letter: SentencePiece loads the model, and fails at that letter.
TEST_F(TokenizerFaults, ATextThatCannotBeEncodedIsRefused) {
  spill(t_.file("texts/9"), "a Q here\n");
  expect_refused(with_piece("Q", 3), "the SentencePiece model cannot encode ' Q'");
}

}  // namespace
}  // namespace rondo::testing
