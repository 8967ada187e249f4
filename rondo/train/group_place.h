// Whether this process belongs to a group, its rank, and where to meet the others, as determined
// by the environment of torchrun, Slurm, Open MPI or `rondo train --workers`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rondo/base/shard.h"

namespace rondo {

// The user's options for the group; empty ones are taken from the environment.
struct GroupOptions {
  std::string file;         // rank 0 writes its address there
  std::string address;      // where rank 0 listens; used with `file`
  std::string secret_file;  // holds a secret shared by the group
  double timeout = 60;      // seconds to wait for another process
};

struct GroupPlace {
  Shard shard;
  int64_t local_size = 1;  // processes of the group on this machine
  std::string launcher;    // "torchrun"; for messages
  std::string address;     // of rank 0
  int64_t port = 0;        // where rank 0 listens; 0: any, written to `file`
  std::string file;
  std::string secret;
  double timeout = 60;
};

// The value of an environment variable, if set and not empty.
using Environment = std::function<std::optional<std::string>(const char*)>;
Environment process_environment();

// Nothing if the process runs alone. Error{usage} if the environment is inconsistent or does not
// say where to meet; Error{bad_input} or Error{io} for a bad secret file.
std::optional<GroupPlace> find_group(const GroupOptions& options, const Environment& environment);

// Set by `rondo train --workers N` for the processes it starts: the file through which they meet.
constexpr const char* kGroupFileVariable = "RONDO_GROUP_FILE";

// The first node of a Slurm node list: "node[03-17,21],other" → "node03".
std::string first_slurm_node(const std::string& list);

}  // namespace rondo
