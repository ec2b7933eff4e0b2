/* Functions that also take the sizes of the caller's structs, which may be older or newer than the
 * library. bh_NAME_sized does what bh_NAME does. C and C++ programs call bh_NAME, an inline
 * function of another header, which passes sizeof. Bindings of other languages call bh_NAME_sized,
 * with the sizes of the structs as they declare them (docs/abi.md).
 *
 * Sizes. A |…_size| is the size of one struct. For an array it is the distance from one element to
 * the next. Allowed are the sizes that the struct has had since 0.2.0, and sizes up to 4 KiB above
 * the library's own. In a larger struct the library uses the part that it knows. If it reads the
 * struct, the rest must be zero; if it writes the struct, it sets the rest to zero. Any other size,
 * or a byte in the rest that is not zero, is BH_INVALID_ARGUMENT; the detail names struct and size.
 *
 * Defaults. bh_…_init_sized writes exactly |size| bytes: the defaults of the fields that fit, zeros
 * for the rest, and |size| as struct_size. It does not check |size|; the call that gets the struct
 * does. */
#ifndef BULKHEAD_SIZED_H
#define BULKHEAD_SIZED_H

#include <bulkhead/status.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_argument bh_argument;
typedef struct bh_array_info bh_array_info;
typedef struct bh_binding bh_binding;
typedef struct bh_buffer_options bh_buffer_options;
typedef struct bh_check bh_check;
typedef struct bh_context_options bh_context_options;
typedef struct bh_description bh_description;
typedef struct bh_detail bh_detail;
typedef struct bh_device_info bh_device_info;
typedef struct bh_file_source bh_file_source;
typedef struct bh_file_tensor bh_file_tensor;
typedef struct bh_glsl_source bh_glsl_source;
typedef struct bh_inspect_options bh_inspect_options;
typedef struct bh_inspection bh_inspection;
typedef struct bh_kernel_info bh_kernel_info;
typedef struct bh_kernel_options bh_kernel_options;
typedef struct bh_kernel_stats bh_kernel_stats;
typedef struct bh_pool_stats bh_pool_stats;
typedef struct bh_quarantined bh_quarantined;
typedef struct bh_stream_options bh_stream_options;
typedef struct bh_submit_info bh_submit_info;
typedef struct bh_template_call bh_template_call;
typedef struct bh_template_options bh_template_options;
typedef struct bh_trace bh_trace;
typedef struct bh_traced_call bh_traced_call;
typedef struct bh_verdict bh_verdict;

BH_API void bh_context_options_init_sized(bh_context_options *options, size_t size);
BH_API void bh_stream_options_init_sized(bh_stream_options *options, size_t size);
BH_API void bh_buffer_options_init_sized(bh_buffer_options *options, size_t size);
BH_API void bh_description_init_sized(bh_description *description, size_t size);
BH_API void bh_file_source_init_sized(bh_file_source *source, size_t size);
BH_API void bh_kernel_options_init_sized(bh_kernel_options *options, size_t size);
BH_API void bh_glsl_source_init_sized(bh_glsl_source *source, size_t size);
BH_API void bh_inspect_options_init_sized(bh_inspect_options *options, size_t size);
BH_API void bh_template_options_init_sized(bh_template_options *options, size_t size);

BH_API BH_MUST_USE bh_status bh_submit_sized(bh_stream *stream, const bh_submit_info *info,
                                             size_t info_size, size_t command_size,
                                             size_t binding_size, bh_event **out_event,
                                             bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_launch_sized(bh_stream *stream, bh_kernel *kernel,
                                             const uint32_t groups[3], const bh_binding *bindings,
                                             uint32_t binding_count, size_t binding_size,
                                             const void *push, uint32_t push_size,
                                             bh_event **out_event, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_event_verdict_sized(bh_event *event, bh_verdict *out_verdict,
                                                    size_t verdict_size);
BH_API bh_status_class bh_verdict_classify_sized(const bh_verdict *verdict, size_t verdict_size);

BH_API BH_MUST_USE bh_status bh_context_pool_stats_sized(bh_context *context,
                                                         bh_pool_stats *out_stats,
                                                         size_t stats_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_context_kernel_stats_sized(bh_context *context,
                                                           bh_kernel_stats *out_stats,
                                                           size_t stats_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_buffer_array_sized(const bh_buffer *buffer, bh_array_info *out_info,
                                                   size_t info_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_file_tensors_sized(bh_context *context,
                                                   const bh_file_source *source,
                                                   bh_file_tensor *out_tensors, size_t capacity,
                                                   size_t tensor_size, size_t *out_count,
                                                   bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_kernel_reflect_sized(bh_kernel *kernel, bh_stream *stream,
                                                     uint64_t timeout_ns, bh_kernel_info *out_info,
                                                     size_t info_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_kernel_inspect_sized(bh_kernel *kernel,
                                                     const bh_inspect_options *options,
                                                     bh_inspection *out_inspection,
                                                     size_t inspection_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_devices_sized(bh_context *context, bh_device_info *out_devices,
                                              size_t capacity, size_t device_size,
                                              size_t *out_count, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_doctor_sized(bh_context *context, bh_check *out_checks,
                                             size_t capacity, size_t check_size, size_t *out_count,
                                             bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_quarantine_list_sized(bh_context *context,
                                                      bh_quarantined *out_entries, size_t capacity,
                                                      size_t entry_size, size_t *out_count,
                                                      bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_trace_driver_sized(bh_context *context, const char *device,
                                                   bh_trace *out_trace, size_t trace_size,
                                                   bh_traced_call *out_calls, size_t capacity,
                                                   size_t call_size, size_t *out_count,
                                                   bh_detail *detail);

BH_API BH_MUST_USE bh_status bh_template_output_sized(
    bh_template *template_, const bh_argument *arguments, uint32_t argument_count,
    size_t argument_size, const char *name, bh_description *out_description, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_template_source_sized(bh_template *template_,
                                                      const bh_argument *arguments,
                                                      uint32_t argument_count, size_t argument_size,
                                                      char *text, size_t size, size_t *out_length,
                                                      bh_detail *detail);
/* A bh_template_call is a command, BH_MAX_PARAMETERS bindings and 32 words, laid out in this order
 * without gaps. */
BH_API BH_MUST_USE bh_status bh_template_prepare_sized(
    bh_template *template_, const bh_argument *arguments, uint32_t argument_count,
    size_t argument_size, const uint32_t *groups, bh_template_call *out_call, size_t command_size,
    size_t binding_size, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_template_launch_sized(bh_stream *stream, bh_template *template_,
                                                      const bh_argument *arguments,
                                                      uint32_t argument_count, size_t argument_size,
                                                      const uint32_t *groups, bh_event **out_event,
                                                      bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
