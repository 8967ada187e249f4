// Assigns documents to rows and cuts them into segments.
#include "rondo/data/segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/random.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/data/data_position.h"

namespace rondo {
namespace {

constexpr const char* kPositionFormat = "rondo segments 1";

// What a position must match.
nlohmann::json segments_read(const Documents& documents, const SegmentOptions& options) {
  return {
      {"format", kPositionFormat},
      {"documents", documents.checksum()},
      {"rows", options.rows * options.shard.size},
      {"length", options.length},
      {"seed", options.seed},
      {"shuffle", options.shuffle},
      {"endless", options.endless},
  };
}

}  // namespace

SegmentReader::SegmentReader(const Documents& documents, const SegmentOptions& options)
    : documents_(documents), options_(options) {
  require(options.rows >= 1 && options.length >= 1,
          "segments: expected at least 1 row of 1 token, got {} of {}", options.rows,
          options.length);
  require(
      options.shard.size >= 1 && options.shard.rank >= 0 && options.shard.rank < options.shard.size,
      "segments: expected a rank below {}, got {}", options.shard.size, options.shard.rank);
  require_memory(saturating_product(options.rows, options.length, 2 * sizeof(int64_t)),
                 fmt::format("a batch of {} rows of {} tokens", with_commas(options.rows),
                             with_commas(options.length)),
                 "choose fewer rows (train.batch) or a shorter segment (model.time.segment)");
  bool any = false;
  for (int64_t i = 0; i < documents_.count() && !any; ++i) {
    any = documents_.document(i).tokens > 1;
  }
  if (!any) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: none of the {} documents has two tokens: nothing to "
                            "predict",
                            printable(documents_.path()), documents_.count()),
                "use longer texts");
  }
  rows_.resize(static_cast<size_t>(all_rows()));
  scratch_.resize(static_cast<size_t>(options.length) + 1);
  start_epoch(0);
}

void SegmentReader::start_epoch(int64_t epoch) {
  epoch_ = epoch;
  cursor_ = 0;
  if (options_.shuffle) {
    order_ = counter_permutation(documents_.count(), options_.seed, "documents",
                                 static_cast<uint64_t>(epoch));
  } else {
    order_.resize(static_cast<size_t>(documents_.count()));
    std::iota(order_.begin(), order_.end(), int64_t{0});
  }
}

// Assigns the next document with something to score; false when a finite pass has none left.
bool SegmentReader::take_document(Row& row) {
  while (true) {
    if (cursor_ == documents_.count()) {
      if (!options_.endless) {
        row = {};
        return false;
      }
      start_epoch(epoch_ + 1);
    }
    const int64_t document = order_[static_cast<size_t>(cursor_++)];
    if (documents_.document(document).tokens > 1) {
      row = {document, 0};
      return true;
    }
  }
}

bool SegmentReader::next(SegmentBatch& out) {
  bool any = false;
  for (Row& row : rows_) {
    const bool ended = row.document < 0 || row.offset >= documents_.document(row.document).tokens;
    any = (ended ? take_document(row) : true) || any;
  }
  if (!any) {
    return false;
  }
  const auto rows = static_cast<size_t>(options_.rows);
  const size_t cells = rows * static_cast<size_t>(options_.length);
  out.rows = options_.rows;
  out.length = options_.length;
  out.tokens.assign(cells, options_.padding);
  out.labels.assign(cells, -1);
  out.reset.assign(rows, 0);
  out.document.assign(rows, -1);
  out.offset.assign(rows, 0);
  out.scored = 0;
  out.scored_by_all = 0;
  for (int64_t row = 0; row < all_rows(); ++row) {
    fill(row, out);
  }
  return true;
}

void SegmentReader::fill(int64_t row, SegmentBatch& out) {
  Row& state = rows_[static_cast<size_t>(row)];
  if (state.document < 0) {
    return;
  }
  const int64_t left = documents_.document(state.document).tokens - state.offset;
  const int64_t inputs = std::min(left, options_.length);
  const int64_t labels = std::min(left - 1, options_.length);
  const int64_t offset = state.offset;
  state.offset += inputs;
  out.scored_by_all += labels;
  const int64_t own_row = row - first_row();
  if (own_row < 0 || own_row >= options_.rows) {
    return;
  }
  const auto index = static_cast<size_t>(own_row);
  // One token beyond the segment, if there is one: the last label.
  documents_.read(state.document, offset, labels + 1, scratch_.data());
  const int64_t begin = own_row * options_.length;
  std::copy_n(scratch_.begin(), inputs, out.tokens.begin() + begin);
  std::copy_n(scratch_.begin() + 1, labels, out.labels.begin() + begin);
  out.reset[index] = offset == 0 ? 1 : 0;
  out.document[index] = state.document;
  out.offset[index] = offset;
  out.scored += labels;
}

std::string SegmentReader::position() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : rows_) {
    rows.push_back({row.document, row.offset});
  }
  nlohmann::json json = segments_read(documents_, options_);
  json["epoch"] = epoch_;
  json["taken"] = cursor_;
  json["row"] = std::move(rows);
  return json.dump();
}

void SegmentReader::seek(const std::string& position, bool other_rows) {
  nlohmann::json expected = segments_read(documents_, options_);
  if (other_rows) expected.erase("rows");
  const nlohmann::json json = parse_position(position, expected);
  const int64_t epoch =
      whole_number(position_value(json, "epoch"), 0, options_.endless ? INT64_MAX - 1 : 0);
  const int64_t taken = whole_number(position_value(json, "taken"), 0, documents_.count());
  const nlohmann::json& rows = position_value(json, "row");
  if (!rows.is_array() || (rows.size() != rows_.size() && !other_rows)) {
    refuse_position(fmt::format("expected {} rows", rows_.size()));
  }
  std::vector<Row> wanted;
  for (const nlohmann::json& row : rows) {
    if (!row.is_array() || row.size() != 2) {
      refuse_position(
          fmt::format("expected a document and an offset, got {}", printable(row.dump())));
    }
    const int64_t document = whole_number(row[0], -1, documents_.count() - 1);
    const int64_t tokens = document < 0 ? 0 : documents_.document(document).tokens;
    wanted.push_back({document, whole_number(row[1], 0, tokens)});
  }
  wanted.resize(rows_.size());
  start_epoch(epoch);
  cursor_ = taken;
  rows_ = std::move(wanted);
}

}  // namespace rondo
