# Analytic scenes: the truth that maps are measured against, the workloads rendered from them, the check of meshes.
find_package(OpenMP COMPONENTS C QUIET)
add_library(vx_scene STATIC ${CMAKE_CURRENT_LIST_DIR}/scene.c ${CMAKE_CURRENT_LIST_DIR}/solid.c
  ${CMAKE_CURRENT_LIST_DIR}/layout.c)
target_include_directories(vx_scene PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(vx_scene PUBLIC m)
vx_program(genscans SOURCES ${CMAKE_CURRENT_LIST_DIR}/genscans.c LIBS vx_scene)
foreach(tool genworkload meshcheck)
  vx_program(${tool} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${tool}.c LIBS vx_scene)
  if(OpenMP_C_FOUND AND NOT VOXELD_TSAN) # its run time library is not instrumented
    target_link_libraries(${tool} PRIVATE OpenMP::OpenMP_C)
  else()
    target_compile_options(${tool} PRIVATE -Wno-unknown-pragmas)
  endif()
endforeach()
