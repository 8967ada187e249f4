// Training image networks: losses, teachers, batch norms, resuming, very deep networks.
#include <gtest/gtest.h>

#include <filesystem>

#include "rondo/image/mix.h"
#include "rondo/train/image_score.h"
#include "tests/train/image_task_util.h"

namespace rondo {
namespace {

using test::expect_stops_between_batches;
using test::ImageShop;
using test::tiny_image_run;
using test::tiny_pyramid;
using test::tiny_vision;
using test::trained_images;

double last_loss(const std::string& run) {
  return test::metrics_of(run).back().at("loss").get<double>();
}

// The next batch of the task made from `config`, read by a separate loader.
ImageBatch next_batch_of(const RunConfig& config, const ImageSet& images) {
  LoaderOptions o;
  o.rows = config.train.batch;
  o.side = image_side(config.model);
  o.seed = static_cast<uint64_t>(config.train.seed);
  ImageLoader loader(images, config.augment, o);
  ImageBatch batch;
  loader.next(batch);
  return batch;
}

// −Σ target · log p, number by number in double.
double plain_soft_loss(const Tensor& logits, const std::vector<std::vector<double>>& targets) {
  double sum = 0;
  for (size_t r = 0; r < targets.size(); ++r) {
    const Tensor row = logits[static_cast<int64_t>(r)].to(at::kDouble);
    double total = 0;
    for (int64_t c = 0; c < row.size(0); ++c) total += std::exp(row[c].item<double>());
    for (int64_t c = 0; c < row.size(0); ++c) {
      sum -= targets[r][static_cast<size_t>(c)] * (row[c].item<double>() - std::log(total));
    }
  }
  return sum;
}

Tensor pixels_of(ImageBatch& batch) {
  return at::from_blob(batch.pixels.data(), {batch.rows, 3, batch.side, batch.side}, at::kFloat);
}

TEST(ImageTask, LossIsThatOfMixedAndSmoothedLabels) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_vision());
  config.augment.mixup = 0.8;
  config.train.label_smoothing = 0.2;
  ImageTask task(config);
  const LossSum loss = task.next_loss();
  ImageBatch batch = next_batch_of(config, *open_images(shop.file()));
  ASSERT_TRUE(batch.mix.mixed);
  std::vector<std::vector<double>> targets;
  for (int64_t r = 0; r < batch.rows; ++r) {
    std::vector<double> t(10, 0.02);
    t[static_cast<size_t>(batch.labels[static_cast<size_t>(r)])] += 0.8 * batch.mix.lambda;
    t[static_cast<size_t>(batch.labels[static_cast<size_t>(batch.rows - 1 - r)])] +=
        0.8 * (1.0 - batch.mix.lambda);
    targets.push_back(t);
  }
  const Tensor logits = image_logits(task.network(), pixels_of(batch));
  EXPECT_EQ(loss.count, 8);
  EXPECT_NEAR(loss.sum.item<double>(), plain_soft_loss(logits, targets), 1e-3);
}

TEST(ImageTask, MixedDepthAveragesBothPasses) {
  const ImageShop shop;
  VisionConfig model = tiny_vision("recursive");
  model.depth.recursive.blocks = {2};
  model.depth.recursive.loops = {3};
  model.mixed_depth = true;
  const RunConfig config = tiny_image_run(shop, model);
  ImageTask task(config);
  task.network().train();
  const double loss = task.next_loss().sum.item<double>();
  ImageBatch batch = next_batch_of(config, *open_images(shop.file()));
  const Tensor labels = at::from_blob(batch.labels.data(), {batch.rows}, at::kLong);
  const auto alone = [&](int64_t loops) {
    VisionConfig plain = model;
    plain.mixed_depth = false;
    plain.depth.recursive.loops = {loops};
    const auto network = build_network(ModelConfig{plain});
    nn::initialize(*network, static_cast<uint64_t>(config.train.seed));
    return sum_cross_entropy(image_logits(*network, pixels_of(batch)), labels).sum.item<double>();
  };
  EXPECT_NEAR(loss, (alone(3) + alone(1)) / 2.0, 1e-3);
}

