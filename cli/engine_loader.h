// Loads librondo_engine.so when a verb needs it: libtorch takes a quarter of a second to be there,
// which help, version and configuration errors should not wait for.
#pragma once

#include <string>

namespace rondo::cli {

// Address of an exported function of the engine. Error{failure} if the engine cannot be loaded.
void* engine_symbol(const char* name);

// Runs engine function `name`, of type void(const Options&).
template <class Options>
void run_engine(const char* name, const Options& options) {
  reinterpret_cast<void (*)(const Options&)>(engine_symbol(name))(options);
}

}  // namespace rondo::cli
