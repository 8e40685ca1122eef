/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-abi-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

#include "fake-cuda.h"

G_BEGIN_DECLS

#define FAKE_MAX_DEVICES 16
#define FAKE_PAGE        ((gsize) 2 << 20)

typedef struct _FakeOp FakeOp;
typedef struct _FakeCapture FakeCapture;
typedef struct CUctx_st FakeDevice;

/* Every function of the loader's table, with the types that the loader gives it. */
#define F(name, version, arguments) CUresult name arguments;
#include <gtorch/cuda/driver/gtorch-cuda-functions.inc>
#undef F

enum
{
#define F(name, version, arguments) FAKE_##name,
#include <gtorch/cuda/driver/gtorch-cuda-functions.inc>
#undef F
  FAKE_N_FUNCTIONS
};

/* A device and its primary context. */
struct CUctx_st
{
  gint index;
  guint physical; /* its number where CUDA_VISIBLE_DEVICES hides and turns none around */
  gboolean retained;
  guint flags;
  guint32 peers;        /* bit i: may use the memory of device i */
  guint32 pool_readers; /* bit i: device i may use what cuMemAllocAsync() gives */
  gsize memory, used;
  CUstream null_stream;
  CUresult failure; /* sticky */
  guint break_in;   /* work until it fails; 0: never */
  CUresult break_result;
};

/* All of the fake's state is under this lock. Host functions are called without it. */
extern GMutex fake_lock;
extern FakeDevice fake_devices[FAKE_MAX_DEVICES];
extern guint fake_n_devices;
extern gboolean fake_have_peers, fake_borrows, fake_multiplies;
extern FakeCudaAccounts fake_accounts;

