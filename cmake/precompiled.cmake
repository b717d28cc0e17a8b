# Headers that most sources include are parsed once for all modules and once for all tests, not for every source. Sources
# still include what they use: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without, and shows an include that is missing.
set(KINTSUGI_PRECOMPILED
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <thread>
  <tuple> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# What may use a precompiled header is compiled with the flags that the header was compiled with: the same defines of
# fmt, and position independent code or not. So there is one header for most modules and one for those that are part
# of loadable transports too.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "// Empty: a target needs a source.\n")
function(add_precompiled name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(${name} PRIVATE ${LIBS_base})
  target_precompile_headers(${name} PRIVATE ${KINTSUGI_PRECOMPILED} ${ARGN})
endfunction()
add_precompiled(precompiled)
add_precompiled(precompiled_pic)
set_target_properties(precompiled_pic PROPERTIES POSITION_INDEPENDENT_CODE ON)
