// The verbs of the command: what each takes from the command line. A verb that needs torch is run by
// librondo_engine.so, which exports one C function per verb; the program itself stays light.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::cli {

struct ModelsOptions {
  std::string task;
  bool json = false;
};

struct InfoOptions {
  std::string model;
  std::vector<std::string> set;
  bool json = false;
  bool toml = false;
  int64_t image = 0;
  int64_t classes = 0;
  int64_t vocabulary = 0;
  int64_t tokens = 0;
};

struct ForwardOptions {
  std::string model;
  std::vector<std::string> set;
  std::string weights;
  std::string inputs;
  std::string outputs;
  std::string state_in;
  std::string state_out;
  std::vector<std::string> probes;
  bool train = false;
  bool gradients = false;
  uint64_t seed = 1;
  int64_t threads = 0;
};

struct ImportOptions {
  std::string program;
  std::string file;
  std::string config;
  std::vector<std::string> set;
  std::string output;
};

struct DoctorOptions {
  bool json = false;
};

// Torch-free.
void run_models(const ModelsOptions& options);
void run_info_toml(const InfoOptions& options);

}  // namespace rondo::cli

// In the engine. Each throws what the verb throws.
extern "C" {
void rondo_engine_info(const rondo::cli::InfoOptions& options);
void rondo_engine_forward(const rondo::cli::ForwardOptions& options);
void rondo_engine_import(const rondo::cli::ImportOptions& options);
void rondo_engine_doctor(const rondo::cli::DoctorOptions& options);
}
