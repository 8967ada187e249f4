// rondo classify: paths in, one line per image out, in input order and in constant memory.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/lines.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/image/image_list.h"
#include "rondo/image/read_ahead.h"
#include "rondo/infer/classifier.h"

namespace rondo::cli {
namespace {

constexpr size_t kEntriesPerRow = 4;  // limits the broken images that wait with a batch

// The paths of the command line, then those of the list as they arrive.
class ImagePaths {
 public:
  explicit ImagePaths(const ClassifyOptions& options) : given_(list_images(options.paths)) {
    if (!options.list.empty()) list_.emplace(options.list);
    const bool known = !list_.has_value() || list_->total() > 0;
    total_ = known ? static_cast<int64_t>(given_.size()) + (list_ ? list_->total() : 0) : 0;
  }

  // Up to `most` paths. With `wait`, at least one unless there are no more; otherwise those that
  // have arrived.
  std::vector<std::string> take(size_t most, bool wait) {
    std::vector<std::string> paths;
    for (; next_ < given_.size() && paths.size() < most; ++next_) paths.push_back(given_[next_]);
    while (list_.has_value() && paths.size() < most) {
      const bool waits = wait && paths.empty();
      const auto lines = waits ? list_->take(most) : list_->take_arrived(most - paths.size());
      if (lines.empty()) break;
      for (const std::string& line : lines) {
        if (!line.empty()) paths.push_back(line);
      }
    }
    return paths;
  }

  int64_t total() const { return total_; }  // 0: unknown

 private:
  std::vector<std::string> given_;
  size_t next_ = 0;
  std::optional<LineReader> list_;
  int64_t total_ = 0;
};

ImageModel model_as_told(const ClassifyOptions& options) {
  ImageModel model = load_image_model(options.run, options.loops, verify_as(options.load));
  if (!options.classes.empty()) model.names = read_names_for(model.config, options.classes);
  ConfigTable table;
  for (const std::string& assignment : options.set) table.set(assignment);
  table.require_known("", {"augment"});
  read_config(table, "augment", model.augment);
  check_augment(model.augment, table.where("augment"));
  return model;
}

class ClassifyRun {
 public:
  ClassifyRun(const ClassifyOptions& options, ImagePaths paths)
      : options_(options),
        paths_(std::move(paths)),
        classifier_(model_as_told(options)),
        ahead_(classifier_.augmenter(), options.compute.threads, 2 * options.batch + 2),
        area_(static_cast<size_t>(3 * classifier_.side() * classifier_.side())) {}

  void run() {
    Progress progress("classify", paths_.total());
    while (gather()) {
      clear_progress_line();
      answer();
      seen_ += static_cast<int64_t>(entries_.size());
      if (seen_ > options_.batch) progress.update(seen_);
    }
    if (seen_ > options_.batch) progress.finish();  // no progress bar for a single batch
    if (failed_ > 0) {
      throw Error(ExitCode::bad_input, fmt::format("{} of {} could not be read",
                                                   with_commas(failed_), counted(seen_, "image")));
    }
  }

 private:
  // An image of the batch; the readable ones fill its rows in order.
  struct Entry {
    std::string path;
    std::string error;
  };

  void ask(bool wait) {
    if (ahead_.room() == 0) return;
    for (std::string& path : paths_.take(static_cast<size_t>(ahead_.room()), wait)) {
      ahead_.ask(std::move(path));
    }
  }

  // Fills a batch with readable images: all forward passes but the last have the same size, so that
  // memory is reused. From a slow pipe, the batch holds what has arrived.
  bool gather() {
    const auto batch = static_cast<size_t>(options_.batch);
    entries_.clear();
    rows_ = 0;
    while (rows_ < batch && entries_.size() < kEntriesPerRow * batch) {
      ask(/*wait=*/entries_.empty() && ahead_.waiting() == 0);
      if (ahead_.waiting() == 0) break;
      ahead_.take(image_);
      if (image_.error.empty()) {
        pixels_.resize(std::max(pixels_.size(), (rows_ + 1) * area_));
        std::memcpy(pixels_.data() + rows_ * area_, image_.pixels.data(), area_ * sizeof(float));
        ++rows_;
      }
      entries_.push_back({std::move(image_.path), image_.error});
    }
    return !entries_.empty();
  }

  void answer() {
    std::vector<Prediction> predictions;
    if (rows_ > 0) {
      predictions = classifier_.classify(pixels_.data(), static_cast<int64_t>(rows_), options_.top);
    }
    size_t row = 0;
    for (const Entry& entry : entries_) {
      if (entry.error.empty()) {
        print_prediction(entry.path, predictions[row++]);
      } else {
        ++failed_;
        log_warn("{}", entry.error);
        if (options_.json) print_json_line({{"path", entry.path}, {"error", entry.error}});
      }
    }
    // The reader may be waiting for each line.
    if (std::fflush(stdout) != 0) {
      throw Error(ExitCode::io,
                  fmt::format("standard output: cannot write: {}", std::strerror(errno)));
    }
  }

  // Four decimals of a probability: further digits depend on the batch.
  void print_prediction(const std::string& path, const Prediction& prediction) const {
    const ClassNames& names = classifier_.names();
    nlohmann::json top = nlohmann::json::array();
    std::string line = path;
    for (const ClassProbability& c : prediction) {
      const auto number = static_cast<size_t>(c.number);
      if (options_.json) {
        top.push_back({{"class", names.ids[number]},
                       {"title", names.titles[number]},
                       {"probability", c.probability}});
      } else {
        line += fmt::format("\t{} {:.2f}%", names.titles[number], 100.0 * c.probability);
      }
    }
    options_.json ? print_json_line({{"path", path}, {"top", top}}) : fmt::print("{}\n", line);
  }

  // Paths need not be UTF-8.
  static void print_json_line(const nlohmann::json& json) {
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  const ClassifyOptions& options_;
  ImagePaths paths_;
  Classifier classifier_;
  ImageReadAhead ahead_;
  size_t area_;
  PreparedImage image_;
  std::vector<float> pixels_;  // [batch, 3, side, side]
  size_t rows_ = 0;
  std::vector<Entry> entries_;
  int64_t seen_ = 0;
  int64_t failed_ = 0;
};

}  // namespace

void run_classify(const ClassifyOptions& options) {
  ImagePaths paths(options);  // first: a bad path fails before the network is loaded
  start_engine(options.compute);
  ClassifyRun(options, std::move(paths)).run();
}

}  // namespace rondo::cli
