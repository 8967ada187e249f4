// What happens when a mapped file is cut short, or its disk fails, while it is read: the system
// sends SIGBUS. The command turns that into a message that names the file, and exit code 4.
#pragma once

#include <cstddef>
#include <string>

namespace rondo {

// From now on touching a lost part of a mapped file prints "rondo: PATH: ..." and leaves with
// ExitCode::io at once. Any other SIGBUS ends the process as ever. For programs, not for libraries:
// the handler is the whole process's.
void report_lost_mappings();

// MappedFile's own: which file lies where. So many as fit into a small table are remembered.
void note_mapping(const void* data, size_t size, const std::string& path);
void forget_mapping(const void* data);

}  // namespace rondo
