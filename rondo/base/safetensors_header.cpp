// Event-based parser for the JSON header of a safetensors file.
//
// No tree is built: each event either fits the one valid structure of a header or is an immediate
// error, so nesting, repetition and size are bounded for any input.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "rondo/base/error.h"
#include "rondo/base/limits.h"
#include "rondo/base/safetensors.h"
#include "rondo/base/safetensors_parts.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail_header(const std::string& source, const std::string& what,
                              const std::string& advice = {}) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", source, what), advice);
}

// Receives nlohmann's SAX events. States follow the only valid nesting:
//   top { metadata { } | tensor { dtype, shape [ ], data_offsets [ ] } }
class HeaderHandler {
 public:
  HeaderHandler(const std::string& source, SafetensorsHeader& header)
      : source_(source), header_(header) {}

  bool start_object(std::size_t /*count*/) {
    deepen();
    switch (state_) {
      case State::start:
        state_ = State::top;
        return true;
      case State::metadata_value:
        unexpected("an object");
      case State::top:
        if (key_ == kMetadataKey) {
          state_ = State::metadata;
        } else {
          begin_tensor();
        }
        return true;
      default:
        unexpected("an object");
    }
  }

  bool end_object() {
    --depth_;
    if (state_ == State::tensor) {
      end_tensor();
    }
    state_ = state_ == State::top ? State::end : State::top;
    return true;
  }

  bool key(std::string& name) {
    if (name.size() > kMaxTensorNameBytes) {
      fail_header(source_, fmt::format("expected names of at most {} bytes, got {} in '{}'",
                                       kMaxTensorNameBytes, name.size(), printable(name)));
    }
    key_ = name;
    if (state_ == State::tensor) {
      tensor_field();
    } else if (state_ == State::metadata) {
      metadata_key();
    } else {
      tensor_name();
    }
    return true;
  }

  bool string(std::string& text) {
    if (state_ == State::metadata_value) {
      header_.metadata[key_] = text;
      state_ = State::metadata;
      return true;
    }
    if (state_ == State::dtype) {
      entry_.dtype = parse_dtype(text);
      state_ = State::tensor;
      return true;
    }
    unexpected(fmt::format("\"{}\"", printable(text)));
  }

  bool start_array(std::size_t /*count*/) {
    deepen();
    if (state_ == State::shape) {
      state_ = State::extents;
    } else if (state_ == State::offsets) {
      state_ = State::offset_list;
    } else {
      unexpected("a list");
    }
    return true;
  }

