# Compiles the sources of a folder as one: most of a compiler's time goes to headers that they share. What it asks of the
# sources is that a name in an unnamed namespace is its file's alone in its folder. VACATE_UNITY says where:
#   off     every file by itself
#   tests   the tests' own files
#   all     the product's and the lab's too; the build that leaves them apart still shows a header that is missing
set(VACATE_UNITY off CACHE STRING "Which sources are compiled a folder at a time: off, tests, all")
set_property(CACHE VACATE_UNITY PROPERTY STRINGS off tests all)
if(NOT VACATE_UNITY MATCHES "^(off|tests|all)$")
  message(FATAL_ERROR "VACATE_UNITY is '${VACATE_UNITY}'; it takes off, tests or all")
endif()

function(vacate_unite_target target)
  get_target_property(type ${target} TYPE)
  get_target_property(sources ${target} SOURCES)
  if(NOT type MATCHES "LIBRARY|EXECUTABLE" OR type STREQUAL "INTERFACE_LIBRARY" OR NOT sources)
    return()
  endif()
  get_target_property(directory ${target} SOURCE_DIR)
  set(united FALSE)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${directory})
    if(path MATCHES "\\.cc$" AND (VACATE_UNITY STREQUAL "all" OR path MATCHES "_test\\.cc$"))
      get_filename_component(folder ${path} DIRECTORY)
      file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
      string(REPLACE "/" "_" group ${folder})
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
      set(united TRUE)
    endif()
  endforeach()
  if(united)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(VACATE_UNITY STREQUAL "all")
      # A source looks like a header to gcc then, in which an unnamed namespace would be a mistake.
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
  endif()
endfunction()

# Of every target that `directory` and those below it define.
function(vacate_unite directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    vacate_unite_target(${target})
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory ${below})
    vacate_unite(${subdirectory})
  endforeach()
endfunction()
