# The module for NVIDIA's devices, where nvcc is there: the same kernels as the emulation has, the runtime, and the
# libraries that are there. It has its own copy of what it uses of base and tensor, as the modules for MPI have. nvcc is
# called by rules of our own: CMake's language CUDA knows no C++20 for every pair of its version and nvcc's.
option(KINTSUGI_CUDA "Build the module for NVIDIA's devices where nvcc is there" ON)
set(KINTSUGI_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "The generations to compile for")
if(NOT KINTSUGI_CUDA)
  return()
endif()
find_program(KINTSUGI_NVCC nvcc HINTS /usr/local/cuda/bin)
if(NOT KINTSUGI_NVCC)
  message(STATUS "No nvcc: this build has no module for CUDA")
  return()
endif()
get_filename_component(nvcc_real ${KINTSUGI_NVCC} REALPATH)
get_filename_component(cuda_root ${nvcc_real}/../.. ABSOLUTE)

set(nvcc_launcher)
if(CCACHE)
  set(nvcc_launcher ${CCACHE})
endif()
set(nvcc_flags -std=c++20 -O3 -DFMT_USE_CONSTEXPR=1 --expt-relaxed-constexpr -lineinfo -Xptxas=-v
  -Xcompiler=-fPIC,-fvisibility=hidden -I${PROJECT_SOURCE_DIR})
# Attention and convolutions by cuDNN, where its headers and those of its frontend are: of a package, or of NVIDIA's wheels for Python.
set(KINTSUGI_CUDNN "$ENV{KINTSUGI_CUDNN}" CACHE STRING "Folders with cudnn.h and cudnn_frontend.h, where they are not found by themselves")
set(cudnn_folders ${KINTSUGI_CUDNN} ${cuda_root}/include)
find_program(python3 python3)
if(python3)
  execute_process(COMMAND ${python3} -c "import site; print(';'.join(f + e for f in site.getsitepackages()
    + [site.getusersitepackages()] for e in ('/include', '/nvidia/cudnn/include')))"
    OUTPUT_VARIABLE wheel_folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND cudnn_folders ${wheel_folders})
endif()
find_path(cudnn_headers cudnn_graph.h HINTS ${cudnn_folders})
find_path(cudnn_frontend_headers cudnn_frontend.h HINTS ${cudnn_folders})
if(cudnn_headers AND cudnn_frontend_headers)
  set(cudnn_source kintsugi/kernels/gpu/cuda/cudnn.cpp kintsugi/kernels/gpu/cuda/cudnn_convolution.cpp
    kintsugi/kernels/gpu/cuda/cudnn_library.cpp)
  set_source_files_properties(${cudnn_source} PROPERTIES COMPILE_OPTIONS "-w;-O1" INCLUDE_DIRECTORIES
    "${cudnn_frontend_headers};${cudnn_headers};${cuda_root}/include")
else()
  set(cudnn_source kintsugi/kernels/gpu/cuda/no_cudnn.cpp)
  message(STATUS "No headers of cuDNN and its frontend: attention and convolutions on NVIDIA's devices are by our own kernels alone")
endif()
# One intermediate code, of the oldest generation, from which the code of each is made: that takes half the time. It is
# kept too, for generations to come.
list(SORT KINTSUGI_CUDA_ARCHITECTURES COMPARE NATURAL)
list(GET KINTSUGI_CUDA_ARCHITECTURES 0 oldest)
list(TRANSFORM KINTSUGI_CUDA_ARCHITECTURES PREPEND ,sm_ OUTPUT_VARIABLE codes)
string(REPLACE ";" "" codes "${codes}")
set(nvcc_codes "-gencode=arch=compute_${oldest},code=[compute_${oldest}${codes}]")
# What uses the instructions of generation 9.0 alone (kernels/gpu/cuda/four_warps.h) has an intermediate code of its own.
string(REPLACE ",sm_90" "" others "${codes}")
set(nvcc_codes_with_90a ${nvcc_codes})
if(NOT others STREQUAL codes)
  set(nvcc_codes_with_90a "-gencode=arch=compute_${oldest},code=[compute_${oldest}${others}]"
    -gencode=arch=compute_90a,code=sm_90a)
