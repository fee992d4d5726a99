# Same frames, same map: backends, thread counts, daemon.
set(command ${CMAKE_CURRENT_LIST_DIR}/test_digest.sh)
set(places ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
vx_script(digest_generated LABELS system COMMAND ${command} generated ${places})
vx_script(digest_real LABELS system COMMAND ${command} real ${places})
vx_script(digest_cuda LABELS system gpu COMMAND ${command} cuda ${places})
add_dependencies(emulated_tests genworkload bench_integrate)
vx_script(digest_daemon LABELS system COMMAND ${command} daemon ${places})
