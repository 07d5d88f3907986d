# The programs that look at processes from inside the kernel (holders.bpf.c): compiled with clang, turned by bpftool into
# a light skeleton, which needs no library at run time. Without the tools vacate reads /proc alone.
option(VACATE_BPF "Build the BPF programs where clang, bpftool and libbpf's headers are there" ON)

find_program(VACATE_CLANG NAMES clang-14 clang clang-19 clang-18 clang-17 clang-16 clang-15)
find_program(VACATE_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin)
find_path(VACATE_SKELETON_HEADERS bpf/skel_internal.h)

if(NOT VACATE_BPF)
  message(STATUS "BPF programs: left out, as VACATE_BPF says")
elseif(NOT VACATE_CLANG OR NOT VACATE_BPFTOOL OR NOT VACATE_SKELETON_HEADERS)
  message(STATUS "BPF programs: left out; clang: ${VACATE_CLANG}, bpftool: ${VACATE_BPFTOOL}, "
                 "bpf/skel_internal.h: ${VACATE_SKELETON_HEADERS}")
else()
  message(STATUS "BPF programs: built with ${VACATE_CLANG} and ${VACATE_BPFTOOL}")
  enable_language(C)
  set(VACATE_BPF_FOLDER ${CMAKE_BINARY_DIR}/bpf)
  file(MAKE_DIRECTORY ${VACATE_BPF_FOLDER})
  # NAME.lskel.h from a source. -g: the types that the kernel matches its own with. Its lines end up in the skeleton, so no
  # path of this machine.
  function(vacate_add_skeleton name source)
    set(object ${VACATE_BPF_FOLDER}/${name}.bpf.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${VACATE_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -fdebug-compilation-dir=.
              -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -I${CMAKE_SOURCE_DIR}/src -c ${source} -o ${object}
      DEPENDS ${source} ${CMAKE_SOURCE_DIR}/src/probe/bpf/holders_records.h
      VERBATIM)
    add_custom_command(
      OUTPUT ${VACATE_BPF_FOLDER}/${name}.lskel.h
      COMMAND ${VACATE_BPFTOOL} gen skeleton -L ${object} name ${name} > ${VACATE_BPF_FOLDER}/${name}.lskel.h
      DEPENDS ${object}
      VERBATIM)
  endfunction()
  vacate_add_skeleton(holders ${CMAKE_SOURCE_DIR}/src/probe/bpf/holders.bpf.c)
  add_library(vacate_bpf STATIC ${CMAKE_SOURCE_DIR}/src/probe/bpf/holders_loader.c ${VACATE_BPF_FOLDER}/holders.lskel.h)
  target_include_directories(vacate_bpf PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_include_directories(vacate_bpf SYSTEM PRIVATE ${VACATE_BPF_FOLDER} ${VACATE_SKELETON_HEADERS})
  target_compile_options(vacate_bpf PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(vacate_probe PUBLIC vacate_bpf)
  target_compile_definitions(vacate_probe PRIVATE VACATE_HAS_BPF=1)
endif()
