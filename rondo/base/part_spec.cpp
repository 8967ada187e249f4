// Parsing of part specifications.
#include "rondo/base/part_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr std::string_view kByClass = "/class";
constexpr double kLargestEnd = 1e15;

[[noreturn]] void refuse_part(const std::string& spec, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", printable(spec, PATH_MAX), what),
              "write a part of a data set as #FIRST:LAST, for example #:-5% (all but the last "
              "5 %), #-1000: (the last 1,000 items) or, for images, #:450/class");
}

std::optional<PartEnd> parse_end(const std::string& spec, std::string text) {
  if (text.empty()) return std::nullopt;
  const std::string written = text;
  PartEnd end;
  end.from_end = text.front() == '-';
  text.erase(0, end.from_end ? 1 : 0);
  if (!text.empty() && text.back() == '%') end.unit = PartEnd::Unit::percent;
  if (!text.empty() && text.back() == 'B') end.unit = PartEnd::Unit::bytes;
  if (end.unit != PartEnd::Unit::items) text.pop_back();
  const bool fraction = end.unit == PartEnd::Unit::percent;
  const char* allowed = fraction ? "0123456789." : "0123456789";
  const char* stop = text.data() + text.size();
  const auto read = std::from_chars(text.data(), stop, end.amount);
  const bool number = !text.empty() && text.find_first_not_of(allowed) == std::string::npos &&
                      read.ec == std::errc() && read.ptr == stop;
  if (!number || end.amount > (fraction ? 100.0 : kLargestEnd)) {
    refuse_part(spec, fmt::format("expected a number, a percentage or a number of bytes such as "
                                  "100000B, got '{}'",
                                  printable(written)));
  }
  return end;
}

}  // namespace

bool PartSpec::uses(PartEnd::Unit unit) const {
  return (first && first->unit == unit) || (last && last->unit == unit);
}

PartSpec parse_part(const std::string& spec) {
  PartSpec part;
  part.path = spec;
  const size_t mark = spec.find_last_of('#');
  if (mark == std::string::npos || exists(spec)) return part;
  std::string range = spec.substr(mark + 1);
  part.path = spec.substr(0, mark);
  part.written = range;
  part.is_part = true;
  part.by_class = range.size() >= kByClass.size() &&
                  range.compare(range.size() - kByClass.size(), kByClass.size(), kByClass) == 0;
  if (part.by_class) range.resize(range.size() - kByClass.size());
  const std::vector<std::string> ends = split(range, ':');
  if (ends.size() != 2) {
    refuse_part(spec, fmt::format("'#{}' is not a part of a data set", printable(range)));
  }
  part.first = parse_end(spec, ends[0]);
  part.last = parse_end(spec, ends[1]);
  return part;
}

int64_t part_place(const std::optional<PartEnd>& end, int64_t size, int64_t otherwise) {
  if (!end) return otherwise;
  const double amount = end->unit == PartEnd::Unit::percent
                            ? std::floor(static_cast<double>(size) * end->amount / 100.0)
                            : end->amount;
  const double bounded = std::min(amount, static_cast<double>(size));
  const auto count = static_cast<int64_t>(bounded);
  return end->from_end ? size - count : count;
}

}  // namespace rondo
