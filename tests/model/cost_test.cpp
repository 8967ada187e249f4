// Counts of parameters and multiply-adds, against formulas and each other.
#include "rondo/model/cost.h"

#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

TEST(CostFormula, OfAVisionTransformer) {
  const ModelConfig config = find_model("ringformer/image-base-vit").config();
  const Cost cost = measure_cost(config);
  const int64_t d = 768, f = 3072, levels = 12, patches = 196, n = patches + 1, classes = 1000;
  const int64_t block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d;
  const int64_t ends = 3 * 256 * d + d + d + 2 * d + d * classes + classes;
  EXPECT_EQ(cost.parameters, levels * block + ends);
  const int64_t level_work = 4 * n * d * d + 2 * n * n * d + 2 * n * d * f;
  const int64_t end_work = patches * 3 * 256 * d + d * classes;
  EXPECT_EQ(cost.multiply_adds, static_cast<double>(levels * level_work + end_work));
  EXPECT_EQ(cost.normalized, static_cast<double>((2 * levels + 1) * n * d));
  EXPECT_EQ(cost.shared, 0);
  EXPECT_EQ(cost.per_level, levels * block);
}

// d, f, the width of all heads, layers, W, S, N, vocabulary of the full-size models.
constexpr int64_t kD = 1024, kF = 4096, kInner = 1024, kLayers = 12, kW = 512, kS = 512, kN = 4096;
constexpr int64_t kVocabulary = 260;

int64_t sliding_work() {
  const int64_t layer = 4 * kN * kD * kInner + 2 * kN * 2 * kW * kInner + 2 * kN * kD * kF;
  return kLayers * layer + kN * kD * kVocabulary;
}

TEST(CostFormula, OfASlidingWindow) {
  const Cost cost = measure_cost(find_model("brt/slide-12l").config());
  EXPECT_EQ(cost.multiply_adds, static_cast<double>(sliding_work()));
  const int64_t layer = 4 * kD * kInner + 2 * kD * kF + 8 * 32 + 8 + 2 * kD;
  EXPECT_EQ(cost.parameters, kLayers * layer + kD + kVocabulary * kD);
  EXPECT_EQ(cost.without_embeddings, kLayers * layer + kD);
}

TEST(CostFormula, OfABlockRecurrentLayer) {
  const Cost cost = measure_cost(find_model("brt/rec-fixed-skip").config());
  const int64_t blocks = kN / kW;
  // Tokens: second queries, attention to the states, an output projection twice as wide.
  const int64_t tokens = kN * kD * kInner + 2 * kN * kS * kInner + kN * kInner * kD;
  // States, per block: four projections, attention to themselves and to two windows, the output.
  const int64_t states =
      4 * kS * kD * kInner + 2 * kS * kS * kInner + 2 * kS * 2 * kW * kInner + kS * 2 * kInner * kD;
  EXPECT_EQ(cost.multiply_adds, static_cast<double>(sliding_work() + tokens + blocks * states));
}

TEST(Cost, OfHalfTheTokensIsHalfTheWorkOfAWindow) {
  const ModelConfig config = find_model("brt/slide-12l").config();
  EXPECT_EQ(measure_cost(config, 2048).multiply_adds * 2, measure_cost(config).multiply_adds);
}

TEST(Cost, SharedWeightsCountOnceAsParametersAndEveryTimeAsWork) {
  const Cost once = measure_cost(find_model("sret/deit-t").config());
  const Cost thrice = measure_cost(find_model("sret/deit-t-loop3").config());
  EXPECT_EQ(thrice.parameters, once.parameters);
  const auto stack_work = [](const Cost& cost) {
    double work = 0;
    for (const CostPart& part : cost.parts) {
      if (part.name.rfind("stack", 0) == 0) work += part.multiply_adds;
    }
    return work;
  };
  EXPECT_EQ(stack_work(thrice), 3 * stack_work(once));
  EXPECT_EQ(once.shared, 0);
  EXPECT_EQ(thrice.per_level, 0);
  EXPECT_EQ(thrice.shared, once.per_level);
}

TEST(Cost, OfARingSeparatesTheSharedBlockFromWhatLevelsOwn) {
  const Cost cost = measure_cost(find_model("ringformer/image-small").config());
  const int64_t d = 512, f = 2048, levels = 6, rank = d / 16;
  EXPECT_EQ(cost.shared, 4 * d * d + 4 * d + 2 * d * f + f + d);
  EXPECT_EQ(cost.per_level, levels * (4 * d + 4 * 2 * rank * d));
}

// Counts the operations of a real forward pass.
class WorkAdder : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& /*name*/, double count) override { work += count; }
  void normalized(const std::string& /*name*/, double count) override { norms += count; }
  double work = 0, norms = 0;
};

class CostOfEvery : public ::testing::TestWithParam<std::string> {};

