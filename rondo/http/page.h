// The files of the web page at GET /, compiled in: rondo/http/page/*.
#pragma once

#include <string>
#include <string_view>

namespace rondo::http {

struct PageFile {
  const char* path;
  const char* content_type;
  std::string_view text;
};

// Null if it does not exist.
const PageFile* find_page_file(const std::string& path);

}  // namespace rondo::http
