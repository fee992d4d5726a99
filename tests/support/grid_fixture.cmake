# The readers of core (distance field, queries, mesh) on a map made by hand.
file(GLOB vx_reader_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/src/esdf*.c ${CMAKE_SOURCE_DIR}/core/src/cells.c ${CMAKE_SOURCE_DIR}/core/src/query*.c
  ${CMAKE_SOURCE_DIR}/core/src/mesh*.c ${CMAKE_SOURCE_DIR}/core/src/work.c)
add_library(vx_grid_fixture STATIC support/grid_fixture.c ${vx_reader_sources})
target_include_directories(vx_grid_fixture PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/support ${CMAKE_SOURCE_DIR}/core/include ${CMAKE_SOURCE_DIR}/core/src)
target_link_libraries(vx_grid_fixture PUBLIC vx_kernels Threads::Threads m)
