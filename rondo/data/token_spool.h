// Arrays that grow on disk while a cache is built, to keep memory use low. Internal to rondo/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/safetensors.h"

namespace rondo {

// Bytes in an unnamed file, so that a killed process leaves nothing behind. Error{io}, with advice
// if the disk is full.
class Spool {
 public:
  explicit Spool(const std::string& folder);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void write(const void* data, size_t size);
  int64_t bytes() const { return bytes_; }

  // All of it, for the lifetime of this object; no write() after this. Null if empty.
  const uint8_t* map();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string folder_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  void* mapping_ = nullptr;
};

// Tokens in their final width.
class TokenSpool {
 public:
  TokenSpool(const std::string& folder, DType type) : spool_(folder), type_(type) {}

  void add(const std::vector<int32_t>& tokens);
  int64_t count() const { return spool_.bytes() / dtype_size(type_); }
  DType type() const { return type_; }
  const uint8_t* map() { return spool_.map(); }  // as for Spool

 private:
  template <class Token>
  void add_as(const std::vector<int32_t>& tokens);

  Spool spool_;
  DType type_;
};

}  // namespace rondo
