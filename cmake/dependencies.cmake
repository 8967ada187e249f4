# The libraries we link. All from Debian 12 (tools/packages.txt); for another libtorch: -DCMAKE_PREFIX_PATH=/path/to/libtorch
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(Threads REQUIRED)
find_library(RONDO_ZSTD zstd REQUIRED)
find_library(RONDO_TURBOJPEG turbojpeg REQUIRED)
find_library(RONDO_SENTENCEPIECE sentencepiece REQUIRED)
find_library(RONDO_SENTENCEPIECE_TRAIN sentencepiece_train REQUIRED)
set(RONDO_BASE_LIBRARIES tomlplusplus::tomlplusplus nlohmann_json::nlohmann_json spdlog::spdlog fmt::fmt
    ZLIB::ZLIB PNG::PNG ${RONDO_TURBOJPEG} ${RONDO_ZSTD} Threads::Threads ${CMAKE_DL_LIBS})

if(RONDO_ENGINE)
  find_package(CLI11 REQUIRED)
  find_library(RONDO_GLOO gloo PATHS /usr/lib REQUIRED)
  find_path(RONDO_GLOO_INCLUDE gloo/allreduce.h REQUIRED)
  # RONDO_TORCH=/path, in the environment or with -D: a libtorch beside Debian's, such as tools/torch2.sh makes.
  set(RONDO_TORCH "$ENV{RONDO_TORCH}" CACHE PATH "Folder of another libtorch")
  find_package(Torch REQUIRED HINTS ${RONDO_TORCH})
  if(Torch_VERSION VERSION_GREATER_EQUAL 2)
    set(CMAKE_CXX_STANDARD 20)  # its headers need it
  endif()

  # Used by our kernels: vector instructions for several CPUs at once, threads, oneDNN's gemm.
  add_library(rondo_vectors INTERFACE)
  find_package(hwy REQUIRED)
  target_link_libraries(rondo_vectors INTERFACE hwy::hwy)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Without it at::parallel_for in our code is silently serial. Not with clang: its libomp would be a second
    # thread pool beside libtorch's libgomp, so clang builds (development, sanitizers) run our own loops serially.
    target_compile_options(rondo_vectors INTERFACE -fopenmp)
    target_link_options(rondo_vectors INTERFACE -fopenmp)
  endif()
  find_library(RONDO_DNNL dnnl REQUIRED)  # Debian's libtorch depends on it, but not on its header
  find_path(RONDO_DNNL_INCLUDE dnnl.h REQUIRED)
  target_link_libraries(rondo_vectors INTERFACE ${RONDO_DNNL})

  # torch, as one name. Headers of imported targets are system headers: no warnings from them.
  add_library(rondo_torch INTERFACE)
  target_link_libraries(rondo_torch INTERFACE rondo_vectors ${TORCH_LIBRARIES})
  target_include_directories(rondo_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  if(Torch_VERSION VERSION_GREATER_EQUAL 2)
    # PyPI's libtorch exports parts of the oneDNN inside it: ours must be found first, or it calls those.
    target_link_options(rondo_torch INTERFACE "SHELL:-Wl,--push-state,--no-as-needed ${RONDO_DNNL} -Wl,--pop-state")
  endif()
  separate_arguments(RONDO_TORCH_FLAGS UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(rondo_torch INTERFACE ${RONDO_TORCH_FLAGS})
  # Header only: model fingerprints are checksummed with it inlined.
  find_path(RONDO_XXHASH_INCLUDE xxhash.h REQUIRED)
  target_compile_definitions(rondo_torch INTERFACE XXH_INLINE_ALL)
endif()

if(RONDO_TESTS)
  find_package(GTest REQUIRED)
endif()
