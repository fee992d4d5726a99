# What readers of a map are made of.
vx_test(test_mesh_table LABELS unit SOURCES unit/core/test_mesh_table.c LIBS vx_kernels)
