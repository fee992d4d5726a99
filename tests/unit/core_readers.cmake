# What readers of a map are made of.
vx_test(test_mesh_table LABELS unit SOURCES unit/core/test_mesh_table.c LIBS vx_kernels)
vx_test(test_readers LABELS unit SOURCES unit/core/test_readers.c LIBS vx_core)
