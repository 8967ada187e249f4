// The kernel raises SIGBUS when a mapped file is truncated, or its disk fails, during a read. The
// command turns that into a message that names the file, and exit code 4.
#pragma once

#include <cstddef>
#include <string>

namespace rondo {

// From now on, accessing a lost part of a mapped file prints "rondo: PATH: ..." and exits
// immediately with ExitCode::io. Any other SIGBUS kills the process as usual. For programs, not
// libraries: the handler is process-wide.
void report_lost_mappings();

// For MappedFile: records which file is mapped where. Mappings beyond a small table are dropped.
void note_mapping(const void* data, size_t size, const std::string& path);
void forget_mapping(const void* data);

}  // namespace rondo
