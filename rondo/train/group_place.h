// Whether this process is one of a group, which one, and where the others are met: by the
// environment of torchrun, Slurm or Open MPI, or by that of `rondo train --workers`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rondo/base/shard.h"

namespace rondo {

// What a user may say about the group; what is empty is taken from the environment.
struct GroupOptions {
  std::string file;         // rank 0 leaves its address there
  std::string address;      // of rank 0, with `file`: where it listens
  std::string secret_file;  // known to all processes of the group and to nobody else
  double timeout = 60;      // seconds to wait for another process
};

struct GroupPlace {
  Shard shard;
  int64_t local_size = 1;  // processes of the group on this machine
  std::string launcher;    // "torchrun"; for messages
  std::string address;     // of rank 0
  int64_t port = 0;        // rank 0 listens there; 0: at any, which `file` says
  std::string file;
  std::string secret;
  double timeout = 60;
};

// The value of a variable, if it is set and not empty.
using Environment = std::function<std::optional<std::string>(const char*)>;
Environment process_environment();

// Nothing if the process is alone. Error{usage} where the environment contradicts itself or does
// not say where to meet; Error{bad_input} and Error{io} for the file of the secret.
std::optional<GroupPlace> find_group(const GroupOptions& options, const Environment& environment);

// Set by `rondo train --workers N` for the processes it starts: the file by which they meet.
constexpr const char* kGroupFileVariable = "RONDO_GROUP_FILE";

// The first machine of a list as Slurm writes it: "node[03-17,21],other" → "node03".
std::string first_slurm_node(const std::string& list);

}  // namespace rondo