endif()
set(with_90a attention attention_grad)
# What uses those that came with 9.0 and stayed (device/gpu.h, launch_overlapping) has one of 9.0 beside the oldest.
set(before_90 ${KINTSUGI_CUDA_ARCHITECTURES})
list(FILTER before_90 INCLUDE REGEX "^[78][0-9]$")
set(from_90 ${KINTSUGI_CUDA_ARCHITECTURES})
list(FILTER from_90 EXCLUDE REGEX "^[78][0-9]$")
set(nvcc_codes_with_90)
foreach(list before_90 from_90)
  if(${list})
    list(GET ${list} 0 first)
    list(TRANSFORM ${list} PREPEND ,sm_)
    string(REPLACE ";" "" ${list} "${${list}}")
    list(APPEND nvcc_codes_with_90 "-gencode=arch=compute_${first},code=[compute_${first}${${list}}]")
  endif()
endforeach()
set(with_90 attention_few batch_norm channel_scale elementwise layout norm position rotary sums thin)
file(GLOB cuda_sources CONFIGURE_DEPENDS 
  kintsugi/*/gpu/*.cuh kintsugi/device/cuda/*.cu kintsugi/kernels/gpu/cuda/*.cu)
list(REMOVE_ITEM cuda_sources ${PROJECT_SOURCE_DIR}/kintsugi/kernels/gpu/common.cuh)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
foreach(source IN LISTS cuda_sources)
  get_filename_component(name ${source} NAME_WE)
  set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
  set(gencode ${nvcc_codes})
  if(name IN_LIST with_90a)
    set(gencode ${nvcc_codes_with_90a})
  elseif(name IN_LIST with_90)
    set(gencode ${nvcc_codes_with_90})
  endif()
  add_custom_command(OUTPUT ${object} BYPRODUCTS ${object}.resources DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMENT "nvcc ${name}"
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${object} ${nvcc_launcher} ${KINTSUGI_NVCC} ${nvcc_flags} ${gencode} -MD -MF ${object}.d
      -MT ${object} -x cu -c ${source} -o ${object})
  list(APPEND cuda_objects ${object})
endforeach()
add_library(kintsugi_cuda MODULE ${cuda_objects} kintsugi/kernels/kernel_call.cpp kintsugi/kernels/parts.cpp
  kintsugi/kernels/rotary_frequencies.cpp kintsugi/kernels/halo.cpp kintsugi/kernels/pixel_scale.cpp ${cudnn_source})
set_source_files_properties(${cuda_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(kintsugi_cuda PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} UNITY_BUILD OFF POSITION_INDEPENDENT_CODE ON)
find_library(cudart_static cudart_static HINTS ${cuda_root}/lib64 ${cuda_root}/lib ${cuda_root}/targets/x86_64-linux/lib REQUIRED)
target_link_libraries(kintsugi_cuda PRIVATE base launch tensor ${cudart_static} ${CMAKE_DL_LIBS} rt)
target_link_options(kintsugi_cuda PRIVATE -Wl,--no-undefined)
add_dependencies(kintsugi_cuda includes)

# The registers and the memory of each kernel, as they were compiled, against the table; by hand, it is written anew.
if(KINTSUGI_TESTS)
  add_test(NAME gpu_resources COMMAND ${PROJECT_SOURCE_DIR}/tests/gpu_resources.sh ${PROJECT_BINARY_DIR}/cuda
    ${PROJECT_SOURCE_DIR}/kintsugi/kernels/gpu/resources.txt)
  set_tests_properties(gpu_resources PROPERTIES SKIP_RETURN_CODE 77)
endif()
