// Spools: unnamed temporary files.
#include "rondo/data/token_spool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {

Spool::Spool(const std::string& folder) : folder_(folder) {
  std::string pattern = folder + "/.spool-XXXXXX";
  fd_ = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (fd_ < 0) {
    fail("create a temporary file in");
  }
  ::unlink(pattern.c_str());
}

Spool::~Spool() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, static_cast<size_t>(bytes_));
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void Spool::write(const void* data, size_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, at, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      fail("write a temporary file in");
    }
    at += written;
    size -= static_cast<size_t>(written);
    bytes_ += written;
  }
}

const uint8_t* Spool::map() {
  if (bytes_ == 0) {
    return nullptr;
  }
  if (mapping_ == nullptr) {
    void* mapping = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ, MAP_PRIVATE, fd_, 0);
    if (mapping == MAP_FAILED) {
      fail("map a temporary file in");
    }
    mapping_ = mapping;
  }
  return static_cast<const uint8_t*>(mapping_);
}

void Spool::fail(const char* doing) const {
  const int error = errno;
  const bool no_space = error == ENOSPC || error == EDQUOT;
  throw Error(
      ExitCode::io,
      fmt::format("{}: cannot {} it: {}{}", printable(folder_, PATH_MAX), doing,
                  std::system_category().message(error),
                  no_space ? fmt::format(" ({} bytes needed so far)", with_commas(bytes_)) : ""),
      no_space ? "free some space, or use a cache folder on another disk" : "");
}

void TokenSpool::add(const std::vector<int32_t>& tokens) {
  if (type_ == DType::u8) {
    add_as<uint8_t>(tokens);
  } else if (type_ == DType::i16) {
    add_as<int16_t>(tokens);
  } else {
    spool_.write(tokens.data(), tokens.size() * sizeof(int32_t));
  }
}

template <class Token>
void TokenSpool::add_as(const std::vector<int32_t>& tokens) {
  std::vector<Token> narrow(tokens.size());
  std::transform(tokens.begin(), tokens.end(), narrow.begin(),
                 [](int32_t token) { return static_cast<Token>(token); });
  spool_.write(narrow.data(), narrow.size() * sizeof(Token));
}

}  // namespace rondo