TEST(ImageTask, TeachersReplaceOrHalveTheLabels) {
  const ImageShop shop;
  RunConfig of_teacher = tiny_image_run(shop, tiny_vision("universal"));
  of_teacher.augment.mean = {0.4, 0.5, 0.6};  // the teacher sees pixels normalized in its own way
  trained_images(of_teacher, shop.run("teacher"));
  for (const std::string kind : {"soft", "hard"}) {
    RunConfig config = tiny_image_run(shop, tiny_vision());
    config.distill.teacher = shop.run("teacher");
    config.distill.kind = kind;
    ImageTask task(config);
    const double loss = task.next_loss().sum.item<double>();
    ImageBatch mine = next_batch_of(config, *open_images(shop.file()));
    RunConfig as_teacher = config;
    as_teacher.augment = of_teacher.augment;
    ImageBatch theirs = next_batch_of(as_teacher, *open_images(shop.file()));
    const ImageModel teacher = load_image_model(shop.run("teacher"));
    const Tensor answer = image_logits(*teacher.network, pixels_of(theirs));
    std::vector<std::vector<double>> targets;
    for (int64_t r = 0; r < mine.rows; ++r) {
      std::vector<double> t(10, 0.0);
      const Tensor p = answer[r].softmax(0);
      const int64_t choice = answer[r].argmax().item<int64_t>();
      if (kind == "soft") {
        for (int64_t k = 0; k < 10; ++k) t[static_cast<size_t>(k)] = p[k].item<double>();
      } else {
        t[static_cast<size_t>(choice)] += 0.5;
        t[static_cast<size_t>(mine.labels[static_cast<size_t>(r)])] += 0.5;
      }
      targets.push_back(t);
    }
    const Tensor logits = image_logits(task.network(), pixels_of(mine));
    EXPECT_NEAR(loss, plain_soft_loss(logits, targets), 2e-3) << kind;
  }
}

TEST(ImageTask, TeacherOfAnotherResolutionIsGivenResizedImages) {
  const ImageShop shop;
  VisionConfig larger = tiny_vision();
  larger.image = 48;
  trained_images(tiny_image_run(shop, larger), shop.run("teacher"));
  RunConfig config = tiny_image_run(shop, tiny_vision());
  config.distill.teacher = shop.run("teacher");
  ImageTask task(config);
  EXPECT_TRUE(std::isfinite(task.next_loss().sum.item<double>()));
}

TEST(ImageTask, RefusesWhatDoesNotFit) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_vision());
  const auto refused = [&](const RunConfig& c, const std::string& words) {
    test::expect_error(ExitCode::bad_input, words, [&] { ImageTask task(c); });
  };
  RunConfig nothing = config;
  nothing.images.train.clear();
  refused(nothing, "data.train: missing");
  RunConfig few = config;
  std::get<VisionConfig>(few.model.network).classes = 7;
  refused(few, "expected at least 10");
  VisionConfig other = tiny_vision();
  other.classes = 12;
  trained_images(tiny_image_run(shop, other), shop.run("other"));
  RunConfig taught = config;
  taught.distill.teacher = shop.run("other");
  refused(taught, "expected 10 classes");
  taught.distill.teacher = "TEACHER";  // as in the recipes
  refused(taught, "this recipe needs a teacher");
  RunConfig fine = config;
  fine.train.start = "RUN";
  refused(fine, "starts from a trained network");
}

TEST(ImageTask, ResumesBitForBit) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_pyramid());
  config.augment.crop = "pad";
  config.augment.flip = 0.5;
  config.augment.cutmix = 1.0;
  config.train.accumulate = 2;
  const Checkpoint whole = trained_images(config, shop.run("whole"));
  RunConfig part = config;
  part.train.steps = 3;
  trained_images(part, shop.run("parts"));
  const Checkpoint parts = trained_images(config, shop.run("parts"));
  test::expect_identical_tensors(whole.tensors, parts.tensors);
  EXPECT_EQ(whole.metadata.at("position"), parts.metadata.at("position"));
}

TEST(ImageTask, AnEvaluationStopsBetweenBatches) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_vision());
  config.images.valid = shop.file();
  ImageTask task(config);
  expect_stops_between_batches(task);
}

TEST(ImageTask, BatchNormsForgetABatch) {
  const ImageShop shop;
  ImageTask task(tiny_image_run(shop, tiny_pyramid()));
  task.network().train();
  task.next_loss();
  NamedTensors before;
  for (const auto& item : task.network().named_buffers()) before[item.key()] = item.value().clone();
  task.next_loss();
  int64_t changed = 0;
  for (const auto& item : task.network().named_buffers()) {
    changed += item.value().equal(before.at(item.key())) ? 0 : 1;
  }
  EXPECT_GE(changed, 9);  // three norms of mean, variance and count
  task.forget_last();
  for (const auto& item : task.network().named_buffers()) {
    test::expect_identical(item.value(), before.at(item.key()), item.key());
  }
}

TEST(BatchNorm, BatchesOfOneStepMoveTheAveragesTogether) {
  nn::BatchNorm2d one(3);
  nn::BatchNorm2d four(3);
  for (nn::BatchNorm2d* norm : {&one, &four}) {
    nn::initialize(*norm, 1);
    norm->train();
  }
  four.batches_per_step(4);
  const Tensor x = at::randn({6, 3, 4, 4}, nn::counter_generator(1, "batch norm"));
  one.forward(x, Scope());
  for (int i = 0; i < 4; ++i) four.forward(x, Scope());
  const NamedTensors a = named_tensors(one);
  const NamedTensors b = named_tensors(four);
  for (const char* name : {"running_mean", "running_var"}) {
    test::expect_near(a.at(name), b.at(name), 1e-6, name);
  }
}

