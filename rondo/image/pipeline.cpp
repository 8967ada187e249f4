// The interface of ImageLoader; the work is done in worker_pool.cpp.
#include "rondo/image/pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/image/worker_pool.h"

namespace rondo {
namespace {

constexpr const char* kImagePositionFormat = "rondo images 1";

[[noreturn]] void refuse_image_position(const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("data position: {}", what),
              "resume with the images and options the run was started with, or start a new run");
}

// What a position depends on: everything that determines the order of images.
nlohmann::json image_position(const ImageSet& images, const AugmentConfig& augment,
                              const LoaderOptions& options) {
  return {{"format", kImagePositionFormat}, {"images", images.checksum()},
          {"rows", options.rows},           {"seed", options.seed},
          {"training", options.training},   {"repeats", augment.repeats}};
}

}  // namespace

ImageLoader::ImageLoader(const ImageSet& images, const AugmentConfig& augment,
                         const LoaderOptions& options)
    : workers_(std::make_unique<WorkerPool>(images, augment, options)) {}

ImageLoader::~ImageLoader() = default;

bool ImageLoader::next(ImageBatch& out) { return workers_->next(out); }

int64_t ImageLoader::epoch() const {
  return workers_->passed() * workers_->options().rows / workers_->images().count();
}
int64_t ImageLoader::batches() const { return workers_->batches(); }
int64_t ImageLoader::skipped() const { return workers_->skipped(); }
const Augmenter& ImageLoader::augmenter() const { return workers_->augmenter(); }

std::string ImageLoader::position() const {
  nlohmann::json json = image_position(workers_->images(), workers_->config(), workers_->options());
  json["batch"] = workers_->passed();
  return json.dump();
}

void ImageLoader::seek(const std::string& position, bool other_rows) {
  const nlohmann::json json = nlohmann::json::parse(position, nullptr, false);
  if (!json.is_object() || !json.contains("batch")) {
    refuse_image_position("not a position object");
  }
  const nlohmann::json expected =
      image_position(workers_->images(), workers_->config(), workers_->options());
  for (const auto& [key, value] : expected.items()) {
    if (!json.contains(key)) {
      refuse_image_position(fmt::format("'{}' is missing", key));
    }
    if (json[key] != value && !(other_rows && key == "rows" && json[key].is_number_unsigned())) {
      refuse_image_position(fmt::format("saved with {} = {}, but now it is {}", key,
                                        printable(json[key].dump()), value.dump()));
    }
  }
  const nlohmann::json& batch = json["batch"];
  // Bounded so that the product with the rows of a batch cannot overflow.
  const int64_t last = workers_->options().training ? (INT64_MAX >> 1) / workers_->options().rows
                                                    : workers_->batches();
  const bool fits =
      batch.is_number_integer() &&
      !(batch.is_number_unsigned() && batch.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) &&
      batch.get<int64_t>() >= 0 && batch.get<int64_t>() <= last;
  if (!fits) {
    refuse_image_position(fmt::format("expected a whole number between 0 and {}, got {}", last,
                                      printable(batch.dump())));
  }
  const auto rows = json["rows"].get<uint64_t>();
  const auto own_rows = static_cast<uint64_t>(workers_->options().rows);
  const auto number = batch.get<uint64_t>();
  if (rows != own_rows && number > (uint64_t{1} << 62) / std::max<uint64_t>(rows, 1)) {
    refuse_image_position("it is out of range");
  }
  workers_->seek(static_cast<int64_t>(rows == own_rows ? number : number * rows / own_rows));
}

}  // namespace rondo
