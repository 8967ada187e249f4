// Image cases: SReT-T at 224 pixels, sliced and global.
#include <fmt/format.h>

#include "bench/cases/parts.h"
#include "rondo/config/zoo.h"
#include "rondo/infer/image_model.h"
#include "rondo/infer/runtime.h"
#include "rondo/model/cost.h"
#include "rondo/nn/precision.h"

namespace rondo {
namespace {

PyramidConfig sret_tiny(bool sliced) {
  auto c =
      std::get<PyramidConfig>(find_model(sliced ? "sret/t" : "sret/t-global").config().network);
  c.drop_path = 0.0;
  return c;
}

std::vector<std::string> image_words(const PyramidConfig& c, const char* what, int64_t rows) {
  std::vector<std::string> words = {"--what", what, "--rows", std::to_string(rows)};
  words.insert(words.end(), {"--image", std::to_string(c.image)});
  words.insert(words.end(), {"--classes", std::to_string(c.classes)});
  words.insert(words.end(), {"--widths", fmt::format("{}", fmt::join(c.widths, ","))});
  words.insert(words.end(), {"--heads", fmt::format("{}", fmt::join(c.heads, ","))});
  words.insert(words.end(), {"--hidden-ratio", std::to_string(c.hidden_ratio)});
  words.insert(words.end(), {"--projection", std::to_string(c.depth.recursive.projection)});
  return words;
}

Tensor random_images(const PyramidConfig& c, int64_t rows) {
  return at::randn({rows, 3, c.image, c.image});
}

std::function<void()> image_forward(const PyramidConfig& c, int64_t rows, bool bf16) {
  const auto network = drawn_network(ModelConfig{c});
  network->eval();
  const NamedTensors inputs = {{"images", random_images(c, rows)}};
  return [network, inputs, bf16] {
    const c10::InferenceMode no_gradients;
    const nn::MixedPrecision mixed(bf16);
    State state;
    network->forward(inputs, state, Scope());
  };
}

// As in `rondo classify`.
std::function<void()> image_compiled(const PyramidConfig& c, int64_t rows) {
  const auto compiled = compile_image_network(*drawn_network(ModelConfig{c}));
  const auto workspace = std::make_shared<ImageWorkspace>();
  const Tensor images = random_images(c, rows);
  const Tensor logits = at::empty({rows, c.classes});
  return [compiled, workspace, images, logits] {
    const Runtime::Turn turn(Runtime::get());
    compiled->forward(images.data_ptr<float>(), images.size(0), logits.data_ptr<float>(),
                      turn.team(), *workspace);
  };
}

std::function<void()> image_step(const PyramidConfig& c, int64_t rows, bool bf16) {
  const auto network = drawn_network(ModelConfig{c});
  const NamedTensors inputs = {{"images", random_images(c, rows)}};
  const Tensor labels = at::randint(c.classes, {rows}, at::kLong);
  const auto loss = [network, inputs, labels] {
    State state;
    return sum_cross_entropy(network->forward(inputs, state, Scope()).at("logits"), labels);
  };
  const auto step = std::make_shared<TrainingStep>(network, loss, bf16);
  return [step] { (*step)(); };
}

// Training or inference of `rows` images, sliced and global, in both precisions.
BenchResult image_race(const char* name, const char* what, int64_t rows,
                       const BenchOptions& options) {
  const bool training = std::string(what) == "train";
  const PyramidConfig sliced = sret_tiny(true);
  const PyramidConfig global = sret_tiny(false);
  const auto units = static_cast<double>(rows);
  const auto work = [&](const PyramidConfig& c, bool bf16) {
    if (training) return image_step(c, rows, bf16);
    return bf16 ? image_forward(c, rows, bf16) : image_compiled(c, rows);
  };
  const Cost cost = measure_cost(ModelConfig{sliced});
  const double saved = measure_cost(ModelConfig{global}).multiply_adds / cost.multiply_adds;
  Race race(name, options);
  for (const BenchPrecision& p : bench_precisions()) {
    if (p.bf16) race.limit(matmul_limit(true));
    race.ours(p.name, units, "images", work(sliced, p.bf16));
    race.share(p.name, 2.0 * cost.multiply_adds * units * (training ? 3.0 : 1.0),
               p.bf16 ? "bf16 matmul" : "fp32 matmul", 0);
  }
  race.ours("fp32 global", units, "images", work(global, false));
  race.peer("PyTorch fp32", units, "images", "image.py", image_words(sliced, what, rows),
            cost.parameters);
  if (!training) {
    for (const auto& [engine, script] :
         {std::pair("ONNX Runtime fp32", "onnxruntime"), std::pair("OpenVINO fp32", "openvino")}) {
      std::vector<std::string> words = image_words(sliced, what, rows);
      words.insert(words.end(), {"--engine", script});
      race.peer(engine, units, "images", "image_runtime.py", words);
      race.faster("fp32", engine, 1.0);
    }
  }
  race.faster("fp32", "PyTorch fp32", 2.0);
  race.faster("bf16", "PyTorch fp32", 0);
  race.faster("fp32", "fp32 global", 1.15);
  BenchResult result = race.run();
  result.notes.push_back(
      fmt::format("global attention takes {:.2f} times the multiply-adds", saved));
  return result;
}

}  // namespace

void add_image_cases(std::vector<BenchCase>& cases) {
  cases.push_back({"image-one", "SReT-T, 224 pixels: one image", false,
                   [](const BenchOptions& o) { return image_race("image-one", "forward", 1, o); }});
  cases.push_back({"image-batch", "SReT-T: 32 images at once", false, [](const BenchOptions& o) {
                     return image_race("image-batch", "forward", 32, o);
                   }});
  cases.push_back(
      {"image-train", "SReT-T: training step of 16 images", false,
       [](const BenchOptions& o) { return image_race("image-train", "train", 16, o); }});
}

}  // namespace rondo
