# Tests whose result depends on the backend once more, on the fake CUDA driver (tests/fake_cuda), with the
# kernels of tests/harness/cuda: what is ordered, poisoned, kept and cleared, whatever a call of the driver
# answers and whenever a worker dies.
set(cuda_tests
    events_errors events_errors_more events_death events_recovery events_markers events_buffers
    system_death system_poison system_strict system_random system_stale
    system_device_memory system_device_export system_device_files system_chaos
    fault_nth_worker fault_steps fault_protocol fault_spares
    fault_moves fault_replicas fault_transfers fault_device_pool)

# There device memory is the device's, in blocks that other tests keep and give back.
set(cuda_without_system_device_memory a_trim_gives_it_back auto_is_host_memory_here)
# Kernels that use up the driver's memory, or its compiler's; and a kernel that waits needs no processor.
set(cuda_without_system_death a_kernel_that_crashes_the_driver a_memory_bomb_runs_into_the_limit)
if(NOT BULKHEAD_SANITIZE) # with a sanitizer they are not there
    list(APPEND cuda_without_system_death a_memory_bomb_without_cgroup the_host_limits_processor_time)
endif()
# Each test is there twice; here memory is always the device's.
file(STRINGS fault/moves.c cuda_without_fault_moves REGEX "^BOTH\\(")
list(TRANSFORM cuda_without_fault_moves REPLACE "^BOTH\\(([a-z_]+)\\).*" "\\1_host_memory")

bulkhead_again(cuda FOLDERS events system fault TIMEOUT 240 ONLY ${cuda_tests}
    ENVIRONMENT BULKHEAD_TEST_CUDA=1)
