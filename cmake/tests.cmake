# add_test_program(NAME [PREFIX TEXT] SOURCE...): a program of tests, each of which ctest runs by itself and calls by its
# name behind the prefix.
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)
set(KINTSUGI_SHARED "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Real inputs for tests, if there are any")

# What every test program has: GoogleTest, the one source that says where this build and its inputs are, regular
# expressions, a checker of HTML pages, and the command as a process. Tests are compiled with less optimization than what
# they test, since they are run once; g++ 12 then warns of an array that is too small where strings are joined.
add_library(test_base STATIC)
foreach(source markup paths patterns process)
  target_sources(test_base PRIVATE ${PROJECT_SOURCE_DIR}/tests/${source}.cpp)
endforeach()
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/paths.cpp PROPERTIES COMPILE_DEFINITIONS
  "KINTSUGI_SHARED=\"${KINTSUGI_SHARED}\";KINTSUGI_SOURCE=\"${PROJECT_SOURCE_DIR}\";KINTSUGI_COMMAND=\"${PROJECT_BINARY_DIR}/app/kintsugi\"")
target_compile_options(test_base PUBLIC $<$<CONFIG:Release>:-O1 -Wno-array-bounds>)
target_link_libraries(test_base PUBLIC GTest::gtest_main base)
target_precompile_headers(test_base PRIVATE ${KINTSUGI_PRECOMPILED} <gtest/gtest.h>)

function(add_test_program name)
  cmake_parse_arguments(test "" PREFIX "" ${ARGN})
  add_executable(${name} ${test_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE test_base)
  target_precompile_headers(${name} REUSE_FROM test_base)
  if(name STREQUAL comm_test)  # ranks that are stopped, against time limits of less than a second: one test at a time
    gtest_discover_tests(${name} TEST_FILTER "OverOneMpi.*" TEST_LIST alone DISCOVERY_TIMEOUT 60 PROPERTIES RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${name} TEST_FILTER "-OverOneMpi.*" TEST_PREFIX "${test_PREFIX}" DISCOVERY_TIMEOUT 60)
endfunction()