/* Counts the call, lets planned faults happen and takes the lock; 0 to go on. */
CUresult fake_enter (guint function);
CUresult fake_leave (CUresult result);
/* The current context's device; NULL. */
FakeDevice *fake_current (void);
/* Prints and counts what a program must not do. */
CUresult fake_misuse (CUresult result, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

#define ENTER(name)                               \
  do                                              \
    {                                             \
      CUresult fault_ = fake_enter (FAKE_##name); \
      if (fault_ != CUDA_SUCCESS)                 \
        return fault_;                            \
    }                                             \
  while (0)
#define LEAVE(result) return fake_leave (result)
/* … with a context that works. */
#define ENTER_CURRENT(name, device)         \
  do                                        \
    {                                       \
      ENTER (name);                         \
      device = fake_current ();             \
      if (device == NULL)                   \
        LEAVE (CUDA_ERROR_INVALID_CONTEXT); \
      if (device->failure != CUDA_SUCCESS)  \
        LEAVE (device->failure);            \
    }                                       \
  while (0)

/* --- memory --- */
/* Where the host finds n bytes of a device address; NULL if not all of it is mapped, and, with a device,
 * if it must not use all of it. */
gpointer fake_memory_at (guint64 address, gsize n_bytes, const FakeDevice *user);
gboolean fake_memory_is_pinned (gconstpointer address);
/* What cuMemFreeAsync() has put into a queue. */
void fake_memory_free (guint64 address);

/* --- kernels --- */
typedef struct CUkern_st FakeKernel;

typedef struct
{
  guint grid[3], block[3];
} FakeGrid;

struct CUkern_st
{
  gchar *name;
  gsize n_bytes; /* of its parameter */
  CUresult (*run) (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
                   const FakeDevice *device);
  gconstpointer op; /* GTorchOpClass */
  guint8 dtype, from;
  gboolean only_reports; /* what it computes the fake cannot do */
  guint loaded;          /* bit i: on device i */
  guint size;
  void (*ref) (gpointer parameter); /* of what the parameter holds; NULL: nothing */
  void (*unref) (gpointer parameter);
};

/* NULL for one that the fake cannot run. */
FakeKernel *fake_kernel_get (const gchar *name);
guint fake_kernel_find_dtype (const gchar *suffix);
/* Is it one of those that look for wrong numbers? The name is without "gt_". */
gboolean fake_report_parse (FakeKernel *kernel, const gchar *text);
/* … of those of products? */
gboolean fake_multiply_parse (FakeKernel *kernel, const gchar *text);

/* --- work --- */
typedef enum
{
  FAKE_KERNEL,
  FAKE_COPY,
  FAKE_SET,
  FAKE_WRITE,
  FAKE_RECORD,
  FAKE_WAIT,
  FAKE_CALL,
  FAKE_FREE,
  FAKE_BRANCH,
} FakeKind;

/* What decides whether a branch is done: the value that was given to its handle. */
typedef struct
{
  gint refs;
  gboolean has_node;
  guint value; /* of the next run */
  guint first; /* … without having been set; is set to this when a graph begins */
} FakeCondition;

/* In memory of several processes; atomically. */
typedef struct
{
  guint64 recorded, passed; /* numbers of recordings */
} FakeCell;

/* An event of several processes. */
typedef struct
{
  gint refs;
  int fd;
  FakeCell *cell;
} FakeShared;

extern guint fake_n_shared;
FakeShared *fake_shared_new (void);
void fake_shared_unref (FakeShared *shared);

/* One recording of an event. */
typedef struct
{
  gint refs;
  gboolean done;
  gint64 time_us;
  FakeShared *shared; /* NULL, or: */
  guint64 number;
} FakeMark;

struct _FakeOp
{
  FakeKind kind;
  guint64 number; /* addresses are used again */
  union
  {
    struct
    {
      const FakeKernel *kernel;
      FakeGrid grid;
      gpointer parameter;
      gboolean is_packed; /* the parameter came as bytes: a node of a graph tells it so */
      guint shared;       /* bytes */
      guint cluster;      /* blocks next to each other, or 0 */
      gboolean is_kept;   /* something of it, in the cache */
      gpointer extra[5];  /* what a node tells */
    } launch;
    struct
    {
      guint64 to, from; /* device addresses; 0: the host's instead */
      gpointer to_host;
      gconstpointer from_host;
      gpointer staged; /* freed */
      gsize n_bytes;
      gboolean peer;
    } copy;
    struct
    {
      guint64 to;
      guint32 value;
      guint size;
      gsize n;
    } set;
    FakeMark *mark;
    guint64 freed; /* an address */
    struct
    {
      guint32 *to;
      guint32 value;
    } write;
    struct
    {
      CUhostFn func;
      void *data;
    } call;
    struct
    {
      FakeCondition *condition;
      CUgraph body;
    } branch;
  };
};

struct CUstream_st
{
  FakeDevice *device;
  GQueue ops;
  gint rank; /* drawn; higher ones go first in one of the orders */
  gboolean destroyed, is_counted, is_default;
  FakeCapture *capture;
  GPtrArray *before; /* nodes that the next one comes after */
};

struct CUevent_st
{
  FakeDevice *device;
  guint flags;
  FakeMark *mark;       /* the last recording; NULL: never, or */
  FakeCapture *capture; /* in a capture */
  GPtrArray *before;
  FakeShared *shared; /* with CU_EVENT_INTERPROCESS */
  gboolean is_imported;
};

struct CUgraphNode_st
{
  FakeOp op;
  CUgraph child; /* instead of op */
  GPtrArray *before;
  gboolean mark; /* while looking through the graph */
};

/* A number below n, by lot. */
guint fake_draw (guint n);
/* Of other seeds, and of how much later things happen than they might, in microseconds. */
void fake_set_variation (guint shift, guint jitter);
void fake_dawdle (void);
/* What the op owns. */
void fake_op_clear (FakeOp *op);
void fake_op_copy (FakeOp *to, const FakeOp *from);
CUstream fake_stream_new (FakeDevice *device, gboolean is_counted);
/* The queue that a handle means, NULL being the current device's own; NULL: none. */
CUstream fake_stream_find (CUstream stream);
FakeDevice *fake_stream_device (CUstream stream);
/* Takes what the op owns. */
CUresult fake_stream_push (CUstream stream, const FakeOp *op);
/* Waits for all work of the device. */
CUresult fake_device_drain (FakeDevice *device);
/* Drops the work of a device that failed. */
void fake_device_fail (FakeDevice *device, CUresult result);
gboolean fake_in_host_function (void);

/* The seed and counter that keys were made of (gtorch_cuda_random_keys () the other way round). */
void fake_kernel_find_numbers (gconstpointer random, GTorchOpCall *call);

/* --- branches --- */
/* Its kernel: TRUE if that is the name. */
gboolean fake_branch_parse (FakeKernel *kernel, const gchar *text);
/* Gives the value to what the handle means. */
CUresult fake_condition_set (guint64 handle, guint value);
void fake_branch_clear (FakeOp *op);
void fake_branch_copy (FakeOp *to, const FakeOp *from);
/* Does the body, or not. */
CUresult fake_branch_run (FakeOp *op, FakeDevice *device);
/* Does one piece of work at once. */
CUresult fake_op_run (FakeOp *op, FakeDevice *device);

/* --- captures --- */
FakeCapture *fake_capture_ref (FakeCapture *capture);
void fake_capture_unref (FakeCapture *capture);
gboolean fake_capture_is_over (FakeCapture *capture);
/* Nothing but its end is possible any more; gives the result back. */
CUresult fake_capture_spoil (FakeCapture *capture, CUresult result);
/* May a call that may wait for other work not be made by this thread? Spoils what forbids it. */
gboolean fake_capture_forbids (void);
/* Does any stream of the device capture? Spoils it. */
gboolean fake_capture_on_device (const FakeDevice *device);
/* Takes what the op owns. */
CUresult fake_capture_push (CUstream stream, const FakeOp *op);
CUresult fake_capture_record (CUstream stream, CUevent event);
CUresult fake_capture_wait (CUstream stream, CUevent event);

#define REFUSE_IN_CAPTURE()                            \
  do                                                   \
    {                                                  \
      if (fake_capture_forbids ())                     \
        LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); \
    }                                                  \
  while (0)

G_END_DECLS