TEST_P(CostOfEvery, TinyModelIsWhatTheRealNetworkHasAndDoes) {
  const at::NoGradGuard no_grad;
  const ModelConfig config = shrink(find_model(GetParam()).config());
  const int64_t tokens = 14;                       // of a text; more than three windows
  const Cost cost = measure_cost(config, tokens);  // without memory
  const TinyModel m(config);
  int64_t parameters = 0;
  for (const Tensor& p : m.network->parameters()) parameters += p.numel();
  EXPECT_EQ(cost.parameters, parameters);
  NamedTensors inputs;
  for (const auto& [name, tensor] : m.network->example(tokens)) {
    inputs[name] = at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  }
  WorkAdder adder;
  State state;
  m.network->forward(inputs, state, Scope(&adder));
  EXPECT_EQ(cost.multiply_adds, adder.work);
  EXPECT_EQ(cost.normalized, adder.norms);
}

TEST_P(CostOfEvery, PartsAddUp) {
  const Cost cost = measure_cost(find_model(GetParam()).config());
  double work = 0;
  int64_t parameters = 0, shared = 0;
  for (const CostPart& part : cost.parts) {
    work += part.multiply_adds;
    parameters += part.parameters;
    shared += part.shared;
  }
  EXPECT_EQ(work, cost.multiply_adds);
  EXPECT_EQ(parameters, cost.parameters);
  EXPECT_EQ(shared, cost.shared);
  EXPECT_LE(cost.shared + cost.per_level, cost.parameters);
  EXPECT_LT(cost.without_embeddings, cost.parameters);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CostOfEvery, ::testing::ValuesIn(zoo_names()), NameOfModel());

// Multiply-adds of QK and AV alone, the subject of Theorem 1 of the SReT paper.
class AttentionMeter : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& name, double count) override {
    const auto ends = [&name](const std::string& end) {
      return name.size() >= end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    if (ends(".scores") || ends(".values")) work += count;
  }
  double work = 0;
};

double attention_work(int64_t loops, int64_t groups) {
  ModelConfig config = find_model("sret/tl").config();
  RecursiveConfig& recursive = std::get<PyramidConfig>(config.network).depth.recursive;
  recursive.loops = {loops};
  recursive.groups = {{groups}};
  // 64, 32 and 16 tokens a side, so that every stage can be cut.
  std::get<PyramidConfig>(config.network).image = 512;
  const nn::ShapesOnly shapes_only;
  const at::NoGradGuard no_grad;
  const auto network = build_network(config);
  network->eval();
  AttentionMeter meter;
  State state;
  network->forward(network->example(0), state, Scope(&meter));
  return meter.work;
}

TEST(SlicedCost, TheoremOne) {
  // N loops of G groups cost N/G of global attention applied once; as much when N = G.
  const double global = attention_work(1, 1);
  EXPECT_GT(global, 0.0);
  for (const int64_t loops : {1, 2, 3, 4, 8}) {
    for (const int64_t groups : {1, 2, 4, 8, 16}) {
      EXPECT_DOUBLE_EQ(attention_work(loops, groups),
                       global * static_cast<double>(loops) / static_cast<double>(groups))
          << loops << " loops of " << groups << " groups";
    }
  }
}

TEST(AuthorsCount, IsTheRuleWrittenOut) {
  // 5 per normalized element, 6 per GELU element, 1 per element added or divided.
  const double n = 197, d = 768, f = 3072, heads = 12, levels = 12;
  const Cost vit = measure_cost(find_model("ringformer/image-base-vit").config());
  EXPECT_EQ(vit.normalized, (2 * levels + 1) * n * d);
  EXPECT_EQ(vit.gelu, levels * n * f);
  EXPECT_EQ(vit.elementwise, (2 * levels + 1) * n * d + levels * heads * n * n);
  EXPECT_EQ(vit.forming, 0);
  EXPECT_EQ(vit.by(CountRule::authors),
            vit.multiply_adds + 5 * vit.normalized + 6 * vit.gelu + vit.elementwise);
  EXPECT_EQ(vit.by(CountRule::norms), vit.multiply_adds + 5 * vit.normalized);
  EXPECT_EQ(vit.by(CountRule::macs), vit.multiply_adds);

  // RingFormer: the same, plus for its 48 signals M = A B (d x r x d), 1 per element of M, and the
  // addition of each to its input.
  const Cost ring = measure_cost(find_model("ringformer/image-base").config());
  const double rank = 48, signals = 4 * levels;
  EXPECT_EQ(ring.elementwise, vit.elementwise + signals * n * d);
  EXPECT_EQ(ring.by(CountRule::authors),
            vit.by(CountRule::authors) + signals * (d * rank * d + d * d + n * d));
}

TEST(AuthorsCount, PartsAddUp) {
  for (const char* name : {"ringformer/image-base", "ringformer/mt-base", "sret/t",
                           "ringformer/mt-ablation-inter-ffn", "ringformer/image-small-uit"}) {
    const Cost cost = measure_cost(find_model(name).config());
    double sum = 0;
    for (const CostPart& part : cost.parts) sum += part.by(CountRule::authors);
    EXPECT_DOUBLE_EQ(sum, cost.by(CountRule::authors)) << name;
    EXPECT_GT(cost.by(CountRule::authors), cost.with_norms()) << name;
  }
}

}  // namespace
}  // namespace rondo::test
