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
  guint physical; /* the index without CUDA_VISIBLE_DEVICES */
  gboolean retained;
  guint flags;
  guint32 peers;        /* bit i: may use the memory of device i */
  guint32 pool_readers; /* bit i: device i may use memory of cuMemAllocAsync () */
  gsize memory, used;
  CUstream null_stream;
  CUresult failure; /* a persistent error */
  guint break_in;   /* fails after so many works; 0: never */
  CUresult break_result;
};

/* Protects the entire state of the fake. Host functions are called without it. */
extern GMutex fake_lock;
extern FakeDevice fake_devices[FAKE_MAX_DEVICES];
extern guint fake_n_devices;
extern gboolean fake_have_peers, fake_borrows, fake_multiplies;
extern FakeCudaAccounts fake_accounts;

/* NULL: nobody traces. */
extern const FakeCudaTracer *fake_tracer;
gint64 fake_now (void);
/* The number of the call of this thread. */
guint fake_correlation (void);

/* Counts the call, triggers planned faults and takes the lock. Returns 0 to continue. */
CUresult fake_enter (guint function);
CUresult fake_leave (CUresult result);
/* Returns the device of the current context, or NULL. */
FakeDevice *fake_current (void);
/* Prints and counts a violation of the driver's rules. */
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
/* Begins a call that needs a working current context. */
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
/* Returns the host address of n bytes of a device address. Returns NULL if they are not all mapped, or,
 * with a device, if it may not access all of them. */
gpointer fake_memory_at (guint64 address, gsize n_bytes, const FakeDevice *user);
gboolean fake_memory_is_pinned (gconstpointer address);
/* Executes an enqueued cuMemFreeAsync (). */
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
  gboolean only_reports; /* only checks for invalid numbers: the fake cannot compute it */
  guint loaded;          /* bit i: loaded on device i */
  guint found;           /* bit i: its function was asked for on device i */
  guint size;
  void (*ref) (gpointer parameter); /* references the objects in the parameter; NULL: it has none */
  void (*unref) (gpointer parameter);
};

/* Returns NULL if the fake cannot run the kernel. */
FakeKernel *fake_kernel_get (const gchar *name);
guint fake_kernel_find_dtype (const gchar *suffix);
/* Returns TRUE if the kernel is one that checks for invalid numbers. The name is without "gt_". */
gboolean fake_report_parse (FakeKernel *kernel, const gchar *text);
/* Returns TRUE if the kernel is one of those of matrix products. */
gboolean fake_multiply_parse (FakeKernel *kernel, const gchar *text);
/* Returns TRUE if the kernel is one of those of recurrent networks. */
gboolean fake_recurrent_parse (FakeKernel *kernel, const gchar *text);
/* Returns TRUE if the kernel is one of those of optimizers. */
gboolean fake_step_parse (FakeKernel *kernel, const gchar *text);
gboolean fake_foreach_parse (FakeKernel *kernel, const gchar *text);

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

/* The condition of a branch: the value of its handle. */
typedef struct
{
  gint refs;
  gboolean has_node;
  guint value; /* the value in the next run */
  guint first; /* its default; `value` is set to this when a graph starts */
} FakeCondition;

/* Lives in memory that several processes map; accessed atomically. */
typedef struct
{
  guint64 recorded, passed; /* indices of recordings */
} FakeCell;

/* An event that is shared by several processes. */
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
  FakeShared *shared; /* or NULL */
  guint64 number;
} FakeMark;

