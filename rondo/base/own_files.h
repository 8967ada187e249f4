// The locations of Rondo's library and of modules loaded at run time.
#pragma once

#include <string>

namespace rondo {

// The absolute folder of librondo_base.so, or of the program if linked statically.
std::string library_folder();

// The path of a module ("librondo_engine.so"): in rondo/ below an installed library, or next to it
// in a build tree. The file may not exist.
std::string module_path(const std::string& name);

}  // namespace rondo