TEST(BatchNorm, KeepsItsStatisticsInFullPrecision) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_pyramid());
  config.train.precision = "bf16";
  config.train.steps = 2;
  const Checkpoint c = trained_images(config, shop.run("bf16"));
  for (const auto& [name, tensor] : c.tensors) {
    if (name.find("running_") != std::string::npos) {
      EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
      EXPECT_FALSE(tensor.equal(tensor.to(at::kBFloat16).to(at::kFloat))) << name;
    }
  }
}

TEST(ImageTask, LearnsAndScores) {
  const ImageShop shop(80);
  RunConfig config = tiny_image_run(shop, tiny_pyramid());
  config.images.valid = shop.file();
  config.train.steps = 120;
  config.train.batch = 20;
  config.schedule.rate = 0.005;
  trained_images(config, shop.run("run"));
  const auto lines = test::metrics_of(shop.run("run"));
  const nlohmann::json& last = lines.back();
  EXPECT_GT(last.at("valid_accuracy").get<double>(), 35.0);  // chance: 10
  EXPECT_GE(last.at("valid_top_five").get<double>(), last.at("valid_accuracy").get<double>());
  // The same computed by hand, image by image.
  const ImageModel model = load_image_model(shop.run("run"));
  const auto images = open_images(shop.file());
  const Augmenter augmenter(model.augment, 32);
  int64_t right = 0;
  double nats = 0;
  for (int64_t i = 0; i < images->count(); ++i) {
    Tensor x = at::empty({1, 3, 32, 32});
    augmenter.evaluate(images->load(i), x.data_ptr<float>());
    const Tensor logits = image_logits(*model.network, x)[0];
    right += logits.argmax().item<int64_t>() == images->label(i) ? 1 : 0;
    nats -= logits.log_softmax(0)[images->label(i)].item<double>();
  }
  EXPECT_NEAR(last.at("valid_accuracy").get<double>(), 100.0 * static_cast<double>(right) / 80.0,
              1e-9);
  EXPECT_NEAR(last.at("valid_loss").get<double>(), nats / 80.0, 1e-4);
}

TEST(ImageTask, AModelFileKnowsItsImagesWithoutItsRun) {
  const ImageShop shop(20);
  RunConfig config = tiny_image_run(shop, tiny_pyramid());
  config.augment.mean = {0.1, 0.2, 0.3};
  config.augment.std = {0.4, 0.5, 0.6};
  config.augment.interpolation = "bilinear";
  config.train.steps = 1;
  trained_images(config, shop.run("run"));
  const std::string alone = shop.run("alone.safetensors");
  std::filesystem::copy_file(best_model_path(shop.run("run")), alone);
  const ImageModel of_run = load_image_model(shop.run("run"));
  const ImageModel of_file = load_image_model(alone);
  EXPECT_EQ(of_file.augment.mean, config.augment.mean);
  EXPECT_EQ(of_file.augment.std, config.augment.std);
  EXPECT_EQ(of_file.augment.interpolation, "bilinear");
  EXPECT_EQ(of_file.names.ids, of_run.names.ids);
  EXPECT_EQ(of_file.names.titles, of_run.names.titles);
}

TEST(ImageTask, AModelFileThatLiesAboutItsImagesIsRefused) {
  const ImageShop shop(20);
  const RunConfig config = tiny_image_run(shop, tiny_pyramid());
  ImageTask task(config);
  const std::string path = shop.run("model.safetensors");
  save_model(path, config.model, task.network(), {{kAugmentKey, "[augment]\nstd = [0, 1, 1]\n"}});
  test::expect_error(ExitCode::bad_input, "model.safetensors:2: augment.std",
                     [&] { load_image_model(path); });
}

// Uniform width, as in App. B of the SReT paper: 36 blocks applied three times.
VisionConfig deep_vision(bool mixed) {
  VisionConfig c = tiny_vision("recursive");
  c.pool = "mean";
  c.positions = "learned";
  c.init = "deit";
  c.depth.recursive.blocks = {36};
  c.depth.recursive.loops = {3};
  c.depth.recursive.residual = "both";
  c.mixed_depth = mixed;
  return c;
}

TEST(ImageTask, NetworksOf108LevelsLearn) {
  const ImageShop shop(40);
  for (const bool mixed : {false, true}) {
    RunConfig config = tiny_image_run(shop, deep_vision(mixed));
    config.train.steps = 30;
    config.train.recompute_levels = 12;
    config.schedule.rate = 0.001;
    const std::string run = shop.run(mixed ? "mixed" : "plain");
    trained_images(config, run);
    const double first = test::metrics_of(run).front().at("loss").get<double>();
    EXPECT_LT(last_loss(run), first - 0.1) << (mixed ? "mixed depth" : "plain");
  }
}

}  // namespace
}  // namespace rondo
