/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* A CUDA driver without a GPU, for tests: GTORCH_CUDA_DRIVER names the library. The host cannot read the
 * memory of its devices through their addresses. Work is executed late and in any order that streams and
 * events allow, chosen by a seed; every call is counted and can be made to fail. The environment variable
 * GTORCH_FAKE_CUDA configures it before the first call, as in
 * "devices=2,memory=64,version=13000,seed=5,hide=cuMemCreate,vmm=0,capability=75,mode=2,peers=0" (memory
 * in MiB; mode: the compute mode; peers: whether devices have peer access; borrow=1: the program's own
 * CPU code computes operations for which the fake has no loops; multiply=1: it has the kernels of matrix
 * products and of recurrent networks; stall=1: finding the function of a kernel for the first time and
 * freeing memory of the host wait for the work of all devices, and other calls wait meanwhile). As with
 * NVIDIA's driver, CUDA_VISIBLE_DEVICES hides and reorders devices.
 *
 * GTORCH_FAKE_CUDA_MORE is read after it, for whole suites: "shift=5" replaces each seed by the fifth
 * other one of the same kind of order, and "jitter=500" delays calls and host functions by up to 500
 * microseconds. No test may depend on either. */

#include <glib.h>

G_BEGIN_DECLS

#define FAKE_CUDA_API __attribute__ ((visibility ("default")))

/* --- the scheduler --- */
/* 0: work is executed as soon as possible. Other seeds: late, each in its own order, which is
 * reproducible as long as one thread calls and no host function is launched. */
FAKE_CUDA_API void fake_cuda_set_seed (guint32 seed);
/* Suspends the execution of work. */
FAKE_CUDA_API void fake_cuda_hold (gboolean hold);
/* Stops the devices' clocks, except for a microsecond at each event and the time that the test lets pass. */
FAKE_CUDA_API void fake_cuda_stop_clock (void);
FAKE_CUDA_API void fake_cuda_pass_time (gint64 us);
/* Returns how many work items are pending, on all devices. */
FAKE_CUDA_API guint fake_cuda_get_pending (void);

/* --- calls --- */
/* Returns the calls of one function, or of all (NULL), since the last reset. */
FAKE_CUDA_API guint fake_cuda_get_calls (const gchar *name);
FAKE_CUDA_API void fake_cuda_reset_calls (void);
/* Returns the names of all calls since the last reset, separated by blanks; free it. */
FAKE_CUDA_API gchar *fake_cuda_dup_log (void);
/* Returns the functions of the driver; NULL ends the list. */
FAKE_CUDA_API const gchar *const *fake_cuda_get_functions (void);

/* Unloads all kernels from all devices. */
FAKE_CUDA_API void fake_cuda_unload_kernels (void);

/* --- faults --- */
/* Lets the n-th call (1: the next) of a function (NULL: of any) return the result without doing anything. */
FAKE_CUDA_API void fake_cuda_fail (const gchar *name, guint nth, gint result);
/* Lets each call fail with this probability. */
FAKE_CUDA_API void fake_cuda_fail_randomly (gdouble probability, guint32 seed, gint result);
/* Lets the device fail permanently at its n-th work item from now on: that and all later calls return the
 * result. */
FAKE_CUDA_API void fake_cuda_break (guint device, guint nth, gint result);
/* Ends all of the above, and repairs broken devices. Returns TRUE if a fault of fake_cuda_fail () has
 * occurred. */
FAKE_CUDA_API gboolean fake_cuda_clear_faults (void);
/* Returns TRUE if this thread runs the program's own CPU code in place of a kernel ("borrow=1"). That
 * code's allocations do not count as the program's. */
FAKE_CUDA_API gboolean fake_cuda_is_borrowing (void);

/* --- memory and accounts --- */
FAKE_CUDA_API void fake_cuda_set_memory (guint device, gsize n_bytes);

typedef struct
{
  guint handles, mappings, reservations, streams, events, libraries, graphs;
  guint pinned, registered; /* pinned by either call */
  gsize n_bytes;            /* device memory in use */
  guint misuses;            /* violations of the driver's rules; each was printed */
  guint clusters;           /* launches with clusters so far */
} FakeCudaAccounts;

FAKE_CUDA_API void fake_cuda_get_accounts (FakeCudaAccounts *accounts);
/* Returns TRUE if this device may access all of the memory. */
FAKE_CUDA_API gboolean fake_cuda_can_access (guint device, gconstpointer address, gsize n_bytes);
/* Returns where the host finds n bytes of a device address, or NULL; for work that a stand-in of a library
 * enqueues. */
FAKE_CUDA_API gpointer fake_cuda_at (gconstpointer address, gsize n_bytes);
/* Enqueues such work; returns the driver's result. */
FAKE_CUDA_API gint fake_cuda_enqueue (gpointer stream, void (*func) (gpointer data), gpointer data);
/* The same for work that waits for other processes: it is called again and again, beside other streams' work,
 * until it returns TRUE. */
FAKE_CUDA_API gint fake_cuda_enqueue_poll (gpointer stream, gboolean (*func) (gpointer data),
                                           gpointer data);
/* Waits as "stall=1" says; for stand-ins of libraries that free memory of the host. */
FAKE_CUDA_API void fake_cuda_stall (void);
/* --- traces, for the stand-in of NVIDIA's library of traces --- */
typedef enum
{
  FAKE_CUDA_RAN_KERNEL,
  FAKE_CUDA_RAN_COPY,
  FAKE_CUDA_RAN_SET,
} FakeCudaRan;

typedef struct
{
  FakeCudaRan kind;
  guint correlation; /* the number of the call that has enqueued it */
  guint device, stream;
  gint64 start, end; /* nanoseconds of CLOCK_MONOTONIC */
  const gchar *name; /* of a kernel */
  guint grid[3], block[3], shared;
  gsize n_bytes;
  gboolean from_host, to_host;
} FakeCudaWork;

/* Both are called with the state of the driver locked. The number of a call is that of its thread until it
 * ends. */
typedef struct
{
  void (*called) (guint correlation, guint function, gint64 start, gint64 end);
  void (*ran) (const FakeCudaWork *work);
} FakeCudaTracer;

/* NULL: none. */
FAKE_CUDA_API void fake_cuda_set_tracer (const FakeCudaTracer *tracer);

/* Copies the present contents of a device address, regardless of pending work. */
FAKE_CUDA_API gboolean fake_cuda_peek (gconstpointer address, gpointer buffer, gsize n_bytes);

G_END_DECLS
