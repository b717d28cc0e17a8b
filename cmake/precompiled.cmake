# Headers that most sources include are parsed once for all modules and once for all tests, not for every source. Sources
# still include what they use: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without, and shows an include that is missing.
set(KINTSUGI_PRECOMPILED
  <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <set> <span> <string> <vector>
  <fmt/format.h>)

# What may use a precompiled header is compiled with the flags that the header was compiled with: the same defines of
# fmt, and no position independent code.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "// Empty: a target needs a source.\n")
add_library(precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
target_link_libraries(precompiled PRIVATE ${LIBS_base})
target_precompile_headers(precompiled PRIVATE ${KINTSUGI_PRECOMPILED})
