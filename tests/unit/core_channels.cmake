# Colour and labels.  (tests/unit/core.cmake makes vx_core_test.)
vx_core_test(core_channels SOURCES unit/core/test_channels.c BACKENDS cpu guard cuda)
