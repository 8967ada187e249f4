// The environment variables by which launchers tell each process its place in a group.
#pragma once

#include <optional>
#include <string>

namespace rondo {

// Variables for the rank, the group size and the group size on this machine.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_size;
};
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // Not SLURM_NTASKS, which is also set in a batch script that starts no step.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}};

// The launcher that started this process, or null. `value_of` gives a variable's value, if set and
// not empty.
template <class Environment>
const Launcher* find_launcher(const Environment& value_of) {
  for (const Launcher& launcher : kLaunchers) {
    if (value_of(launcher.rank) && value_of(launcher.size)) return &launcher;
  }
  return nullptr;
}

}  // namespace rondo
