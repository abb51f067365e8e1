# The CUDA side is built when nvcc is there. CUDA_AGENT_WITH_CUDA says whether.
set(CUDA_AGENT_WITH_CUDA OFF)
if(NOT CUDA_AGENT_CUDA STREQUAL "OFF")
  # Known before the language is enabled, or CMake asks nvcc for one that it may not know.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90-real;100-real;120" CACHE STRING
                                                                    "GPU architectures of the judge's own kernels")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(CUDA_AGENT_WITH_CUDA ON)
    # CMake 3.25 does not know that nvcc 13 can do it.
    foreach(kind STANDARD EXTENSION)
      if(NOT DEFINED CMAKE_CUDA20_${kind}_COMPILE_OPTION)
        set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
      endif()
    endforeach()
  elseif(CUDA_AGENT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUDA_AGENT_CUDA=ON, but nvcc was not found: set CUDACXX or PATH")
  endif()
endif()
