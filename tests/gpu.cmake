# The tests of the sandbox, the backend, the guard, the events and the whole library once more, on
# the GPU of this machine: where -DBULKHEAD_GPU=ON asks for it. scripts/gpu-tests runs them. All of
# those folders run there but the ones below.
option(BULKHEAD_GPU "Add the tests gpu_*, which need a GPU and its driver" OFF)
if(NOT BULKHEAD_GPU)
    return()
endif()

# They use no device: a second run would show nothing.
set(gpu_without_device backend_reserve backend_ticks guard_allowed guard_buffers guard_controls
    guard_left guard_limits guard_shapes guard_starved guard_trips guard_valid guard_cut events_table
    events_buffers_ablated)
# A driver of the tests wraps lavapipe, or poses as another one: on each machine the same.
set(gpu_other_driver system_budget system_chaos system_processes system_nodes system_sentinel system_overlap system_device_export
    system_device_holder system_cuda_view
    system_placement system_trace sandbox_nodes sandbox_chroot backend_failures backend_memory backend_merge backend_shared backend_words)
# A read-only import that fails: the library tries none there (docs/decisions/0002-sandbox.md).
set(gpu_lacks system_constants)
# What they prove is of the host alone, and they take long.
set(gpu_host system_endurance system_dead_mount system_descriptors system_owners)

# Single tests. Most expect what only a CPU driver does.
# A worker that hangs there waits without processor time, and loses the device after some seconds.
set(gpu_without_system_death the_host_limits_processor_time)
# A bound for the address space, which a GPU's driver does not keep to.
set(gpu_without_system_memory the_address_space_follows_the_buffers
    a_worker_that_hides_its_memory_is_refused the_doctor_names_what_is_open)
set(gpu_without_system_arguments streams devices_and_doctor) # they name lavapipe
# A read-only import, which the library does not try there.
set(gpu_without_system_loaders bound_without_a_copy)
# NVIDIA's compiler crashes on these kernels: in a worker that is COMPILE_FAILED, here the test dies.
set(gpu_without_system_wrap readers_cannot_write_it)
set(gpu_without_system_eval_values arithmetic) # the sign of a zero in 16 bits: docs/templates.md
set(gpu_without_system_describe a_failing_test_says_what_its_streams_do) # its limit is 2 s
set(gpu_without_system_device_memory a_trim_gives_it_back auto_is_host_memory_here
    other_tenants_read_only)
# A kernel that runs while another process waits for the GPU is lost after 4 s
# (docs/bench.md): in each of these others work while a gate is held.
set(gpu_without_events_markers a_join_is_ready_when_all_are)
set(gpu_without_events_death case_43_fifty_events_and_sixteen_waiters
    case_46_late_completion_of_a_dead_generation case_46_late_rings_of_a_dead_generation)
set(gpu_without_events_refusals foreign_objects_are_refused)
set(gpu_without_system_hosts out_of_descriptors_while_another_runs
    # The gate opener reads the memory of a host, which /proc does not show without its first thread.
    a_host_whose_first_thread_has_ended)
set(gpu_without_system_idle one_that_works_stays)
# In each of these two kernels run at once, or others work while a gate is held.
set(gpu_without_system_waits wait_all_waits_for_all events_of_two_contexts ten_thousand_events
    drain_of_a_context drain_of_released_streams drain_while_another_submits
    drain_leaves_the_later_ones_alone nothing_waits_in_a_log_callback)
set(gpu_without_system_stats a_death_is_counted_once_by_its_cause) # a hang there kills no worker
set(gpu_without_system_queue one_loop_takes_the_events_of_two_contexts
    threads_that_add_and_take_get_each_event_once destroying_a_queue_releases_its_events)
# NVIDIA's compiler crashes on their kernels, hostile_*: COMPILE_FAILED, where others run them.
set(gpu_without_system_readonly no_kernel_writes_what_it_reads nor_through_a_copy
    they_write_what_they_may rights_are_each_workers_own many_buffers
    # A read-only import that fails: none is tried there.
    an_honest_reader_needs_no_decoration a_reader_of_a_copy_sees_what_others_wrote
    a_reader_of_a_copy_becomes_a_writer merged_readers_of_a_copy an_input_without_bytes)
# NVIDIA's compiler crashes on its kernel: in a worker that is COMPILE_FAILED, here the test dies.
set(gpu_without_backend_mismatch pointers_through_calls)
# That driver loses the device over workgroup memory that no entry point uses.
set(gpu_without_guard_memory memory_that_is_not_used_stays_unused)
# They hold the fake driver's engine.
set(gpu_without_backend_copies no_more_parts_than_command_buffers)
set(gpu_without_backend_ahead they_begin_as_they_come those_ahead_are_not_to_blame what_runs_together)
set(gpu_without_backend_arrays indices_that_are_taken_from_one_invocation) # here from each

bulkhead_again(gpu FOLDERS backend guard sandbox events system TIMEOUT 400
    LEFT_OUT ${gpu_without_device} ${gpu_other_driver} ${gpu_host} ${gpu_lacks}
    ENVIRONMENT BHT_REAL_CUDA=1) # the tests of CUDA on libcuda.so.1, not on the fake one
# Of the tests of faults: what a worker does that was taken over.
add_test(NAME gpu_fault_conduct COMMAND fault_conduct)
set_tests_properties(gpu_fault_conduct PROPERTIES LABELS gpu TIMEOUT 400 COST 100
    ENVIRONMENT "${BULKHEAD_TEST_ENVIRONMENT}")
# The judge on CUDA candidates. The machine of the GPU may lack NVRTC, and the one of the build may have it.
find_program(BASH bash REQUIRED)
add_custom_target(gpu_judge_ptx ALL COMMAND ${BASH} ${PROJECT_SOURCE_DIR}/tests/judge/gpu_cuda_ptx.sh
    $<TARGET_FILE:bulkhead-cli> ${CMAKE_CURRENT_BINARY_DIR}/judge/ptx)
add_dependencies(gpu_judge_ptx bulkhead-cli bulkhead-worker)
add_test(NAME gpu_judge_cuda COMMAND ${BASH} ${PROJECT_SOURCE_DIR}/tests/judge/gpu_cuda.sh)
set_tests_properties(gpu_judge_cuda PROPERTIES LABELS gpu TIMEOUT 900 COST 100 ENVIRONMENT
    "BULKHEAD=$<TARGET_FILE:bulkhead-cli>;NPY=$<TARGET_FILE:npy_tool>;LEAVES_NONE=$<TARGET_FILE:leaves_none>;\
SHADERS=${CMAKE_BINARY_DIR}/share/bulkhead/shaders;PTX=${CMAKE_CURRENT_BINARY_DIR}/judge/ptx")