  bool end_array() {
    --depth_;
    if (state_ == State::offset_list && offsets_.size() != 2) {
      fail_tensor(
          fmt::format("data_offsets: expected 2 numbers [begin, end], got {}", offsets_.size()));
    }
    state_ = State::tensor;
    return true;
  }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (state_ == State::extents) {
      add_extent(value);
    } else if (state_ == State::offset_list) {
      if (offsets_.size() == 2) {
        fail_tensor("data_offsets: expected 2 numbers [begin, end], got more");
      }
      offsets_.push_back(value);
    } else {
      unexpected(std::to_string(value));
    }
    return true;
  }

  bool number_integer(Json::number_integer_t value) { unexpected(std::to_string(value)); }
  bool number_float(Json::number_float_t /*value*/, const std::string& text) {
    unexpected(printable(text, 40));
  }
  bool null() { unexpected("null"); }
  bool boolean(bool value) { unexpected(value ? "true" : "false"); }
  bool binary(Json::binary_t& /*value*/) { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const Json::exception& error) {
    // The parser prefixes its own names and position; the reason starts at "syntax error".
    const std::string_view what = error.what();
    const size_t at = what.find("syntax error");
    fail_header(source_,
                fmt::format("expected a JSON header, got malformed JSON at byte {} of it: "
                            "{}",
                            position,
                            printable(at == std::string_view::npos ? what : what.substr(at), 200)));
  }

 private:
  enum class State {
    start,
    top,             // between tensors
    metadata,        // between pairs of metadata
    metadata_value,  // after a metadata key
    tensor,          // between fields of a tensor
    dtype,           // after "dtype"
    shape,           // after "shape", before its list
    extents,         // inside that list
    offsets,         // after "data_offsets", before its list
    offset_list,     // inside that list
    end,
  };

  void deepen() {
    // The states already reject most nesting; this bound is independent of them.
    if (++depth_ > kMaxSafetensorsDepth) {
      fail_header(source_, fmt::format("expected a header nested at most {} deep, got deeper",
                                       kMaxSafetensorsDepth));
    }
  }

  void tensor_name() {
    if (key_ == kMetadataKey) {
      if (metadata_seen_) {
        fail_header(source_, fmt::format("{} is given twice", kMetadataKey));
      }
      metadata_seen_ = true;
      return;
    }
  }

  void metadata_key() {
    if (header_.metadata.count(key_) != 0) {
      fail_header(source_, fmt::format("{}: '{}' is given twice", kMetadataKey, printable(key_)));
    }
    if (header_.metadata.size() >= kMaxMetadataEntries) {
      fail_header(source_, fmt::format("{}: expected at most {} entries, got more", kMetadataKey,
                                       with_commas(int64_t{kMaxMetadataEntries})));
    }
    state_ = State::metadata_value;
  }

  void begin_tensor() {
    entry_ = TensorEntry();
    entry_.name = key_;
    offsets_.clear();
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    state_ = State::tensor;
  }

  void tensor_field() {
    bool* seen = nullptr;
    if (key_ == "dtype") {
      seen = &seen_dtype_;
      state_ = State::dtype;
    } else if (key_ == "shape") {
      seen = &seen_shape_;
      state_ = State::shape;
    } else if (key_ == "data_offsets") {
      seen = &seen_offsets_;
      state_ = State::offsets;
    } else {
      fail_tensor(fmt::format("expected dtype, shape and data_offsets, got '{}'", printable(key_)));
    }
    if (std::exchange(*seen, true)) {
      fail_tensor(fmt::format("{} is given twice", key_));
    }
  }

  void end_tensor() {
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_) {
      fail_tensor(fmt::format("{} is missing", !seen_dtype_   ? "dtype"
                                               : !seen_shape_ ? "shape"
                                                              : "data_offsets"));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    const std::optional<int64_t> bytes = checked_bytes(entry_.dtype, entry_.shape);
    if (!bytes) {
      fail_tensor(fmt::format("shape {} of {} is too large to address", shape_text(entry_.shape),
                              dtype_name(entry_.dtype)));
    }
    if (entry_.end < entry_.begin) {
      fail_tensor(fmt::format("data_offsets: expected begin <= end, got [{}, {}]", entry_.begin,
                              entry_.end));
    }
    if (entry_.end - entry_.begin != static_cast<uint64_t>(*bytes)) {
      fail_tensor(
          fmt::format("expected {} bytes for shape {} of {}, got {} in data_offsets "
                      "[{}, {}]",
                      *bytes, shape_text(entry_.shape), dtype_name(entry_.dtype),
                      entry_.end - entry_.begin, entry_.begin, entry_.end));
    }
    header_.entries.push_back(std::move(entry_));
  }

  DType parse_dtype(const std::string& text) const {
    if (const std::optional<DType> dtype = dtype_from_name(text)) {
      return *dtype;
    }
    if (is_foreign_dtype(text)) {
      fail_tensor(fmt::format("dtype {} is a safetensors type that Rondo does not support; "
                              "expected one of {}",
                              printable(text), supported_dtypes()),
                  "convert the tensor to one of these first");
    }
    fail_tensor(fmt::format("unknown dtype \"{}\"; expected one of {}", printable(text),
                            supported_dtypes()));
  }

  void add_extent(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      fail_tensor(fmt::format("shape: expected extents below 2^63, got {}", value));
    }
    if (entry_.shape.size() == kMaxTensorRank) {
      fail_tensor(fmt::format("shape: expected at most {} dimensions, got more", kMaxTensorRank));
    }
    entry_.shape.push_back(static_cast<int64_t>(value));
  }

  [[noreturn]] void fail_tensor(const std::string& what, const std::string& advice = {}) const {
    fail_header(source_, fmt::format("tensor '{}': {}", printable(entry_.name), what), advice);
  }

  // Rejects a value of the wrong kind for the current state.
  [[noreturn]] void unexpected(const std::string& got) const {
    switch (state_) {
      case State::metadata_value:
        fail_header(source_, fmt::format("{}: '{}': expected text, got {}", kMetadataKey,
                                         printable(key_), got));
      case State::dtype:
        fail_tensor(fmt::format("dtype: expected text, got {}", got));
      case State::shape:
        fail_tensor(fmt::format("shape: expected a list of whole numbers, got {}", got));
      case State::offsets:
        fail_tensor(fmt::format("data_offsets: expected a list of 2 whole numbers, got {}", got));
      case State::extents:
        fail_tensor(fmt::format("shape: expected whole numbers between 0 and 2^63, got {}", got));
      case State::offset_list:
        fail_tensor(
            fmt::format("data_offsets: expected whole numbers between 0 and 2^63, got {}", got));
      case State::top:
        fail_header(source_, fmt::format("'{}': expected an object, got {}", printable(key_), got));
      default:
        fail_header(source_, fmt::format("expected a JSON object as header, got {}", got));
    }
  }

  const std::string& source_;
  SafetensorsHeader& header_;
  State state_ = State::start;
  int depth_ = 0;
  std::string key_;  // the latest
  bool metadata_seen_ = false;
  TensorEntry entry_;  // the tensor being read
  std::vector<uint64_t> offsets_;
  bool seen_dtype_ = false;
  bool seen_shape_ = false;
  bool seen_offsets_ = false;
};

// An upper bound on the number of tensors, without parsing: each has this key once.
size_t count_tensors(std::string_view text) {
  constexpr std::string_view kKey = "\"data_offsets\"";
  size_t count = 0;
  for (size_t at = text.find(kKey); at != std::string_view::npos && count <= kMaxTensorsPerFile;
       at = text.find(kKey, at + kKey.size())) {
    ++count;
  }
  return count;
}

}  // namespace

void parse_header_json(const char* begin, const char* end, const std::string& source,
                       SafetensorsHeader& header) {
  if (begin == end || *begin != '{') {
    fail_header(source, fmt::format("expected the header to start with '{{', got {}",
                                    begin == end ? "an empty header"
                                                 : fmt::format("byte 0x{:02x}",
                                                               static_cast<uint8_t>(*begin))));
  }
  // The parser takes a zero byte for the end of input and would ignore what follows.
  if (const void* zero = std::memchr(begin, 0, static_cast<size_t>(end - begin))) {
    fail_header(source, fmt::format("expected a JSON header, got a zero byte at byte {} of it",
                                    static_cast<const char*>(zero) - begin + 1));
  }
  const size_t tensors = count_tensors({begin, static_cast<size_t>(end - begin)});
  if (tensors > kMaxTensorsPerFile) {
    fail_header(source, fmt::format("expected at most {} tensors, got more",
                                    with_commas(int64_t{kMaxTensorsPerFile})));
  }
  header.entries.reserve(tensors);
  HeaderHandler handler(source, header);
  const bool complete = Json::sax_parse(begin, end, &handler);
  RONDO_ASSERT(complete);  // every failure throws
}

}  // namespace rondo
