# One library per folder: reprise_add_library(graph DEPENDS base) builds every *.cc of the folder
# (and of the subfolders named by SOURCES_FROM) into the target reprise_graph.

add_library(reprise_options INTERFACE)
target_include_directories(reprise_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(reprise_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(REPRISE_SANITIZE)
  target_compile_options(reprise_options INTERFACE -fsanitize=${REPRISE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(reprise_options INTERFACE -fsanitize=${REPRISE_SANITIZE})
endif()

function(reprise_add_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;SOURCES_FROM" ${ARGN})
  set(globs ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(sub ${ARG_SOURCES_FROM})
    list(APPEND globs ${CMAKE_CURRENT_SOURCE_DIR}/${sub}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  add_library(reprise_${folder} STATIC ${sources})
  target_link_libraries(reprise_${folder} PUBLIC reprise_options ${ARG_LINK})
  foreach(dep ${ARG_DEPENDS})
    target_link_libraries(reprise_${folder} PUBLIC reprise_${dep})
  endforeach()
endfunction()
