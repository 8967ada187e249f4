// Another program beside ours in a measurement: a script of bench/peers that builds its network,
// says "ready", and then does its work whenever it is told to. No torch here.
//
//   ours                    peer
//                           ready {"parameters": 6900000, ...}
//   go 3                    1.2034          seconds of three executions, by its own clock
//   memory                  512000000       most bytes ever resident
//   (end of input)          (leaves)
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rondo {

// The system's own interpreter, for which Debian packages torch; else the first on the path.
std::string usual_python();

// How peers are started.
struct PeerOptions {
  std::string python = usual_python();
  std::string folder;  // of the scripts
  int64_t threads = 1;
  bool processor_time = false;  // they tell processor time over threads, not that of the wall
};

class Peer {
 public:
  // Starts `script` and waits until it is ready or has gone.
  Peer(const PeerOptions& options, const std::string& script,
       const std::vector<std::string>& arguments);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool ready() const { return ready_; }
  // Why it is not, or no longer: "python3-torch is not installed".
  const std::string& trouble() const { return trouble_; }
  // What it said about itself.
  const nlohmann::json& metadata() const { return metadata_; }

  // Seconds of so many executions; not a number once it has gone.
  double go(int64_t times);
  int64_t peak_bytes();

 private:
  void start(const std::vector<std::string>& words);
  void greet();
  std::string ask(const std::string& line);
  bool read_line(std::string& line, double seconds);
  void fail(const std::string& why);
  std::string how_it_ended();

  std::string name_;
  pid_t child_ = -1;
  int channel_ = -1;
  std::string unread_;
  std::string trouble_;
  nlohmann::json metadata_;
  bool ready_ = false;
};

// bench/peers of the installation or the source tree (share_folder()). Empty if there is none.
std::string find_peers();

}  // namespace rondo
