// Scoring image networks.
#include "rondo/train/image_score.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "rondo/base/progress.h"
#include "rondo/infer/image_runner.h"

namespace rondo {
namespace {

void add_batch(ImageScore& score, const Tensor& logits, const ImageBatch& batch, TestItems* items) {
  const Tensor labels =
      at::from_blob(const_cast<int64_t*>(batch.labels.data()), {batch.rows}, at::kLong);
  const Tensor losses = at::cross_entropy_loss(logits.to(at::kFloat), labels, {},
                                               at::Reduction::None)
                            .contiguous();  // [B]
  score.nats += losses.sum(at::kDouble).item<double>();
  const int64_t k = std::min<int64_t>(5, logits.size(1));
  const Tensor best = std::get<1>(logits.topk(k, 1)).contiguous();  // [B, k]
  const auto places = best.accessor<int64_t, 2>();
  for (int64_t r = 0; r < batch.rows; ++r) {
    const int64_t label = batch.labels[static_cast<size_t>(r)];
    ImageScore::Class& of_class = score.by_class[static_cast<size_t>(label)];
    ++score.images;
    ++of_class.images;
    const auto* row = places[r].data();
    const bool among_five = std::find(row, row + k, label) != row + k;
    const bool first = row[0] == label;
    score.among_five += among_five ? 1 : 0;
    score.first += first ? 1 : 0;
    of_class.right += first ? 1 : 0;
    if (items != nullptr) items->add_image(first, among_five, losses.data_ptr<float>()[r]);
  }
}

}  // namespace

ImageScore score_images(const std::shared_ptr<Network>& network, const ImageSet& images,
                        const AugmentConfig& augment, const ImageScoreOptions& options) {
  LoaderOptions o;
  o.rows = options.rows;
  o.side = options.side;
  o.threads = options.threads;
  o.strict = options.strict;
  o.training = false;
  o.shard = options.shard;
  ImageLoader loader(images, augment, o);
  ImageScore score;
  score.by_class.resize(images.classes().size());
  const auto started = std::chrono::steady_clock::now();
  ProgressOptions shown;  // during training, only if it takes long
  shown.delay = options.progress ? 0 : 2;
  shown.transient = !options.progress;
  const int64_t total =
      options.max_images > 0 ? std::min(options.max_images, images.count()) : images.count();
  Progress progress(options.progress ? "eval" : "evaluating", total, shown);
  if (options.items != nullptr) {
    options.items->task = "image";
    options.items->test = images.checksum();
  }
  const ImageRunner runner(network);
  ImageBatch batch;
  const auto is_enough = [&](int64_t seen) {
    return options.max_images > 0 && seen >= options.max_images;
  };
  // Every shard checks for the end equally often: once per round of batches.
  const auto [rank, shards] = options.shard;
  for (int64_t first = 0; first < loader.batches(); first += shards) {
    if (is_enough(shards == 1 ? score.images : first * options.rows)) break;
    if (options.stop && options.stop()) break;
    if (shards > 1 && is_enough((first + rank) * options.rows)) continue;
    if (!loader.next(batch)) continue;
    score.bad.insert(score.bad.end(), batch.bad.begin(), batch.bad.end());
    if (batch.rows == 0) continue;
    const Tensor pixels =
        at::from_blob(batch.pixels.data(), {batch.rows, 3, batch.side, batch.side}, at::kFloat);
    add_batch(score, runner.forward(pixels), batch, options.items);
    progress.update(score.images);
  }
  progress.finish();
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return score;
}

}  // namespace rondo
