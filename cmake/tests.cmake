# Tests, fuzz targets, examples and benchmarks. A folder that does not exist yet adds nothing.
#
#   base_tests     tests/<folder of rondo_base>/*_test.cpp        no torch, one ctest entry per case
#   cli_tests      tests/{cli,faults}/*_test.cpp                  no torch, runs the built program (RONDO_BINARY)
#   faults_preload tests/faults/preload.cpp                       no torch, preloaded by some of cli_tests
#   other_engine   tests/cli/other_engine.cpp                     no torch, an engine that the program must reject
#   faults_short   tests/faults/run                               Python: kills, mutated files and full disks, in short
#   group_short    tests/group/run                                Python: training by several processes, some of them killed
#   serve_short    tests/serve/run                                Python: rondo serve with honest and hostile clients, in short
#   serve_baseline tests/serve/baseline.cpp                       torch; only on request: the baseline of tests/serve/speed.py
#   engine_tests   tests/<other folder>/*_test.cpp                torch, tests/support/*.cpp compiled in; as shards,
#                                                                 for starting a process with torch costs half a second
#   thread_tests   RONDO_THREAD_TESTS                             torch; in the preset tsan only
#   memory_tests   tests/{kernels,nn,recurrence,infer,serve}/*_test.cpp torch; in the preset asan only
#   documents      tests/documents/run                            Python: commands that documents show, with few steps
#   newcomer       tests/newcomer/run                             Python: from a text file to an exported model, in short
#   package        tests/package/run                              Python: installs, builds examples/consumer against it
#   rondo_bench    bench/kernels/*.cpp                            torch, with Google Benchmark; only on request
#   kernel_instructions  tests/instructions/kernels.cpp           no torch; run by tools/instructions.sh; g++ only
#   <name>_fuzz    tests/fuzz/<name>_fuzz.cpp                     clang and RONDO_FUZZ only
enable_testing()
include(GoogleTest)
find_program(RONDO_PYTHON python3)  # without: no fault run and no test of the package
set(RONDO_TEST_ENVIRONMENT OMP_WAIT_POLICY=passive)
set(RONDO_ENGINE_SHARDS 8)

# Cases of cli_tests that take many seconds each, as GoogleTest filters. They have the label slow: only ./check --all runs them.
set(RONDO_SLOW_CASES
    Bench.AnotherNetworkIsNoPeer
    Bench.JsonHoldsLimitsCanariesAndClaims
    Bench.PeersTakeTurnsByTheirProtocol
    Bench.WithoutPeersRatiosAreLeftOut
    FileFaults.EveryVerbThatRunsAModelComparesChecksums
    FileFaults.ForgedStatesAreRefused
    FileFaults.WeightsThatAreNotFiniteAreRefused
    Studies.LandscapeOfDeepNetworksSharesAxes
    Table.KilledTwentyTimesEndsWithTheSameBytes
    Thirty/KilledTraining.*)

# Suites of cli_tests that begin by training a model: one ctest entry each, so that it is trained once.
set(RONDO_SUITES_WITH_A_MODEL ClassifyVerb FileFaults Studies TranslationVerbs)

# Tests of code used by several threads at once: ./check --all runs them under ThreadSanitizer.
set(RONDO_THREAD_TESTS
    tests/base/log_test.cpp
    tests/base/progress_test.cpp
    tests/http/server_test.cpp
    tests/image/pipeline_test.cpp
    tests/image/pipeline_limits_test.cpp
    tests/image/read_ahead_test.cpp
    tests/infer/session_test.cpp
    tests/kernels/team_test.cpp
    tests/serve/server_test.cpp
    tests/nn/allocator_test.cpp)
# Those of them that are meaningless there: memory is counted in a process that also holds the sanitizer's, or is forked; models run by one thread.
set(RONDO_THREAD_TESTS_LEFT_OUT
    Zoo/SessionOf.*
    TeamWork.WithoutRoomForThreadsItIsSmaller
    InstalledAllocator.*Grow
    InstalledAllocator.SurvivesForkWhileOthersAllocate
    CachingMemory.AnswersWithNothingWhenThereIsNoMore)

# Cases of memory_tests that are meaningless there: memory is counted in a process that also holds the sanitizer's, or is limited.
set(RONDO_MEMORY_TESTS_LEFT_OUT
    TeamWork.WithoutRoomForThreadsItIsSmaller
    InstalledAllocator.*
    CachingMemory.*)

