// Translation cases: the cost of RingFormer's signals in training, and beam search.
#include "bench/cases/parts.h"
#include "rondo/config/zoo.h"
#include "rondo/infer/beam_search.h"
#include "rondo/infer/runtime.h"

namespace rondo {
namespace {

constexpr int64_t kPairs = 32;
constexpr int64_t kSentence = 32;  // tokens: the 1,024 of a batch are twice the width

// A translation network of the paper's base size with a small vocabulary: a large one would hide
// the cost of the levels.
EncoderDecoderConfig base_model(const char* name) {
  auto c = std::get<EncoderDecoderConfig>(find_model(name).config().network);
  c.source_vocabulary = c.target_vocabulary = 4096;
  c.dropout = 0.0;
  return c;
}

// Sentences without special tokens.
Tensor random_sentences(const EncoderDecoderConfig& c) {
  constexpr int64_t kSpecialTokens = 3;
  return at::randint(kSpecialTokens, c.source_vocabulary, {kPairs, kSentence}, at::kLong);
}

std::vector<std::string> translation_words(const EncoderDecoderConfig& c, const char* what,
                                           const char* signals) {
  return {"--what",       what,
          "--signals",    signals,
          "--vocabulary", std::to_string(c.source_vocabulary),
          "--width",      std::to_string(c.width),
          "--hidden",     std::to_string(c.hidden),
          "--heads",      std::to_string(c.heads),
          "--levels",     std::to_string(c.depth.levels),
          "--rows",       std::to_string(kPairs),
          "--tokens",     std::to_string(kSentence)};
}

std::shared_ptr<TrainingStep> translation_step(const EncoderDecoderConfig& c, bool bf16) {
  const auto model = std::dynamic_pointer_cast<EncoderDecoder>(drawn_network(ModelConfig{c}));
  const Tensor source = random_sentences(c);
  const Tensor target = random_sentences(c);
  const Tensor labels = random_sentences(c);
  const auto loss = [model, source, target, labels] {
    State state = model->encode(source, Scope());
    return model->loss_of_target(target, labels, state);
  };
  return std::make_shared<TrainingStep>(model, loss, bf16);
}

BenchResult ring_costs(const BenchOptions& options) {
  constexpr double kUnits = kPairs * kSentence;
  const EncoderDecoderConfig ring = base_model("ringformer/mt-base");
  const EncoderDecoderConfig universal = base_model("ringformer/mt-base-universal");
  Race race("ring", options);
  int64_t parameters = 0;
  for (const BenchPrecision& p : bench_precisions()) {
    if (p.bf16) race.limit(matmul_limit(true));
    const auto signaled = translation_step(ring, p.bf16);
    const auto plain = translation_step(universal, p.bf16);
    parameters = count_parameters(signaled->network());
    const std::string name = std::string("RingFormer ") + p.name;
    race.ours(name, kUnits, "tokens", [signaled] { (*signaled)(); });
    race.ours(std::string("Universal ") + p.name, kUnits, "tokens", [plain] { (*plain)(); });
    race.share(name, 3.0 * forward_flops(ModelConfig{ring}, kPairs, kSentence),
               p.bf16 ? "bf16 matmul" : "fp32 matmul", 0);
    race.cost(name, std::string("Universal ") + p.name, 1.06);
  }
  race.peer("PyTorch fp32, signals formed", kUnits, "tokens", "translation.py",
            translation_words(ring, "train", "formed"), parameters);
  // Formed signals take 2.3 times the multiply-adds of the projections, which are a third of the
  // total: three times as fast requires faster matmuls too.
  race.faster("RingFormer fp32", "PyTorch fp32, signals formed", 0);
  race.faster("RingFormer bf16", "PyTorch fp32, signals formed", 3.0);
  return race.run();
}

// Beam search in which hypotheses cannot end, so that every search takes the same number of steps.
std::function<void()> searching(const EncoderDecoderConfig& c, nn::WeightFormat format) {
  const auto model = std::dynamic_pointer_cast<EncoderDecoder>(drawn_network(ModelConfig{c}));
  const auto compiled = std::make_shared<CompiledTranslationModel>(*model, format);
  SearchTokens special_tokens;
  special_tokens.banned = {c.padding, special_tokens.begin, special_tokens.end};
  BeamOptions how;
  how.beam = 5;
  how.max_ratio = 1.0;
  how.max_extra = 0;
  const Tensor source = random_sentences(c);
  return [compiled, source, special_tokens, how] {
    const Runtime::Turn turn(Runtime::get());
    beam_search(*compiled, source, special_tokens, how, turn.team());
  };
}

BenchResult translate_sentences(const BenchOptions& options) {
  constexpr double kUnits = kPairs;
  const EncoderDecoderConfig c = base_model("ringformer/mt-base");
  Race race("translate", options);
  race.ours("fp32", kUnits, "sentences", searching(c, nn::WeightFormat::fp32));
  race.ours("bf16", kUnits, "sentences", searching(c, nn::WeightFormat::bf16));
  race.ours("int8", kUnits, "sentences", searching(c, nn::WeightFormat::int8));
  const int64_t parameters = count_parameters(*drawn_network(ModelConfig{c}));
  race.peer("PyTorch fp32", kUnits, "sentences", "translation.py",
            translation_words(c, "translate", "merged"), parameters);
  race.faster("fp32", "PyTorch fp32", 3.0);
  race.faster("bf16", "PyTorch fp32", 3.0);
  race.faster("int8", "PyTorch fp32", 3.0);
  return race.run();
}

// The vanilla network compared to CTranslate2, which supports no other.
BenchResult translate_vanilla(const BenchOptions& options) {
  constexpr double kUnits = kPairs;
  EncoderDecoderConfig c = base_model("ringformer/mt-base-vanilla");
  c.norm_epsilon = 1e-5;
  const int64_t parameters = count_parameters(*drawn_network(ModelConfig{c}));
  Race race("translate-vanilla", options);
  for (const auto& [name, format, compute] : {std::tuple("fp32", nn::WeightFormat::fp32, "float32"),
                                              std::tuple("int8", nn::WeightFormat::int8, "int8")}) {
    const std::string peer = std::string("CTranslate2 ") + name;
    std::vector<std::string> words = translation_words(c, "translate", "");
    words.erase(words.begin() + 2, words.begin() + 4);  // no signals
    words.insert(words.end(), {"--compute", compute});
    race.ours(name, kUnits, "sentences", searching(c, format));
    race.peer(peer, kUnits, "sentences", "translation_ctranslate2.py", words, parameters);
    race.faster(name, peer, 1.0);
  }
  return race.run();
}

}  // namespace

void add_translation_cases(std::vector<BenchCase>& cases) {
  cases.push_back({"ring", "training step of RingFormer vs. Universal, 512/2048, 32 x 32 tokens",
                   false, ring_costs});
  cases.push_back({"translate", "beam search with beam 5 over 32 sentences of 32 tokens", false,
                   translate_sentences});
  cases.push_back({"translate-vanilla", "the same with a vanilla network vs. CTranslate2", false,
                   translate_vanilla});
}

}  // namespace rondo
