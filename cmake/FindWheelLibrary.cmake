# A CUDA library that comes either in the folders of a toolkit or as a wheel of pip
# (site-packages/nvidia/NAME/{include,lib}, with no .so development links, only .so.MAJOR).
#
# find_wheel_library(CUDNN HEADER cudnn.h LIBRARY libcudnn MAJOR 9 WHEEL cudnn)
# sets CUDNN_INCLUDE_DIR and CUDNN_LIBRARY. Looks below CUDNN_ROOT, then in the folder of the Python
# environment that is active (VIRTUAL_ENV), then beside the toolkit, then where CMake always looks.
# Header and library are taken from one place: a mixture of two copies is what goes wrong silently.
function(find_wheel_library name)
  cmake_parse_arguments(ARG "" "HEADER;LIBRARY;MAJOR;WHEEL" "" ${ARGN})
  set(roots)
  foreach(root ${${name}_ROOT} $ENV{${name}_ROOT})
    list(APPEND roots ${root})
  endforeach()
  if(DEFINED ENV{VIRTUAL_ENV})
    file(GLOB wheels $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/${ARG_WHEEL})
    list(APPEND roots ${wheels})
  endif()
  list(APPEND roots ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_LIBRARY_ROOT})
  foreach(root ${roots})
    find_path(${name}_INCLUDE_DIR ${ARG_HEADER} PATHS ${root} PATH_SUFFIXES include NO_DEFAULT_PATH)
    if(${name}_INCLUDE_DIR)
      find_library(${name}_LIBRARY NAMES ${ARG_LIBRARY}.so.${ARG_MAJOR} ${ARG_LIBRARY}.so NAMES_PER_DIR
                   PATHS ${root} PATH_SUFFIXES lib64 lib lib/x86_64-linux-gnu NO_DEFAULT_PATH)
      if(${name}_LIBRARY)
        break()
      endif()
      unset(${name}_INCLUDE_DIR CACHE)
    endif()
  endforeach()
  find_path(${name}_INCLUDE_DIR ${ARG_HEADER})
  find_library(${name}_LIBRARY NAMES ${ARG_LIBRARY}.so.${ARG_MAJOR} ${ARG_LIBRARY}.so NAMES_PER_DIR)
endfunction()
