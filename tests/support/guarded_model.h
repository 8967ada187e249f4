// Compares what `generate` runs of a language model with its training forward pass.
#pragma once

#include "rondo/infer/sampler.h"
#include "rondo/infer/session.h"
#include "tests/base/base_test_util.h"
#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {

// One of its documents.
struct GuardedDocument {
  std::vector<int32_t> text;  // read, then generated
  size_t read = 0;
  Session::RowId row = 0;
};

// A language model and what inference runs of it.
class GuardedModel {
 public:
  explicit GuardedModel(const LanguageModelConfig& config) : tiny_(ModelConfig{config}) {
    model_ = std::dynamic_pointer_cast<LanguageModel>(tiny_.network);
    compiled_ = std::make_shared<const CompiledLanguageModel>(model_, kernels::PackedFormat::fp32);
  }

  // `rows` documents at once, each of a different length; halfway each is saved and loaded.
  void check(int64_t rows) const {
    constexpr int64_t kHalf = 6;
    const testing::TempDir folder;
    std::vector<GuardedDocument> documents;
    Session session(compiled_);
    const Tensor tokens = tiny_inputs(tiny_.config, rows, 9, 40).at("tokens");
    for (int64_t row = 0; row < rows; ++row) {
      GuardedDocument d;
      d.read = static_cast<size_t>(1 + 5 * row % 37);
      for (size_t i = 0; i < d.read; ++i) {
        d.text.push_back(tokens[row][static_cast<int64_t>(i)].item<int32_t>());
      }
      d.row = session.add();
      session.read(d.row, d.text);
      documents.push_back(d);
    }
    write(session, kHalf, documents);
    for (GuardedDocument& d : documents) {
      const std::string file = folder.file(std::to_string(d.row));
      session.state(d.row).save(file, "guard");
      session.remove(d.row);
      d.row = session.add(model_->load_state(file, "guard", 1));
    }
    write(session, kHalf, documents);
    for (const GuardedDocument& d : documents) {
      SCOPED_TRACE("row " + std::to_string(d.row));
      compare(d, at::tensor(session.logits(d.row)));
    }
  }

 private:
  // All rows in one step, taking the likeliest token of each.
  static void write(Session& session, int64_t count, std::vector<GuardedDocument>& documents) {
    SamplerOptions greedy;
    greedy.temperature = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<Session::Token> next;
      for (GuardedDocument& d : documents) {
        const int64_t token = Sampler(greedy).sample(session.logits(d.row), 1);
        d.text.push_back(static_cast<int32_t>(token));
        next.push_back({d.row, token});
      }
      session.step(next);
    }
  }

  // Against the training forward pass over the whole text.
  void compare(const GuardedDocument& d, const Tensor& last) const {
    const at::NoGradGuard no_grad;
    State state;
    const Tensor tokens = at::tensor(d.text, at::kInt).to(at::kLong).unsqueeze(0);
    const Tensor logits = model_->forward_tokens(tokens, state, Scope())[0];  // [T, V]
    for (size_t i = d.read; i < d.text.size(); ++i) {
      const Tensor row = logits[static_cast<int64_t>(i) - 1];
      const double best = row.max().item<double>();
      EXPECT_NEAR(row[d.text[i]].item<double>(), best, 1e-5) << "token " << i;
    }
    expect_near(last, logits[logits.size(0) - 1], 1e-5, "logits");
  }

  TinyModel tiny_;
  std::shared_ptr<LanguageModel> model_;
  std::shared_ptr<const CompiledLanguageModel> compiled_;
};

}  // namespace rondo::test
