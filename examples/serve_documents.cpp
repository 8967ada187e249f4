// Many documents, few threads, one copy of the weights: 4 threads generate 32 documents, each in a
// session that steps 8 of them together. Every text is identical to one generated alone, and each
// additional document costs only its state.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "rondo/infer/generator.h"

namespace {

using rondo::Session;

constexpr size_t kThreads = 4;
constexpr size_t kDocuments = 32;
constexpr int64_t kTokens = 40;

std::vector<int32_t> prompt_of(size_t document) {
  return std::vector<int32_t>(1 + document % 7, static_cast<int32_t>(32 + document));
}

rondo::Sampler sampler_of(size_t document) {
  rondo::SamplerOptions options;
  options.seed = document;
  return rondo::Sampler(options);
}

std::vector<int64_t> write_alone(const std::shared_ptr<const rondo::CompiledLanguageModel>& model,
                                 size_t document) {
  rondo::Generator generator(model);
  generator.read(prompt_of(document));
  rondo::Sampler sampler = sampler_of(document);
  std::vector<int64_t> text;
  for (int64_t i = 0; i < kTokens; ++i) text.push_back(generator.write(sampler, 0));
  return text;
}

// Generates documents `first`, `first` + kThreads, ... in one session. Returns the bytes of its
// rows.
int64_t write_together(const std::shared_ptr<const rondo::CompiledLanguageModel>& model,
                       size_t first, std::vector<std::vector<int64_t>>& texts) {
  Session session(model);
  std::vector<size_t> documents;
  std::vector<Session::RowId> rows;
  std::vector<rondo::Sampler> samplers;
  for (size_t document = first; document < kDocuments; document += kThreads) {
    documents.push_back(document);
    rows.push_back(session.add());
    session.read(rows.back(), prompt_of(document));
    samplers.push_back(sampler_of(document));
  }
  for (int64_t i = 0; i < kTokens; ++i) {
    std::vector<Session::Token> next;
    for (size_t d = 0; d < documents.size(); ++d) {
      const auto number = static_cast<uint64_t>(session.tokens_seen(rows[d]));
      const int64_t token = samplers[d].sample(session.logits(rows[d]), number);
      texts[documents[d]].push_back(token);
      next.push_back({rows[d], token});
    }
    session.step(next);
  }
  return session.bytes();
}

}  // namespace

int main() {
  rondo::Runtime::start({});
  const rondo::ModelConfig config =
      rondo::resolve_model(
          "brt/rec-fixed-skip",
          {"model.width=32", "model.hidden=64", "model.heads=2", "model.head_width=16",
           "model.depth.levels=4", "model.time.window=8", "model.time.segment=16",
           "model.time.states=4", "model.time.recurrent_layers=[2]"})
          .config;
  const std::shared_ptr<rondo::Network> network = rondo::build_network(config);
  rondo::nn::initialize(*network, /*seed=*/1);
  const auto model = std::make_shared<const rondo::CompiledLanguageModel>(
      std::dynamic_pointer_cast<rondo::LanguageModel>(network), rondo::kernels::PackedFormat::fp32);

  std::vector<std::vector<int64_t>> texts(kDocuments);
  std::vector<std::thread> threads;
  std::atomic<int64_t> bytes{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { bytes += write_together(model, t, texts); });
  }
  for (std::thread& thread : threads) thread.join();

  size_t same = 0;
  for (size_t d = 0; d < kDocuments; ++d) same += texts[d] == write_alone(model, d) ? 1 : 0;
  fmt::print("{} documents of {} tokens by {} threads: {} identical to generating each alone\n",
             kDocuments, kTokens, kThreads, same);
  fmt::print("weights {} bytes, once; {} bytes per document\n", model->bytes(),
             bytes.load() / static_cast<int64_t>(kDocuments));
}
