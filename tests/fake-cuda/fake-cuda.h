/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* A CUDA driver without a GPU, for tests: GTORCH_CUDA_DRIVER names the library. Memory of its devices
 * cannot be read through the addresses that the host is given; queues of work are run late and in any
 * order that streams and events allow, chosen by a seed; every call is counted and can be made to fail.
 * The environment variable GTORCH_FAKE_CUDA sets it up before the first call, as in
 * "devices=2,memory=64,version=13000,seed=5,hide=cuMemCreate,vmm=0,capability=75,mode=2,peers=0" (memory
 * in MiB; mode is that of who may compute; peers: whether devices can use each other's memory; borrow=1: what
 * it has no loops for is computed by the program's own code for the CPU; multiply=1: it has the kernels of
 * products). As with NVIDIA's, CUDA_VISIBLE_DEVICES hides devices and puts them into another order.
 *
 * GTORCH_FAKE_CUDA_MORE is read after it, for whole suites: "shift=5" turns each seed into another one of the
 * same order, the fifth, and "jitter=500" makes calls and host functions take up to 500 microseconds more. No
 * test may depend on either. */

#include <glib.h>

G_BEGIN_DECLS

#define FAKE_CUDA_API __attribute__ ((visibility ("default")))

/* --- the scheduler --- */
/* 0: work is done as soon as possible. Others: late, each in its own order, always the same one as long as
 * one thread calls and no host function is launched. */
FAKE_CUDA_API void fake_cuda_set_seed (guint32 seed);
/* While it is held no work is done at all. */
FAKE_CUDA_API void fake_cuda_hold (gboolean hold);
/* From now on the devices' clocks stand still, but for a microsecond at each event and what is let pass. */
FAKE_CUDA_API void fake_cuda_stop_clock (void);
FAKE_CUDA_API void fake_cuda_pass_time (gint64 us);
/* How much work is queued and not done, on all devices. */
FAKE_CUDA_API guint fake_cuda_get_pending (void);

/* --- calls --- */
/* Of one function, or of all (NULL), since the last reset. */
FAKE_CUDA_API guint fake_cuda_get_calls (const gchar *name);
FAKE_CUDA_API void fake_cuda_reset_calls (void);
/* The names of all calls since the last reset, separated by blanks; free it. */
FAKE_CUDA_API gchar *fake_cuda_dup_log (void);
/* The functions that there are; the last is NULL. */
FAKE_CUDA_API const gchar *const *fake_cuda_get_functions (void);

/* No kernel is loaded on any device any more. */
FAKE_CUDA_API void fake_cuda_unload_kernels (void);

/* --- faults --- */
/* The n-th call (1: the next) of a function (NULL: of any) gives the result and does nothing. */
FAKE_CUDA_API void fake_cuda_fail (const gchar *name, guint nth, gint result);
/* Each call fails with this probability. */
FAKE_CUDA_API void fake_cuda_fail_randomly (gdouble probability, guint32 seed, gint result);
/* The device fails for good when it does its n-th work from now on: that and all later calls give the
 * result. */
FAKE_CUDA_API void fake_cuda_break (guint device, guint nth, gint result);
/* Ends all of the above, and heals broken devices. TRUE if a fault of fake_cuda_fail() has come up. */
FAKE_CUDA_API gboolean fake_cuda_clear_faults (void);
/* Does this thread run the program's own code for the CPU in place of a kernel ("borrow=1")? What that code
 * allocates is no memory that the program has asked for. */
FAKE_CUDA_API gboolean fake_cuda_is_borrowing (void);

/* --- memory and accounts --- */
FAKE_CUDA_API void fake_cuda_set_memory (guint device, gsize n_bytes);

typedef struct
{
  guint handles, mappings, reservations, streams, events, libraries, graphs;
  guint pinned, registered; /* pinned: both ways */
  gsize n_bytes;            /* of memory in use */
  guint misuses;            /* calls that break the driver's rules; each was printed */
  guint clusters;           /* launches of blocks that stand next to each other, so far */
} FakeCudaAccounts;

FAKE_CUDA_API void fake_cuda_get_accounts (FakeCudaAccounts *accounts);
/* May this device use all of the memory? */
FAKE_CUDA_API gboolean fake_cuda_can_access (guint device, gconstpointer address, gsize n_bytes);
/* Copies what a device address holds right now, without regard to work under way. */
FAKE_CUDA_API gboolean fake_cuda_peek (gconstpointer address, gpointer buffer, gsize n_bytes);

G_END_DECLS