# One GoogleTest program.
function(rondo_test_program target)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  rondo_own_code(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # half the time to compile, the same to run
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE RONDO_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures"
                                               RONDO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# One ctest entry per case, or per suite for SUITES. SLOW: GoogleTest filters of cases with the label slow.
function(rondo_discover_tests target)
  cmake_parse_arguments(arg "" "" "SLOW;SUITES" ${ARGN})
  set(how DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${target}.")
  set(properties TIMEOUT 120 ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
  list(JOIN arg_SLOW ":" slow)
  list(TRANSFORM arg_SUITES APPEND ".*" OUTPUT_VARIABLE suites)
  list(JOIN suites ":" suites)
  gtest_discover_tests(${target} ${how} TEST_FILTER "-${slow}:${suites}" PROPERTIES "${properties}")
  if(slow)
    gtest_discover_tests(${target} ${how} TEST_FILTER "${slow}" PROPERTIES "${properties}" LABELS slow)
  endif()
  foreach(suite IN LISTS arg_SUITES)
    add_test(NAME ${target}.${suite} COMMAND ${target} --gtest_filter=${suite}.*-${slow})
    set_tests_properties(${target}.${suite} PROPERTIES TIMEOUT 300 ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}" COST 30)
  endforeach()
endfunction()

function(rondo_add_base_tests)
  rondo_folders(folders base)
  list(TRANSFORM folders REPLACE "(.+)" "tests/\\1/*_test.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(sources)
    rondo_test_program(base_tests SOURCES ${sources} LIBRARIES rondo_base)
    rondo_in_batches(base_tests)
    rondo_discover_tests(base_tests)
  endif()
endfunction()

function(rondo_add_cli_tests)
  file(GLOB sources CONFIGURE_DEPENDS tests/cli/*_test.cpp tests/faults/*_test.cpp)
  if(sources)
    rondo_test_program(cli_tests SOURCES ${sources} LIBRARIES rondo_base)
    rondo_in_batches(cli_tests)
    add_library(faults_preload MODULE tests/faults/preload.cpp)
    rondo_own_code(faults_preload)
    target_compile_options(faults_preload PRIVATE -Wno-unknown-pragmas -fno-sanitize=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # like our kernels (dependencies.cmake)
      target_compile_options(faults_preload PRIVATE -fopenmp)
      target_link_options(faults_preload PRIVATE -fopenmp)
    endif()
    add_library(other_engine MODULE tests/cli/other_engine.cpp)
    rondo_own_code(other_engine)
    target_compile_definitions(cli_tests PRIVATE RONDO_BINARY="$<TARGET_FILE:rondo>"
                                                 RONDO_FAULTS_PRELOAD="$<TARGET_FILE:faults_preload>"
                                                 RONDO_OTHER_ENGINE="$<TARGET_FILE:other_engine>")
    add_dependencies(cli_tests rondo faults_preload other_engine ${RONDO_EXAMPLE_TARGETS})  # tests also run the examples
    rondo_discover_tests(cli_tests SLOW ${RONDO_SLOW_CASES} SUITES ${RONDO_SUITES_WITH_A_MODEL})
    if(RONDO_PYTHON)
      add_test(NAME faults_short COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/faults/run --binary $<TARGET_FILE:rondo>)
      set_tests_properties(faults_short PROPERTIES TIMEOUT 600 LABELS slow ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
      add_test(NAME group_short COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/group/run --binary $<TARGET_FILE:rondo>)
      set_tests_properties(group_short PROPERTIES TIMEOUT 1200 LABELS slow)
      add_test(NAME documents COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/documents/run --build ${PROJECT_BINARY_DIR})
      set_tests_properties(documents PROPERTIES TIMEOUT 900 LABELS slow ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
      add_test(NAME newcomer COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/newcomer/run --build ${PROJECT_BINARY_DIR} --steps 8)
      set_tests_properties(newcomer PROPERTIES TIMEOUT 900 LABELS slow ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
      add_test(NAME serve_short COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/serve/run --binary $<TARGET_FILE:rondo>)
      set_tests_properties(serve_short PROPERTIES TIMEOUT 900 COST 60 ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
      if(NOT RONDO_SANITIZE)  # consumers are compiled without it
        add_test(NAME package COMMAND ${RONDO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/package/run --build ${PROJECT_BINARY_DIR})
        set_tests_properties(package PROPERTIES TIMEOUT 600 COST 30 LABELS package ENVIRONMENT "${RONDO_TEST_ENVIRONMENT}")
      endif()
    endif()
  endif()
endfunction()

function(rondo_add_engine_tests)
  file(GLOB sources CONFIGURE_DEPENDS tests/*/*_test.cpp)
  rondo_folders(folders base)
  list(JOIN folders "|" folders)
  list(FILTER sources EXCLUDE REGEX "/tests/(${folders}|cli|faults)/[^/]*$")
  if(NOT sources)
    return()
  endif()
  file(GLOB support CONFIGURE_DEPENDS tests/support/*.cpp)
  rondo_test_program(engine_tests SOURCES ${sources} ${support} LIBRARIES rondo_verbs)
  rondo_torch_target(engine_tests)
  set(environment ${RONDO_TEST_ENVIRONMENT} GTEST_TOTAL_SHARDS=${RONDO_ENGINE_SHARDS})
  if(RONDO_SANITIZE)
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0)  # libtorch's own start-up allocations
  endif()
  math(EXPR last "${RONDO_ENGINE_SHARDS} - 1")
  foreach(index RANGE ${last})
    add_test(NAME engine_tests.shard${index} COMMAND engine_tests)
    set_tests_properties(engine_tests.shard${index} PROPERTIES
                         TIMEOUT 900 COST 20 ENVIRONMENT "${environment};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# Code that reads and writes plain memory, for AddressSanitizer and UndefinedBehaviorSanitizer. All of engine_tests would take too long.
function(rondo_add_memory_tests)
  file(GLOB sources CONFIGURE_DEPENDS tests/kernels/*_test.cpp tests/nn/*_test.cpp tests/recurrence/*_test.cpp tests/infer/*_test.cpp
       tests/serve/*_test.cpp)
  file(GLOB support CONFIGURE_DEPENDS tests/support/*.cpp)
  rondo_test_program(memory_tests SOURCES ${sources} ${support} LIBRARIES rondo::rondo)
  set_target_properties(memory_tests PROPERTIES EXCLUDE_FROM_ALL ON)
  rondo_torch_target(memory_tests)
  list(JOIN RONDO_MEMORY_TESTS_LEFT_OUT ":" left_out)
  foreach(shard RANGE 3)
    add_test(NAME memory_tests.shard${shard} COMMAND memory_tests --gtest_filter=-${left_out})
    set_tests_properties(memory_tests.shard${shard} PROPERTIES TIMEOUT 1200 ENVIRONMENT  # no leaks: libtorch's own start-up allocations
                         "${RONDO_TEST_ENVIRONMENT};ASAN_OPTIONS=detect_leaks=0;GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# libtorch and libgomp are not instrumented: what happens between them is not checked.
function(rondo_add_thread_tests)
  file(GLOB support CONFIGURE_DEPENDS tests/support/*.cpp)
  rondo_test_program(thread_tests SOURCES ${RONDO_THREAD_TESTS} ${support} LIBRARIES rondo::rondo)
  set_target_properties(thread_tests PROPERTIES EXCLUDE_FROM_ALL ON)
  rondo_torch_target(thread_tests)
  list(JOIN RONDO_THREAD_TESTS_LEFT_OUT ":" left_out)
  add_test(NAME thread_tests COMMAND thread_tests --gtest_filter=-${left_out})
  add_dependencies(thread_tests example_serve_documents)
  add_test(NAME thread_tests.example COMMAND example_serve_documents)
  set_tests_properties(thread_tests thread_tests.example PROPERTIES TIMEOUT 900 ENVIRONMENT
                       "${RONDO_TEST_ENVIRONMENT};TSAN_OPTIONS=halt_on_error=1 ignore_noninstrumented_modules=1")
endfunction()

function(rondo_add_fuzz_targets)
  file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
  add_custom_target(fuzzers)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source})
    rondo_own_code(${name})
    target_link_libraries(${name} PRIVATE rondo_base)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    add_dependencies(fuzzers ${name})
  endforeach()
endfunction()

function(rondo_add_examples)
  file(GLOB sources CONFIGURE_DEPENDS examples/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    rondo_own_code(example_${name})
    target_link_libraries(example_${name} PRIVATE rondo::rondo)
    rondo_torch_target(example_${name})
    list(APPEND targets example_${name})
  endforeach()
  set(RONDO_EXAMPLE_TARGETS ${targets} PARENT_SCOPE)
endfunction()

# Its counts belong to one compiler.
function(rondo_add_instructions)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_executable(kernel_instructions tests/instructions/kernels.cpp)
    rondo_own_code(kernel_instructions)
    target_link_libraries(kernel_instructions PRIVATE rondo_kernels)
  endif()
endfunction()

# The baseline with which tests/serve/speed.py compares a server.
function(rondo_add_serve_baseline)
  add_executable(serve_baseline EXCLUDE_FROM_ALL tests/serve/baseline.cpp)
  rondo_own_code(serve_baseline)
  target_link_libraries(serve_baseline PRIVATE rondo::rondo)
  rondo_torch_target(serve_baseline)
endfunction()

function(rondo_add_bench)
  file(GLOB sources CONFIGURE_DEPENDS bench/kernels/*.cpp)
  find_package(benchmark QUIET)
  if(sources AND benchmark_FOUND)
    add_executable(rondo_bench EXCLUDE_FROM_ALL ${sources})
    rondo_own_code(rondo_bench)
    target_link_libraries(rondo_bench PRIVATE rondo_verbs benchmark::benchmark benchmark::benchmark_main)
    rondo_torch_target(rondo_bench)
  endif()
endfunction()

if(RONDO_TESTS)
  rondo_add_base_tests()
endif()
if(RONDO_FUZZ)
  rondo_add_fuzz_targets()
endif()
if(RONDO_ENGINE)
  if(RONDO_EXAMPLES)
    rondo_add_examples()
  endif()
  if(RONDO_TESTS)
    rondo_add_engine_tests()
    rondo_add_cli_tests()
    rondo_add_instructions()
    rondo_add_serve_baseline()
    if(RONDO_SANITIZE MATCHES thread)
      rondo_add_thread_tests()
    elseif(RONDO_SANITIZE)
      rondo_add_memory_tests()
    endif()
  endif()
  rondo_add_bench()
endif()
