// The commit of this build, which the build writes anew whenever it changes (cmake/commit.cmake).
#include "rondo/base/version.h"

#include <rondo_commit.h>  // made by the build

namespace rondo {

const char* build_commit() { return RONDO_COMMIT; }

}  // namespace rondo
