# How our own code is compiled and linked: standard, warnings, ccache, lld, sanitizers, and the helpers for targets.
set(CMAKE_CXX_STANDARD 17)  # libtorch 1.13's headers do not compile as C++20 with clang 14
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_RPATH "$ORIGIN")

find_program(RONDO_CCACHE ccache)
if(RONDO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # This sloppiness lets ccache reuse files compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${RONDO_CCACHE})
endif()

find_program(RONDO_LLD NAMES ld.lld)
if(RONDO_LLD)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--as-needed)  # Debian's torch target names libraries that we do not call

if(RONDO_SANITIZE)
  # vptr is excluded: it needs type information that libtorch's objects may not share with ours.
  add_compile_options(-fsanitize=${RONDO_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizers.ignore)
  endif()
  add_compile_definitions(RONDO_SANITIZED)
  add_link_options(-fsanitize=${RONDO_SANITIZE} -fno-sanitize=vptr)
endif()
if(RONDO_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(WARNING "RONDO_FUZZ needs clang (libFuzzer); the fuzz targets are left out")
  set(RONDO_FUZZ OFF)
endif()

# Warnings and the include root for a target of our own.
function(rondo_own_code target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
endfunction()

# A library of ours.
function(rondo_add_library target kind)
  add_library(${target} ${kind} ${ARGN})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  rondo_own_code(${target})
  if(RONDO_FUZZ AND target STREQUAL "rondo_base")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # coverage for libFuzzer
  endif()
endfunction()

# Exports only the symbols in cmake/exports/NAME.map.
function(rondo_exports target name)
  set(map ${PROJECT_SOURCE_DIR}/cmake/exports/${name}.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()

# Most of the compile time is spent on headers: torch takes 9 to 15 s per file, CLI11 and GoogleTest 5 to 10. The release build compiles files in
# batches.
function(rondo_in_batches target)
  if(RONDO_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()

# A target that includes torch: in batches for release, with a precompiled header (and clang) for development.
function(rondo_torch_target target)
  rondo_in_batches(${target})
  if(RONDO_PCH AND EXISTS ${PROJECT_SOURCE_DIR}/rondo/nn/torch.h)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # otherwise ccache never hits
    endif()
    if(target STREQUAL "rondo_library")
      target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/rondo/nn/torch.h)
    else()
      target_compile_options(${target} PRIVATE -fPIC)  # like the library, whose header it uses
      target_precompile_headers(${target} REUSE_FROM rondo_library)
    endif()
  endif()
endfunction()
