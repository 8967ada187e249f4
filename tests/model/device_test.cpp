// Networks on devices other than the CPU. There is no GPU here; the meta device, whose tensors have
// no memory, shows that a training step uses no CPU tensor in its computation.
#include <ATen/record_function.h>

#include <gtest/gtest.h>

#include <set>

#include "rondo/config/zoo.h"
#include "rondo/model/cost.h"
#include "rondo/model/network.h"
#include "rondo/recurrence/stack.h"
#include "rondo/train/optimizer.h"
#include "tests/support/shrink.h"

namespace rondo {
namespace {

// Names of operations that mix tensors of the meta device and the CPU, which a GPU would reject. A
// CPU scalar (no dimensions) may be combined with any tensor.
class MixedOperations {
 public:
  MixedOperations() {
    found.clear();
    at::RecordFunctionCallback callback(
        [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          note(call);
          return nullptr;
        });
    handle_ = at::addGlobalCallback(callback.needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~MixedOperations() { at::removeCallback(handle_); }
  MixedOperations(const MixedOperations&) = delete;
  MixedOperations& operator=(const MixedOperations&) = delete;
  static std::set<std::string> found;

 private:
  static void note(const at::RecordFunction& call) {
    const std::string name = call.name();
    if (name == "aten::copy_" || name == "aten::to" || name == "aten::_to_copy") return;
    bool meta = false;
    bool cpu = false;
    const auto look = [&](const Tensor& t) {
      if (!t.defined()) return;
      meta = meta || t.is_meta();
      cpu = cpu || (t.is_cpu() && t.dim() > 0);
    };
    for (const c10::IValue& input : call.inputs()) {
      if (input.isTensor()) look(input.toTensor());
      if (input.isTensorList()) {
        for (const Tensor& t : input.toTensorVector()) look(t);
      }
    }
    if (meta && cpu) found.insert(name);
  }
  at::CallbackHandle handle_ = 0;
};
std::set<std::string> MixedOperations::found;

NamedTensors labeled_example(const Network& network) {
  NamedTensors inputs = network.example(0);
  const bool images = inputs.count("images") != 0;
  const Tensor& of = images                        ? inputs.at("images")
                     : inputs.count("target") != 0 ? inputs.at("target")
                                                   : inputs.at("tokens");
  inputs["labels"] =
      at::empty(images ? at::IntArrayRef{1} : of.sizes(), of.options().dtype(at::kLong));
  return inputs;
}

void train_one_step(Network& network, const std::string& optimizer) {
  for (const auto& item : network.named_parameters()) item.value().mutable_grad() = Tensor();
  State state;
  const NamedTensors inputs = labeled_example(network);
  network.loss(inputs, network.forward(inputs, state, Scope())).backward();
  OptimizerConfig how;
  how.kind = optimizer;
  make_optimizer(how, network)->step(1, 0.1);
}

class OnTheMetaDevice : public ::testing::TestWithParam<std::string> {};

TEST_P(OnTheMetaDevice, ATrainingStepStaysOnIt) {
  const nn::ShapesOnly shapes_only;
  const auto network = build_network(find_model(GetParam()).config());
  ASSERT_TRUE(network->device().is_meta());
  network->train();
  const MixedOperations watch;
  train_one_step(*network, "adafactor");
  for (const auto& item : network->named_parameters()) {
    const Tensor gradient = item.value().grad();
    ASSERT_TRUE(gradient.defined()) << item.key();
    EXPECT_TRUE(gradient.is_meta()) << item.key();
    EXPECT_EQ(gradient.sizes(), item.value().sizes()) << item.key();
  }
  for (const auto& [name, stack] : network->stacks()) {
    const bool feedback = stack->feedback_level() != kNone;  // is not recomputed
    stack->recompute_every(feedback ? 0 : 2);
  }
  train_one_step(*network, "adamw");
  EXPECT_TRUE(MixedOperations::found.empty())
      << ::testing::PrintToString(MixedOperations::found) << " mix devices";
}

std::vector<std::string> names_of_models() {
  std::vector<std::string> names;
  for (const ZooEntry& model : zoo()) names.push_back(model.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, OnTheMetaDevice, ::testing::ValuesIn(names_of_models()),
                         [](const auto& model) { return test::test_name(model.param); });

TEST(MixedOperationsWatch, SeesAMixture) {
  const MixedOperations watch;
  const Tensor meta = at::empty({3}, at::TensorOptions(at::kMeta));
  EXPECT_TRUE(MixedOperations::found.empty());
  const Tensor sum = at::cat({meta, at::zeros({3})});
  EXPECT_FALSE(MixedOperations::found.empty());
}

}  // namespace
}  // namespace rondo
