# The same frames replayed: the map neither grows nor flickers.
vx_test(oracle_static_scene LABELS oracle SOURCES oracle/static_scene.c LIBS vx_core_testing vx_scene TIMEOUT 900 ARGS cpu 2)
# Free voxels of an occupancy map against marched rays.
vx_test(oracle_free_rays LABELS oracle SOURCES oracle/free_rays.c LIBS vx_core_testing vx_scene ARGS cpu 2)
# What leaves the scene leaves the map within ten frames; a moving wall is followed.
vx_test(oracle_changed_scene LABELS oracle SOURCES oracle/changed_scene.c LIBS vx_core_testing ARGS cpu 2)
