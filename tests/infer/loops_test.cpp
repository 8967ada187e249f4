// Language models with another number of loops than they were trained with.
#include <gtest/gtest.h>

#include "rondo/base/error.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/infer/loops.h"

namespace rondo {
namespace {

LanguageModelConfig looped_config(const std::string& scheme) {
  LanguageModelConfig c;
  c.vocabulary = 40;
  c.width = 16;
  c.hidden = 32;
  c.heads = 2;
  c.head_width = 8;
  c.dropout = 0;
  c.depth.scheme = scheme;
  c.depth.levels = 4;
  c.time.kind = "window";
  c.time.window = 8;
  c.time.segment = 16;
  return c;
}

TrainedLanguageModel looped_model(const LanguageModelConfig& config) {
  TrainedLanguageModel trained;
  trained.config = ModelConfig{config};
  trained.model = std::make_shared<LanguageModel>(config);
  nn::initialize(*trained.model, /*seed=*/3);
  trained.model->eval();
  return trained;
}

Tensor logits_of_looped(LanguageModel& model) {
  const at::NoGradGuard no_grad;
  State state;
  return model.forward_tokens(at::arange(20, at::kLong).unsqueeze(0), state, Scope());
}

// Logits of a network built with `config`, whose weights called `name` are those called
// `source(name)`.
Tensor logits_by_hand(const LanguageModelConfig& config, const LanguageModel& trained,
                      const std::function<std::string(const std::string&)>& source) {
  const at::NoGradGuard no_grad;
  LanguageModel model(config);
  const NamedTensors weights = named_tensors(trained);
  for (auto& [name, tensor] : named_tensors(model)) {
    Tensor target = tensor;
    target.copy_(weights.at(source(name)));
  }
  model.eval();
  return logits_of_looped(model);
}

TEST(Loops, RingsAndUniversalModelsPlayTheirFirstLevels) {
  for (const char* scheme : {"ring", "universal"}) {
    LanguageModelConfig config = looped_config(scheme);
    const TrainedLanguageModel trained = looped_model(config);
    EXPECT_EQ(loops_of(trained.model->config().depth), 4);
    const TrainedLanguageModel three = with_loops(trained, 3, "it");
    EXPECT_EQ(loops_of(three.model->config().depth), 3);
    config.depth.levels = 3;
    const Tensor expected =
        logits_by_hand(config, *trained.model, [](const std::string& name) { return name; });
    EXPECT_TRUE(logits_of_looped(*three.model).equal(expected)) << scheme;
    EXPECT_FALSE(logits_of_looped(*trained.model).equal(expected)) << scheme;
    EXPECT_TRUE(logits_of_looped(*with_loops(trained, 4, "it").model)
                    .equal(logits_of_looped(*trained.model)));
    EXPECT_EQ(named_tensors(*three.model).at("embedding").data_ptr(),
              trained.model->embedding().data_ptr())
        << "the weights are not shared";
  }
  EXPECT_NO_THROW(with_loops(looped_model(looped_config("universal")), 6, "it"));
  EXPECT_THROW(with_loops(looped_model(looped_config("ring")), 6, "it"), Error);
  EXPECT_THROW(with_loops(looped_model(looped_config("vanilla")), 3, "it"), Error);
  EXPECT_EQ(loops_of(looped_config("vanilla").depth), 0);
}

TEST(Loops, ProjectionsAreThoseOfTheFirstLoop) {
  LanguageModelConfig config = looped_config("recursive");
  config.depth.recursive.blocks = {2};
  config.depth.recursive.loops = {2};
  config.depth.recursive.projection = 1.0;
  const TrainedLanguageModel trained = looped_model(config);
  config.depth.recursive.loops = {1};
  const Tensor expected = logits_by_hand(config, *trained.model, [](const std::string& name) {
    // Projections follow block 0 (0, 1) and block 1 (2, 3).
    const size_t at = name.find("projection.1.");
    return at == std::string::npos ? name : std::string(name).replace(at + 11, 1, "2");
  });
  EXPECT_TRUE(logits_of_looped(*with_loops(trained, 1, "it").model).equal(expected));
}

TEST(Loops, RecurrentLayersKeepTheirLevel) {
  LanguageModelConfig config = looped_config("ring");
  config.time.kind = "block-recurrent";
  config.time.states = 4;
  config.time.recurrent_layers = {2};
  const TrainedLanguageModel trained = looped_model(config);
  const TrainedLanguageModel three = with_loops(trained, 3, "it");
  EXPECT_NE(rondo::fingerprint(three.config, *three.model),
            rondo::fingerprint(trained.config, *trained.model));
  EXPECT_THROW(with_loops(trained, 1, "it"), Error);  // the recurrent layer would be gone
  config.depth.scheme = "recursive";
  config.depth.recursive.blocks = {2};
  config.depth.recursive.loops = {2};
  EXPECT_THROW(with_loops(looped_model(config), 1, "it"), Error);  // level 2 was block 0
  config.depth.recursive.order = "external";
  EXPECT_NO_THROW(with_loops(looped_model(config), 1, "it"));
}

}  // namespace
}  // namespace rondo