struct _FakeOp
{
  FakeKind kind;
  guint correlation;  /* the call that has enqueued it */
  guint64 number;     /* identifies the recording, as addresses are reused */
  FakeDevice *device; /* of a graph's node: the device that executes it; NULL: that of the stream */
  union
  {
    struct
    {
      const FakeKernel *kernel;
      FakeGrid grid;
      gpointer parameter;
      gboolean is_packed; /* the parameter was passed as bytes: reported by graph nodes */
      guint shared;       /* shared memory in bytes */
      guint cluster;      /* the cluster size, or 0 */
      gboolean is_kept;   /* has a cache policy */
      gpointer extra[5];  /* the values of the node's `extra` */
    } launch;
    struct
    {
      guint64 to, from; /* device addresses; 0 if the host pointer is used */
      gpointer to_host;
      gconstpointer from_host;
      gpointer staged; /* owned copy of the data */
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
      gboolean (*poll) (void *data); /* instead of func: called until it returns TRUE */
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
  gint rank; /* random; the RANKED order prefers higher ranks */
  gboolean destroyed, is_counted, is_default;
  gboolean is_blocking; /* made without CU_STREAM_NON_BLOCKING */
  FakeCapture *capture;
  GPtrArray *before; /* the nodes that the next node depends on */
};

struct CUevent_st
{
  FakeDevice *device;
  guint flags;
  FakeMark *mark;       /* the last recording; NULL if never, or */
  FakeCapture *capture; /* if recorded in a capture */
  GPtrArray *before;
  FakeShared *shared; /* with CU_EVENT_INTERPROCESS */
  gboolean is_imported;
};

struct CUgraphNode_st
{
  FakeOp op;
  CUgraph child; /* used instead of op */
  GPtrArray *before;
  gboolean mark; /* for traversals of the graph */
};

/* Returns a random number below n. */
guint fake_draw (guint n);
/* Sets the shift of seeds, and the maximum additional delay in microseconds. */
void fake_set_variation (guint shift, guint jitter);
void fake_dawdle (void);
/* Frees the members of the op. */
void fake_op_clear (FakeOp *op);
void fake_op_copy (FakeOp *to, const FakeOp *from);
CUstream fake_stream_new (FakeDevice *device, gboolean is_counted);
/* Returns the queue of a handle, where NULL is the current device's default one. Returns NULL if there is
 * none. */
CUstream fake_stream_find (CUstream stream);
FakeDevice *fake_stream_device (CUstream stream);
/* Takes ownership of the op's members. */
CUresult fake_stream_push (CUstream stream, const FakeOp *op);
/* Waits for all work of the device. */
CUresult fake_device_drain (FakeDevice *device);
/* With "stall=1": waits for the work of all devices while other calls wait for this one. */
void fake_stall (void);
/* Drops the pending work of a device that failed. */
void fake_device_fail (FakeDevice *device, CUresult result);
gboolean fake_in_host_function (void);

/* Recovers the seed and counter from the keys (the inverse of gtorch_cuda_random_keys ()). */
void fake_kernel_find_numbers (gconstpointer random, GTorchOpCall *call);

/* --- branches --- */
/* Returns TRUE if this is the name of the kernel of branches. */
gboolean fake_branch_parse (FakeKernel *kernel, const gchar *text);
/* Sets the value of a condition by its handle. */
CUresult fake_condition_set (guint64 handle, guint value);
void fake_branch_clear (FakeOp *op);
void fake_branch_copy (FakeOp *to, const FakeOp *from);
/* Runs the body, or skips it. */
CUresult fake_branch_run (FakeOp *op, FakeDevice *device);
/* Executes one work item immediately. */
CUresult fake_op_run (FakeOp *op, FakeDevice *device);

/* --- captures --- */
FakeCapture *fake_capture_ref (FakeCapture *capture);
void fake_capture_unref (FakeCapture *capture);
gboolean fake_capture_is_over (FakeCapture *capture);
/* Invalidates a capture: it can only be ended now. Returns the result. */
CUresult fake_capture_spoil (FakeCapture *capture, CUresult result);
/* Returns TRUE, and invalidates the capture, if this thread must not make a call that may wait for other
 * work. */
gboolean fake_capture_forbids (void);
/* Returns TRUE, and invalidates the capture, if any stream of the device captures. */
gboolean fake_capture_on_device (const FakeDevice *device);
/* Returns TRUE, and invalidates the capture, if a queue of the device that waits for the default one
 * captures, as that would have to wait for captured work. */
gboolean fake_capture_blocks (const FakeDevice *device);
/* Takes ownership of the op's members. */
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
