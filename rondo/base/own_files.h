// Where Rondo's own library is, and the modules that are loaded while the program runs.
#pragma once

#include <string>

namespace rondo {

// The folder of librondo_base.so, absolute; of the program if that was linked statically.
std::string library_folder();

// The path of a module ("librondo_engine.so"): in rondo/ below the library of an installation, or
// beside it in a build tree. Whether it is there is not said.
std::string module_path(const std::string& name);

}  // namespace rondo
