// Request targets and forms.
#include "rondo/http/target.h"

#include "rondo/http/api_error.h"

namespace rondo::http {
namespace {

constexpr size_t kMostParts = 16;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void parse_query(std::string_view text, std::map<std::string, std::string>& query) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : pair.substr(equals + 1);
    query[percent_decoded(pair.substr(0, equals), true)] = percent_decoded(value, true);
  }
}

// The value of `key` in a header like: form-data; name="image"; filename="a.png"
std::string parameter(std::string_view header, std::string_view key) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';', at + 1)) {
    std::string_view rest = header.substr(at + 1);
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    if (rest.substr(0, key.size()) != key || rest.substr(key.size(), 1) != "=") continue;
    rest.remove_prefix(key.size() + 1);
    if (!rest.empty() && rest.front() == '"') {
      rest.remove_prefix(1);
      return std::string(rest.substr(0, rest.find('"')));
    }
    return std::string(rest.substr(0, rest.find_first_of("; \t\r\n")));
  }
  return {};
}

// The name of a part, from its header lines.
std::string part_name(std::string_view head) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    std::string name(line.substr(0, line.find(':')));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (name == "content-disposition") return parameter(line, "name");
  }
  return {};
}

}  // namespace

std::string percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        throw ApiError(400, "the target has a '%' without two hexadecimal digits");
      }
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

void parse_target(Request& request) {
  const std::string_view target = request.target;
  if (target.empty() || target.front() != '/') {
    throw ApiError(400, "the target must be a path that starts with '/'");
  }
  const size_t question = target.find('?');
  request.path = percent_decoded(target.substr(0, question), false);
  if (question != std::string_view::npos) parse_query(target.substr(question + 1), request.query);
}

std::map<std::string, std::string_view> parse_multipart(const std::string& content_type,
                                                        std::string_view body) {
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > 70) {
    throw ApiError(400, "multipart/form-data requires a boundary of 1 to 70 characters");
  }
  const std::string mark = "--" + boundary;
  const std::string next_mark = "\r\n" + mark;
  const auto refuse = [] { throw ApiError(400, "the multipart body is malformed"); };
  if (body.substr(0, mark.size()) != mark) refuse();
  body.remove_prefix(mark.size());
  std::map<std::string, std::string_view> parts;
  while (body.substr(0, 2) != "--") {
    if (body.substr(0, 2) != "\r\n" || parts.size() >= kMostParts) refuse();
    body.remove_prefix(2);
    const size_t head = body.find("\r\n\r\n");
    if (head == std::string_view::npos) refuse();
    const std::string name = part_name(body.substr(0, head));
    body.remove_prefix(head + 4);
    const size_t end = body.find(next_mark);
    if (end == std::string_view::npos || name.empty()) refuse();
    parts.emplace(name, body.substr(0, end));
    body.remove_prefix(end + next_mark.size());
  }
  return parts;
}

bool equal_in_constant_time(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<unsigned char>(given[i] ^ other);
  }
  return difference == 0;
}

std::string host_of(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    return std::string(authority.substr(1, authority.find(']') - 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace rondo::http
