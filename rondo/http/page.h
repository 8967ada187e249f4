// The files of the page at GET /, compiled in: rondo/http/page/*.
#pragma once

#include <string>
#include <string_view>

namespace rondo::http {

struct PageFile {
  const char* path;
  const char* content_type;
  std::string_view text;
};

// Null if there is none.
const PageFile* find_page_file(const std::string& path);

}  // namespace rondo::http
