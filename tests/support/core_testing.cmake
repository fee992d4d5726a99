# What tests of the chunk store and the frame pipeline share: random frames, a walker over the map's memory.
add_library(vx_core_testing STATIC support/random_frames.c support/map_walk.c support/core_test.c)
target_include_directories(vx_core_testing PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/support ${CMAKE_SOURCE_DIR}/core/src)
target_link_libraries(vx_core_testing PUBLIC vx_core PkgConfig::CHECK)
