# Distance field, queries and mesh against slow references.
add_library(vx_oracle_maps STATIC oracle/random_map.c oracle/field_dump.c)
target_include_directories(vx_oracle_maps PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/oracle)
target_link_libraries(vx_oracle_maps PUBLIC vx_grid_fixture)
vx_test(test_oracle_esdf LABELS oracle SOURCES oracle/test_esdf.c LIBS vx_oracle_maps)
vx_test(test_oracle_mesh LABELS oracle SOURCES oracle/test_mesh.c LIBS vx_oracle_maps)
vx_test(test_oracle_query LABELS oracle SOURCES oracle/test_query.c LIBS vx_oracle_maps)
